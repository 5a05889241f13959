"""The files of the machine with another owner in root's place, for sandboxes of root's.

Inside, root is an ordinary user without capabilities, but for the kernel still the owner of root's files, and may read
those that nobody else may. So the sandbox is built on a view of all files in which what belongs to root on disk belongs
to a user who is nobody. What the layout names is put over it as it is.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import threading
from typing import TYPE_CHECKING

from toolyard.process.sandbox.backends.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Iterator


CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 16384, 1 << 18
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 1, 0o2000000, 4
MOUNT_ATTR_RDONLY, MOUNT_ATTR_IDMAP = 1, 0x100000
LAST = 4294967294
NOBODY_AT_ALL = LAST - 1
"""A user that no system has; on disk it would be root."""
FULL_MAP = ["0", "0", str(LAST + 1)]
CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN = 6, 7, 21

MAPPABLE_SINCE = {
    **dict.fromkeys(("ext2", "ext3", "ext4", "xfs", "vfat"), (5, 12)),
    "btrfs": (5, 15),
    "f2fs": (5, 18),
    "erofs": (5, 19),
    "squashfs": (6, 2),
    "tmpfs": (6, 3),
}
"""Kinds of file systems that can be looked at with other owners, and since which kernel."""
KERNELS_OWN = frozenset({
    *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
    *("fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "sysfs", "tracefs"),
})  # fmt: skip
"""Kinds that hold no files of anybody's."""


@contextlib.contextmanager
def mapped_mounts(view: str) -> Iterator[int]:
    """A handle on mounts in which the view is at a path, for `in_mapped_mounts`; OSError if they cannot be made.

    Mounts belong to a thread, so one that ends at once makes them. Nobody else may ever work in them: whoever removes
    or changes what is at that path there does so to the machine.
    """
    os.makedirs(view, exist_ok=True)
    handles: list[int] = []
    failures: list[OSError] = []

    def run() -> None:
        try:
            show_all_files(view)
            handles.append(os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="toolyard-mounts")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    try:
        yield handles[0]
    finally:
        os.close(handles[0])


def in_mapped_mounts(handle: int) -> tuple[str, ...]:
    """What to put before a program so that it runs in those mounts, as long as the handle is open here."""
    return (str(system_program("nsenter")), f"--mount=/proc/{os.getpid()}/fd/{handle}")


def show_all_files(view: str) -> None:
    """Attach all that is mounted below the view, in mounts of this thread's own."""
    mapping = open_mapping()
    try:
        calls = MountCalls()
        calls.leave_mounts_of_others()
        for point, kind in mounts():
            calls.attach(point, view if point == "/" else view + point, mapping if kind not in KERNELS_OWN else None)
    finally:
        os.close(mapping)


def can_map_owners(of: tuple[str, ...] = ()) -> bool:
    """Whether we may build such a view and have the programs for it, and the file systems of these folders allow it."""
    if not (system_program("unshare") and system_program("nsenter")):
        return False
    if os.geteuid() != 0 or words_of("/proc/self/uid_map") != FULL_MAP or not has_capabilities():
        return False
    release = os.uname().release.split("-")[0].split(".")
    kernel = tuple(int(part) for part in release[:2] if part.isdigit())
    for point, kind in mounts():
        concerns = point == "/" or any(f"{point}/".startswith(f"{folder}/") for folder in of)
        if concerns and kind not in KERNELS_OWN and kernel < MAPPABLE_SINCE.get(kind, (1 << 30,)):
            return False
    return True


def system_program(name: str) -> str | None:
    """A program of the system's; not one of the same name that somebody put on our path."""
    places = (f"{folder}/{name}" for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"))
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def has_capabilities() -> bool:
    words = words_of("/proc/self/status")
    held = int(words[words.index("CapEff:") + 1], 16) if "CapEff:" in words else 0
    return all(held >> capability & 1 for capability in (CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN))


def words_of(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def mounts() -> Iterator[tuple[str, str]]:
    """Where something is mounted, and of which kind it is; parents first, and of several at one place the last."""
    found: dict[str, str] = {}
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            words = line.split()
            point = os.fsdecode(words[4].decode("unicode_escape").encode("latin-1"))
            found[point] = words[words.index(b"-") + 1].decode()
    yield from sorted(found.items(), key=lambda mount: mount[0].split("/") if mount[0] != "/" else [])


def open_mapping() -> int:
    """A handle on a mapping of users in which root is nobody: that of a process that ends at once."""
    argv = [str(system_program("unshare")), "--user", "/bin/sh", "-c", "echo; read _"]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=nothing, env={}, cwd="/") as process:
        if process.stdout is None or not process.stdout.read(1):
            raise OSError("no user namespace can be made")
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{process.pid}/{name}", "w") as file:
                file.write(f"0 {NOBODY_AT_ALL} 1\n1 1 {NOBODY_AT_ALL - 1}\n")
        return os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


UNSHARE = {"x86_64": 272, "aarch64": 97}
MOUNT = {"x86_64": 165, "aarch64": 40}


class MountCalls:
    """The kernel's calls for mounts."""

    def __init__(self) -> None:
        self._kernel = Kernel()
        self._machine = os.uname().machine

    def leave_mounts_of_others(self) -> None:
        self._check(self._kernel.call(UNSHARE[self._machine], CLONE_NEWNS), "mounts of its own")
        self._check(self._kernel.call(MOUNT[self._machine], b"none", b"/", None, MS_REC | MS_PRIVATE, None), "privacy")

    def attach(self, point: str, place: str, mapping: int | None) -> None:
        """Show what is mounted at a point also at a place, through a mapping; what cannot be mapped, as it is."""
        path = os.fsencode(point) + b"\0"
        tree = self._kernel.call(OPEN_TREE, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
        if tree < 0:
            return  # hidden below another, or gone meanwhile
        # Read-only, so that no mistake of ours can reach the machine through it.
        changed = self._set(tree, MOUNT_ATTR_RDONLY | (MOUNT_ATTR_IDMAP if mapping is not None else 0), mapping or 0)
        if changed < 0 and point != "/":
            changed = self._set(tree, MOUNT_ATTR_RDONLY, 0)
        self._check(changed, f"another owner of root's files at {point}")
        moved = self._kernel.call(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(place) + b"\0", MOVE_MOUNT_F_EMPTY_PATH)
        if point == "/":
            self._check(moved, "a place for its files")
        os.close(tree)

    def _set(self, tree: int, attributes: int, mapping: int) -> int:
        given = struct.pack("4Q", attributes, 0, 0, mapping)
        return self._kernel.call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, given, len(given))

    @staticmethod
    def _check(result: int, what: str) -> None:
        if result < 0:
            raise OSError(f"the kernel does not give the sandbox {what}")
