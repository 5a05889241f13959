"""Guarding files by mounts for all who are inside already."""

from __future__ import annotations

import os

from toolyard.process.process_tree import children_of
from toolyard.process.sandbox.backends.kernel import Kernel
from toolyard.process.sandbox.backends.system_calls import numbers_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OWNING_USERS = 0xB701
"""The request for the user namespace that a namespace belongs to."""
MS_RDONLY, MS_REMOUNT, MS_BIND, KEPT_FLAGS = 1, 32, 4096, 0xF


def mount_inside(started: int, paths: Iterable[str]) -> None:
    """Guard paths for all who are inside of what we started; OSError where that cannot be done."""
    if (child := os.fork()) == 0:
        try:
            enter_and_mount(started, paths)
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError("nothing can be mounted inside")


def enter_and_mount(started: int, paths: Iterable[str]) -> None:
    import fcntl

    mounts = os.open(f"/proc/{innermost(started)}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    for namespace in (fcntl.ioctl(mounts, OWNING_USERS), mounts):
        call("setns", namespace, 0)
    for place in paths:
        name = os.fsencode(place) + b"\0"
        call("mount", name, name, None, MS_BIND, None)
        kept = os.statvfs(place).f_flag & KEPT_FLAGS
        call("mount", None, name, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept, None)


def call(name: str, *words: int | bytes | None) -> None:
    if Kernel().call(numbers_on(os.uname().machine)[name], *words) < 0:
        raise OSError(f"{name} is refused")


def innermost(pid: int) -> int:
    """The last of a chain of processes that each have started one: the guard, bubblewrap, the keeper."""
    while found := children_of(pid):
        pid = found[0]
    return pid
