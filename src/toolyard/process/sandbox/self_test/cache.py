"""What the self-test found, kept until the machine starts again or something changes that it depends on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.sandbox_properties import PROPERTIES
from toolyard.files.atomic import replace_file
from toolyard.process.cgroups import read_text
from toolyard.process.interpreter import find_program
from toolyard.process.sandbox.backends.bubblewrap import Bubblewrap
from toolyard.process.sandbox.backends.confinement import SandboxSupport, find_support

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.core.sandbox_properties import SandboxProperty
    from toolyard.process.sandbox.policy import Backend


CACHE_FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108 - both are empty after a start of the machine, and we check the owner
OWN_FILES = Path(__file__).parents[1]
"""All of the sandbox: a change of any of its modules makes a result stale."""
MOST_KEPT = 32


class SelfTestResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend keeps in."""

    open: Mapping[SandboxProperty, list[str]]
    """For each property the ways out that were found."""
    failure: str | None = None
    """Why it could not be tried at all."""

    @property
    def held(self) -> tuple[SandboxProperty, ...]:
        return () if self.failure else tuple(name for name in PROPERTIES if not self.open.get(name, ["untried"]))


class SelfTest:
    """What the machine supports and what each backend keeps in; tried once, then remembered."""

    def __init__(self) -> None:
        self._file = cache_file()
        self._key = fingerprint()
        found = read(self._file)
        known = found.get(self._key, {})
        self.support = read_support(known.get("support")) or find_support()
        tested: dict[Backend, Any] = known.get("tested", {})
        self._known = {backend: SelfTestResult(**result) for backend, result in tested.items()}
        if self._known and self._key not in list(found)[-MOST_KEPT // 2 :]:
            self._save()  # as the newest: what is used stays, however many others are found out

    def knows(self, backend: Backend) -> bool:
        """Whether a backend was tried already, or cannot be."""
        return backend in self._known or self.support.lacking(backend) is not None

    def result(self, backend: Backend) -> SelfTestResult:
        if backend not in self._known:
            from toolyard.process.sandbox.self_test.probe import try_backend

            self._known[backend] = try_backend(backend, self.support)
            self._save()
        return self._known[backend]

    def _save(self) -> None:
        others = [(key, known) for key, known in read(self._file).items() if key != self._key][-MOST_KEPT:]
        found = {name: {"open": dict(one.open), "failure": one.failure} for name, one in self._known.items()}
        support = [self.support.landlock, *(self.support.bubblewrap or ())]
        known = dict(others) | {self._key: {"support": support, "tested": found}}
        with contextlib.suppress(OSError):  # one that cannot be written costs the next start a test
            replace_file(Path(self._file), json.dumps(known).encode())


def fingerprint() -> str:
    """A digest of all that decides how a test ends: the kernel, our user and rights, the programs, our own code."""
    status = read_text(Path("/proc/self/status")).splitlines()
    facts = [
        read_text(Path("/proc/sys/kernel/random/boot_id")),
        os.uname().release,
        str((os.geteuid(), os.getegid(), sys.executable)),
        *(link(f"/proc/self/ns/{name}") for name in ("user", "mnt", "net", "pid")),
        *(line for line in status if line.startswith(("Cap", "NoNew", "Seccomp"))),
        read_text(Path("/proc/self/attr/current")),
        *(stamp(path) for path in (find_program("bwrap"), *sorted(own_modules())) if path),
    ]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def own_modules() -> list[str]:
    """Every start stamps all of them, so they are listed by the quickest means."""
    listed = ((top, name) for top, _, names in os.walk(OWN_FILES) for name in names)
    return [f"{top}/{name}" for top, name in listed if name.endswith(".py")]


def cache_file() -> str:
    folder = next(filter(os.path.isdir, CACHE_FOLDERS), CACHE_FOLDERS[-1])
    return f"{folder}/toolyard-sandbox-{os.geteuid()}.json"


def read(file: str) -> dict[str, Any]:
    """What is known; nothing when the file is missing, damaged, or could be somebody else's."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as cache:
            facts = os.fstat(fd)
            ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o022
            known = json.loads(cache.read(1 << 18)) if ours else {}
        return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        return {}


def read_support(known: Any) -> SandboxSupport | None:
    if not isinstance(known, list):
        return None
    landlock, *bubblewrap = known
    program = Bubblewrap(bubblewrap[0], tuple(bubblewrap[1])) if bubblewrap else None
    return SandboxSupport(bubblewrap=program, landlock=landlock)


def stamp(path: str) -> str:
    facts = os.stat(path)
    return f"{path}:{facts.st_mtime_ns}:{facts.st_size}:{facts.st_mode}"


def link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
