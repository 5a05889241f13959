"""What tests need of the machine: programs, a terminal, and our own command as a user has it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from forked_commands import ForkedCommands, OnTerminal

T = TypeVar("T")
Process = subprocess.Popen[bytes] | OnTerminal
ROOT = Path(__file__).parent.parent
TOOLYARD = Path(sys.executable).parent / "toolyard"
COMMANDS = ForkedCommands(TOOLYARD, {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
PATIENCE = 60
"""Seconds after which a wait has failed; a loaded machine needs many, a sound one waits for none of them."""
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAICAQAHkQAAAABJRU5ErkJggg==")
"""A picture of one dot."""

BARE_PYTHON = (sys.executable, "-I", "-S")
"""An interpreter that starts in a third of the time, for what needs nothing that is installed."""
AS_FROM_A_SHELL = """
import fcntl, os, signal, sys, termios
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Tests may themselves run in the background, where Ctrl-C is ignored, and children inherit that."""


def need(program: str) -> str:
    """The path of a program. Without it a test is skipped, but never in CI, which installs it."""
    path = shutil.which(program, path=f"{TOOLYARD.parent}:{os.environ['PATH']}")
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(f"{program} is not installed")
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def need_backend(*backends: str) -> str:
    """The first of these that can build a sandbox here. CI has a machine for them all."""
    from toolyard.core.sandbox_properties import PROPERTIES
    from toolyard.process.sandbox.self_test.cache import SelfTest

    test = SelfTest()
    reasons = []
    for backend in backends:
        lacking = ("attributes", "protected", "obeyed") if backend == "landlock" else ()
        wanted = [name for name in PROPERTIES if name not in lacking]
        tested = test.result(backend)
        if set(wanted) <= set(tested.held):
            return backend
        reasons.append(f"{backend}: {tested.failure or tested.open}")
    reason = "; ".join(reasons)
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command after its end."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """The real `toolyard`, with a home, a working folder and nothing else of the user's."""

    path = TOOLYARD

    def __init__(self, folder: Path, *, new_interpreter: bool = False) -> None:
        self._forks = not new_interpreter
        self.home = folder / "home"
        self.folder = folder / "work"
        self.folder.mkdir()
        self.home.mkdir()
        self.env = {
            "PATH": f"{TOOLYARD.parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TMPDIR": str(folder),
            "LC_ALL": "C.UTF-8",
            **{f"XDG_{name}_HOME": str(self.home / name.lower()) for name in ("CACHE", "CONFIG", "STATE")},
        }

    def __call__(
        self,
        *words: str | bytes | Path,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ran:
        """Run it to its end, without a terminal."""
        everything, folder = self.env | dict(env or {}), cwd or self.folder
        if not (self._forks and COMMANDS.suit(everything, folder)):
            return self.run([TOOLYARD, *words], stdin=stdin, env=env, cwd=cwd)
        given = stdin.encode() if isinstance(stdin, str) else stdin
        code, out, err = COMMANDS.run(
            [os.fsdecode(word) for word in words], stdin=given, env=everything, cwd=folder, timeout=PATIENCE
        )
        return Ran(code=code, out=out.decode(), err=err.decode())

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ran:
        """Run any program as the same user."""
        done = subprocess.run(
            argv,
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=self.env | dict(env or {}),
            cwd=cwd or self.folder,
            timeout=PATIENCE,
        )
        return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def start(self, *words: str | Path, **options: Any) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Start it as a shell would, for a test that ends it by a signal."""
        argv = [*BARE_PYTHON, "-c", AS_FROM_A_SHELL, str(TOOLYARD), *map(str, words)]
        return running(argv, env=self.env, cwd=self.folder, start_new_session=True, **options)

    def start_on_terminal(self, terminal: int, argv: list[str], env: Mapping[str, str]) -> Process:
        """Start it, or any other program, as the leader of a session with this terminal."""
        if argv[0] == str(TOOLYARD) and self._forks and COMMANDS.suit(env, self.folder):
            return COMMANDS.start_on_terminal(argv[1:], terminal=terminal, env=env, cwd=self.folder)
        standard: Any = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
        argv = [*BARE_PYTHON, "-c", AS_FROM_A_SHELL, *argv]
        return subprocess.Popen(argv, env=env, cwd=self.folder, start_new_session=True, **standard)

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def config(self, *plugins: Any, policy: Mapping[str, Any] | None = None, **rest: Any) -> Path:
        """`toolyard.json` in the working folder."""
        value = {"plugins": list(plugins), "plugin_policy": {"allow_bash_tools": True, **(policy or {})}, **rest}
        return self.file("toolyard.json", json.dumps(value))

    def audit(self) -> list[dict[str, Any]]:
        files = sorted((self.home / "state" / "toolyard" / "sessions" / "audit").glob("*.ndjson"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@contextmanager
def running(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process for a block of code. Only killed does it end with a block that failed, which waits for its end."""
    with subprocess.Popen(argv, **options) as process:
        try:
            yield process
        finally:
            process.kill()


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, command_line: CommandLine, *argv: str | Path, env: Mapping[str, str] | None = None) -> None:
        self.text = ""
        self._ours, theirs = os.openpty()
        everything = command_line.env | {"TERM": "dumb", "COLUMNS": "120"} | dict(env or {})
        self.process = command_line.start_on_terminal(theirs, list(map(str, argv)), everything)
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self._ours)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def read_until(self, pattern: str) -> str:
        """All there is to see, as soon as the pattern is."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.text):
            assert self._read(deadline), f"{pattern!r} never came: {self.text!r}"
        return self.text

    def finish(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing more came: {self.text!r}"
        try:
            data = os.read(self._ours, 65_536)
        except OSError:  # Linux says so when the other side has closed
            data = b""
        self.text += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


class Signpost:
    """A named pipe by which a script says where it is, or is told to go on."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # Open both ways, so that neither side waits for the other to open it.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def wait(self) -> str:
        """What the script wrote."""
        ready, _, _ = select.select([self._fd], [], [], PATIENCE)
        assert ready, "the script never came to its signpost"
        return os.read(self._fd, 4096).decode()

    def go_on(self) -> None:
        os.write(self._fd, b"\n")

    def close(self) -> None:
        os.close(self._fd)


async def until(claim: Callable[[], T]) -> T:
    """Wait for something that another process brings about, and tell what it is."""
    async with asyncio.timeout(PATIENCE):
        while not (found := claim()):
            await asyncio.sleep(0.01)
        return found


def memory(pid: int | str | None = "self") -> int:
    """What a process has in memory, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def is_alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


def command_lines(words: str) -> list[str]:
    """The command lines that hold these words, of all processes that run but those that only build a sandbox."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        builds_sandbox = os.path.basename(line.partition(" ")[0]) == "bwrap"  # which names what it guards
        if entry.name.isdigit() and int(entry.name) != os.getpid() and words in line and not builds_sandbox:
            found.append(line)
    return found


def watched_channels() -> set[str]:
    """The descriptors of channels by which the kernel tells of files; those of earlier tests may be among them."""
    held = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return {path for path in held if os.path.realpath(path).endswith("anon_inode:inotify")}
