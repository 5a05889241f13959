"""Rules of a layout in the making: what can be read and written, and what is guarded, path by path."""

from __future__ import annotations

import os
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.process.sandbox.mount_points import MountPoint


Access = Literal["read", "write", "hidden", "private"]
"""`private` is an empty folder of the sandbox's own."""


class LayoutDraft(msgspec.Struct):
    """A layout in the making: a later rule about the same path replaces an earlier one."""

    rules: dict[str, Access] = msgspec.field(default_factory=lambda: {"/": "read"})
    mount_points: list[MountPoint] = msgspec.field(default_factory=list)
    unwanted: list[str] = msgspec.field(default_factory=list)
    unguarded: list[str] = msgspec.field(default_factory=list)

    def add(self, access: Access, paths: Iterable[str]) -> None:
        for path in paths:
            if os.path.lexists(path) and os.path.lexists(real := os.path.realpath(path)):
                self.rules[real] = access

    def can_write(self, path: str) -> bool:
        return nearest(self.rules, path)[1] == "write"

    def guard(self, path: str, content: bytes | None = None) -> None:
        """Keep a path from being written or created, and what is above it from being moved away.

        Where there is nothing, a file with this content is made, which must change nothing; without one, a folder.
        """
        root, access = nearest(self.rules, path)
        if access != "write":
            return
        if root == path:
            self.unguarded.append(path)
            return
        if any(os.path.islink(each) for each in (path, *between(root, path))):
            self.unguarded.append(path)
            real = os.path.realpath(path)
            if real != path and os.path.lexists(real):
                self.guard(real, content)
            return
        if is_missing(path):
            self.mount_points.append((path, content))
        self.rules[path] = "read"
        for above in between(root, path):
            self.rules.setdefault(above, "write")


def nearest(rules: dict[str, Access], path: str) -> tuple[str, Access]:
    for place in (path, *map(str, PurePosixPath(path).parents)):
        if place in rules:
            return place, rules[place]
    return "/", rules.get("/", "read")


def between(root: str, path: str) -> list[str]:
    """The folders below a root and above a path."""
    return [above for above in map(str, PurePosixPath(path).parents) if above != root and is_inside(above, root)]


def is_missing(path: str) -> bool:
    """Whether there is nothing, or only the mount point of a sandbox: an empty folder, a file that changes nothing."""
    name = os.path.basename(path)
    try:
        if not os.path.lexists(path) or (name == ".git" and not os.listdir(path)):
            return True
    except OSError:
        return False
    return name in OURS and text_of(path) == OURS[name].decode()


MOST_READ = 1 << 18
ITSELF, NOTHING = b".\n", b"# nothing\n"
"""In `commondir` the first means that the repository's configuration and hooks are its own; the second is for
`config.worktree`."""
OURS = {"commondir": ITSELF, "config.worktree": NOTHING}
"""The contents by which a mount point of another sandbox is recognised, which will remove it when it ends."""


def text_of(path: str) -> str:
    """The text of a regular file; empty when there is none, or when it holds a NUL."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            data = file.read(MOST_READ) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except (OSError, ValueError):
        return ""
    return "" if b"\0" in data else os.fsdecode(data)
