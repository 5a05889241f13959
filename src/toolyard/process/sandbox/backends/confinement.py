"""How a keeper is started in a sandbox of each backend, and which of them a machine supports."""

from __future__ import annotations

import contextlib
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.files.plain_text import text_of
from toolyard.process.sandbox.backends.bubblewrap import find_bubblewrap, maps_owners, private_git_folders
from toolyard.process.sandbox.backends.kernel import landlock_version
from toolyard.process.sandbox.backends.owner_map import in_mapped_mounts, mapped_mounts
from toolyard.process.sandbox.backends.seccomp import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    filter_program,
    knows_processor,
)
from toolyard.process.sandbox.draft import nearest
from toolyard.process.sandbox.git.inside_repository import make_folders
from toolyard.process.sandbox.secrets import files_of_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.process.common_folder import CommonFolder
    from toolyard.process.private_folders import SharedFolder
    from toolyard.process.sandbox.backends.bubblewrap import Bubblewrap
    from toolyard.process.sandbox.draft import Access
    from toolyard.process.sandbox.layout import Layout
    from toolyard.process.sandbox.policy import Backend, SandboxPolicy


SCOPES_SINCE = 6
"""The version of Landlock that keeps signals in."""
PTRACE_SCOPE, NOBODY_MAY = "/proc/sys/kernel/yama/ptrace_scope", "3"
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """How a keeper is started in a sandbox."""

    backend: Backend
    prefix: tuple[str, ...] = ()
    """The way into the sandbox."""
    view: str | None = None
    """Where root's files must be seen with another owner when it starts."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the keeper gives up by itself."""
    own_pids: bool = False
    """Whether processes have numbers of their own inside."""
    proxy: bool = False
    """Whether the keeper opens a port inside at which hosts can be reached."""
    tmp: str = "/tmp"  # noqa: S108 - inside it is nobody else's
    """Where temporary files go."""
    guards: str = ""
    """The file that names the files whose mounts the guard puts back."""

    @contextlib.contextmanager
    def ready_prefix(self) -> Iterator[tuple[str, ...]]:
        """What comes before the keeper's own command line, while what that needs is there; OSError if it cannot be."""
        if self.view is None:
            yield self.prefix
        else:
            with mapped_mounts(self.view) as handle:
                yield (*in_mapped_mounts(handle), *self.prefix)

    def encoded_options(self) -> dict[str, Any]:
        """The options as the keeper takes them: paths are bytes."""
        paths = {
            name: [os.fsencode(path) for path in self.options[name]] for name in ("readable", "writable", "programs")
        }
        return self.options | paths


class SandboxSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine has for building sandboxes."""

    bubblewrap: Bubblewrap | None
    landlock: int
    """The version of Landlock; zero when there is none."""

    def lacking(self, backend: Backend) -> str | None:
        """Why a backend cannot even be tried."""
        if not knows_processor():
            return f"system calls of {os.uname().machine} are not known"
        if backend == "landlock":
            return None if self.landlock else "the kernel has no Landlock"
        if self.bubblewrap is None:
            return "bubblewrap (bwrap) is not installed"
        if backend == "bubblewrap" and self.landlock < SCOPES_SINCE:
            return "the kernel's Landlock does not keep signals in"
        return None

    def confinement(
        self, backend: Backend, layout: Layout, policy: SandboxPolicy, folder: SharedFolder, common: CommonFolder
    ) -> Confinement:
        if backend == "landlock":
            return landlock_confinement(layout, policy, folder, common)
        if self.bubblewrap is None:
            raise ValueError("there is no bubblewrap")
        own_pids = backend == "bubblewrap-pids"
        view = folder.view if maps_owners(layout) else None
        make_folders(private_git_folders(layout, folder, common))
        options = self.bubblewrap.options(
            layout, folder=folder, common=common, network=policy.network, own_pids=own_pids
        )
        families = [AF_INET, AF_INET6, AF_NETLINK, *([AF_UNIX] if policy.unix_sockets else [])]
        program = filter_program(families, own_pids=own_pids, own_ipc=True, own_mounts=True)
        # In the network of others nobody could tell whose a socket is.
        supervised = not policy.network and AF_UNIX not in families and can_supervise()
        asking = filter_program(families, own_pids=own_pids, own_ipc=True, own_mounts=True, supervised=True)
        return Confinement(
            backend=backend,
            prefix=(self.bubblewrap.path, *options, "--"),
            view=view,
            options=keeper_options(program, scopes=self.landlock >= SCOPES_SINCE)
            | {"supervised": (supervised and asking) or b"", "programs": layout.programs if self.landlock else ()},
            own_pids=own_pids,
            proxy=(policy.proxy or bool(policy.hosts)) and not policy.network,
        )


def can_supervise() -> bool:
    """Whether anybody may look at the address that another process gives to the kernel: some machines forbid it all."""
    return text_of(PTRACE_SCOPE).strip() != NOBODY_MAY


def landlock_confinement(
    layout: Layout, policy: SandboxPolicy, folder: SharedFolder, common: CommonFolder
) -> Confinement:
    """Without namespaces there is no network of its own, and so no proxy: there is all of the network or none."""
    # There are no mounts that could give root's files another owner.
    hidden: dict[str, Access] = dict.fromkeys(files_of_root().hidden, "hidden") if os.geteuid() == 0 else {}
    shown: dict[str, Access] = {path: "read" for path in layout.needed if nearest(hidden, path)[1] == "hidden"}
    readable, writable = grants(hidden | shown | layout.for_landlock())
    families = [
        AF_NETLINK,
        *([AF_INET, AF_INET6] if policy.network else []),
        *([AF_UNIX] if policy.unix_sockets else []),
    ]
    options = keeper_options(filter_program(families, keeps_attributes=policy.looking), scopes=True) | {
        "readable": [*readable, common.handouts],
        "writable": [*writable, folder.exchange, *common.temporary.values()],
        "files": True,
        "tcp": not policy.network,
        "drop_capabilities": os.geteuid() == 0,
    }
    tmp = next(iter(common.temporary.values()))
    return Confinement(backend="landlock", options=options, tmp=tmp)


def grants(rules: dict[str, Access]) -> tuple[list[str], list[str]]:
    """The paths to be read, and those to be written too. What Landlock grants on a folder holds for all below it.

    A folder with something hidden in it is granted by its other entries, so that nothing new can be made in it. What
    should be read only below a folder that can be written cannot be kept so.
    """
    readable: list[str] = []
    writable: list[str] = [*DEVICES]
    walk("/", "read", RulesBelow(rules), readable, writable)
    return readable, writable


class RulesBelow:
    """Rules by path, and for each folder what they say of what is below it; they can be many."""

    def __init__(self, rules: dict[str, Access]) -> None:
        self.rules = rules
        self.below: dict[str, set[Access]] = {}
        for path, access in rules.items():
            for folder in map(str, PurePosixPath(path).parents):
                self.below.setdefault(folder, set()).add(access)


def walk(path: str, access: Access, given: RulesBelow, readable: list[str], writable: list[str]) -> None:
    """Grant a path, or its entries one by one when not all of them are granted."""
    access = given.rules.get(path, access)
    access = "write" if access == "repository" else access  # there are no mounts that could put another in its place
    below = given.below.get(path, set())
    whole = all(rule in ("write", "read", "repository") for rule in below) if access == "write" else not below
    if path == "/dev":
        return
    if access == "write" and whole:
        writable.append(path)
    elif access == "read" and whole:
        readable.append(path)
    elif below or access in ("read", "write"):
        for entry in entries_of(path):
            walk(entry, access, given, readable, writable)


def entries_of(folder: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(folder) if not entry.is_symlink()]
    except OSError:
        return []


def keeper_options(program: bytes | None, *, scopes: bool) -> dict[str, Any]:
    """The arguments of `kernel.confine`, as they are where mounts keep files in."""
    return {
        "readable": [],
        "writable": [],
        "files": False,
        "scopes": scopes,
        "tcp": False,
        "filter": program or b"",
        "supervised": b"",
        "drop_capabilities": False,
        "processes": None,
        "programs": [],
    }


def find_support() -> SandboxSupport:
    return SandboxSupport(bubblewrap=find_bubblewrap(), landlock=landlock_version())
