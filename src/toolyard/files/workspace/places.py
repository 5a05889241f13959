"""Paths in a workspace, walked by handles of folders: links are followed inside it, and never out of it."""

from __future__ import annotations

import errno
import os

from toolyard.files.inside import is_inside
from toolyard.files.steps import PASSING, own_like, step_into

TYPE_CHECKING = False  # `typing` takes longer to import than all that is needed here
if TYPE_CHECKING:
    from types import TracebackType

MOST_LINKS = 40
QUOTED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
"""What stands for which byte after a backslash, as git quotes names."""


class FileFault(Exception):
    """Why something is not done, in words for whoever asked for it."""


class Spot:
    """A name in an open folder; what is there is opened, made or replaced from that folder and nowhere else."""

    def __init__(self, folder: int, name: str, names: list[str], shown: str) -> None:
        self.folder = folder
        self.name = name
        self.path = "/".join(names)
        """From the top of the workspace, without links."""
        self.shown = shown
        """As it was asked for."""

    def __enter__(self) -> Spot:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self.folder)

    def open(self, flags: int) -> int:
        """Open what is there; OSError where it is a link by now."""
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)

    def facts(self) -> os.stat_result | None:
        """What is there; None for nothing."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Workspace:
    """A folder that nothing leads out of."""

    def __init__(self, top: str, excludes: str = "") -> None:
        self.top = os.path.realpath(top)
        self.spellings = (os.path.normpath(top), self.top)
        self.excludes = excludes
        """What git ignores everywhere, as lines of rules with a character for each byte."""

    def at(self, path: str, *, make: bool = False, itself: bool = False) -> Spot:
        """Where a path leads.

        `make` makes folders on the way that are missing; `itself` stops at a link in the last place.
        """
        walk = Walk(self, path, make)
        try:
            return walk.to_end(itself)
        except BaseException:
            walk.close()
            raise

    def names_of(self, path: str, shown: str) -> list[str]:
        """The names from the top on that a path is made of; FileFault for one that is elsewhere."""
        if "\0" in path or not path:
            raise FileFault("a path cannot be empty or hold a NUL character")
        if os.path.isabs(path):
            # Without `..`, for that could lead back in from elsewhere.
            inner = next((top for top in self.spellings if is_inside(os.path.normpath(path), top)), None)
            if inner is None:
                raise self.outside(shown)
            path = os.path.relpath(os.path.normpath(path), inner)
        return [name for name in path.split("/") if name not in ("", ".")]

    def pattern_below(self, start: Spot, pattern: str) -> str:
        """A pattern of paths from a folder on; one that begins with the whole path of the folder goes on behind it.

        What a pattern finds is below the folder that was asked for, and so permitted.
        """
        if ".." in pattern.split("/"):
            raise FileFault("a pattern cannot hold `..`; say with path where to look")
        for top in self.spellings:
            if is_inside(pattern, folder := os.path.join(top, start.path)):
                return os.path.relpath(pattern, folder)
            if is_inside(pattern, top):
                raise FileFault(f"{pattern} is not below {start.shown}; say with path where to look")
        return pattern

    def outside(self, shown: str) -> FileFault:
        return FileFault(f"{shown} is outside the workspace {self.top}, and file tools work only inside it")


class Walk:
    """One way through a workspace, a step at a time."""

    def __init__(self, workspace: Workspace, path: str, make: bool) -> None:
        self._workspace = workspace
        self._shown = path
        self._make = make
        self._waiting = list(reversed(workspace.names_of(unquoted(path), path)))
        self._folders = [os.open(workspace.top, PASSING)]
        self._names: list[str] = []
        self._links = MOST_LINKS

    def close(self) -> None:
        for folder in self._folders:
            os.close(folder)
        self._folders = []

    def to_end(self, itself: bool) -> Spot:
        while self._waiting:
            name = self._waiting.pop()
            if name == "..":
                self._go_up()
            elif (target := self._link(name)) is not None and (self._waiting or not itself):
                self._follow(target)
            elif self._waiting:
                self._folders.append(self._enter(name))
                self._names.append(name)
            else:
                return self._spot(name, [*self._names, name])
        return self._spot(".", self._names)

    def _spot(self, name: str, names: list[str]) -> Spot:
        folder = self._folders.pop()
        self.close()
        return Spot(folder, name, names, self._shown)

    def _go_up(self) -> None:
        if len(self._folders) == 1:
            raise self._workspace.outside(self._shown)
        os.close(self._folders.pop())
        self._names.pop()

    def _link(self, name: str) -> str | None:
        """Where a name leads that is a link; None for all else."""
        try:
            return os.readlink(name, dir_fd=self._folders[-1])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def _follow(self, target: str) -> None:
        self._links -= 1
        if self._links < 0:
            raise FileFault(f"{self._shown} is behind too many links")
        if os.path.isabs(target):
            while len(self._folders) > 1:
                self._go_up()
        self._waiting += reversed(self._workspace.names_of(target, f"{self._shown}, a link to {target},"))

    def _enter(self, name: str) -> int:
        try:
            return step_into(name, self._folders[-1])
        except FileNotFoundError:
            if not self._make:
                raise
            os.mkdir(name, dir_fd=self._folders[-1])
            own_like(name, self._folders[-1])
            return step_into(name, self._folders[-1])


def quoted(name: str) -> str:
    """A name as it can be shown and given back: as git quotes it where it has bytes that are no text."""
    if name.isprintable() and not (name.startswith('"') and name.endswith('"')):
        return name
    shown = "".join(
        char if char.isprintable() and char not in '"\\' else "".join(f"\\{byte:03o}" for byte in os.fsencode(char))
        for char in name
    )
    return f'"{shown}"'


def unquoted(path: str) -> str:
    """The name that was meant; one that is not quoted is itself."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    found, rest = bytearray(), path[1:-1]
    while rest:
        if rest[0] != "\\" or len(rest) == 1:
            found += os.fsencode(rest[0])
            rest = rest[1:]
        elif rest[1] in QUOTED:
            found.append(QUOTED[rest[1]])
            rest = rest[2:]
        elif len(rest) >= 4 and all(digit in "01234567" for digit in rest[1:4]) and rest[1] in "0123":
            found.append(int(rest[1:4], 8))
            rest = rest[4:]
        else:
            return path
    return os.fsdecode(bytes(found))
