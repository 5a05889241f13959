"""Rules of a layout in the making: what can be read and written, and what is guarded, path by path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.files.inside import is_inside
from toolyard.process.sandbox.mount_points import is_socket

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.process.sandbox.git.inside_repository import InsideRepository
    from toolyard.process.sandbox.git.obeyed_files import ObeyedFiles
    from toolyard.process.sandbox.git.settings import GitSetting
    from toolyard.process.sandbox.mount_points import MountPoint


Access = Literal["read", "write", "hidden", "private", "repository"]
"""`private` is an empty folder of the sandbox's own; a `repository` is one that git inside has in its place."""


class LayoutDraft(msgspec.Struct):
    """A layout in the making: a later rule about the same path replaces an earlier one; guards win over rules.

    Guards are collected and laid out at the end, parents first, so that their order does not matter.
    """

    rules: dict[str, Access] = msgspec.field(default_factory=lambda: {"/": "read"})
    guards: dict[str, bytes | None] = msgspec.field(default_factory=dict)
    """What must not be written, and what to make in its place where there is nothing; None for a folder."""
    unseen: set[str] = msgspec.field(default_factory=set)
    """What must not even be opened, such as files that we lock."""
    mount_points: list[MountPoint] = msgspec.field(default_factory=list)
    unwanted: list[str] = msgspec.field(default_factory=list)
    unguarded: list[str] = msgspec.field(default_factory=list)
    repositories: list[InsideRepository] = msgspec.field(default_factory=list)
    """Repositories that git inside can set up, which nobody outside obeys."""
    nested: dict[str, str] = msgspec.field(default_factory=dict)
    """Repositories in folders below a workspace, and pointers to some; of those that can only be read, why."""
    submodules: set[str] = msgspec.field(default_factory=set)
    """Folders that git outside steps into from the repository around them."""
    obeyed: dict[str, ObeyedFiles] = msgspec.field(default_factory=dict)
    """For each repository what git outside obeys because settings name it."""
    git_settings: dict[str, list[GitSetting]] = msgspec.field(default_factory=dict)
    """What git's settings say, by file."""
    of_others: dict[str, bytes | None] = msgspec.field(default_factory=dict)
    """Mount points that other sandboxes have made: as long as we need them, too, they must stay."""

    def add(self, access: Access, paths: Iterable[str]) -> None:
        for path in paths:
            if os.path.lexists(path) and os.path.lexists(real := os.path.realpath(path)):
                self.rules[real] = access

    def can_write(self, path: str) -> bool:
        return nearest(self.rules, path)[1] == "write"

    def guard(self, path: str, content: bytes | None = None) -> None:
        """Keep a path from being written or created, and what is above it from being moved away.

        Where there is nothing, a file with this content is made, which must change nothing; without one, a folder. In
        a folder that its owner closed nobody knows what there is, and it is kept from being opened again.
        """
        if closed := closed_above(path):
            path, content = closed, None
        contents = [one for one in (self.guards.get(path), content) if one is not None]
        self.guards[path] = min(contents, default=None)

    def hide(self, path: str) -> None:
        """Keep a path from being opened, and all that a guard keeps it from."""
        self.guard(path)
        self.unseen.add(path)

    def settle(self) -> None:
        """Turn what is guarded into rules."""
        guards, pins = self._without_links(), set[str]()
        for path in sorted(guards, key=parts_of):
            root, access = nearest(self.rules, path)
            is_unseen = path in self.unseen and access not in ("hidden", "private")
            if access == "write":
                self._make_room(root, path, guards[path])
                pins.update(between(root, path))
            if access == "write" or is_unseen:
                self.rules[path] = "hidden" if is_unseen else "read"
        self.repositories = [one for one in self.repositories if self.can_write(one.git)]
        for repository in self.repositories:
            if repository.git in self.nested:
                pins.update(between(nearest(self.rules, repository.git)[0], repository.git))
        for path in pins:
            self.rules.setdefault(path, "write")
        for repository in self.repositories:
            self.mount_points += repository.mount_points()
            self.rules[repository.git] = "repository"
            self.rules |= dict.fromkeys(repository.shown(), "read")

    def _without_links(self) -> dict[str, bytes | None]:
        """The guards where they lead to, by the rules so far; a link itself cannot be guarded, and is named."""
        found: dict[str, bytes | None] = {}
        waiting = sorted(self.guards.items(), reverse=True)
        while waiting:
            path, content = waiting.pop()
            root, access = nearest(self.rules, path)
            if access != "write" or path in found:
                found.setdefault(path, content)
            elif root == path:
                self.unguarded.append(path)
            elif any(os.path.islink(each) for each in (path, *between(root, path))):
                self.unguarded.append(path)
                real = os.path.realpath(path)
                if real != path and os.path.lexists(real):
                    waiting.append((real, content))
            else:
                found[path] = content
        return found

    def _make_room(self, root: str, path: str, content: bytes | None) -> None:
        """Name what has to be made so that a path can be mounted over, with the folders that lead there."""
        if path in self.of_others or is_missing(path):
            above_it = reversed(between(root, path))
            missing = (above for above in above_it if above in self.of_others or not os.path.lexists(above))
            self.mount_points += [(above, None) for above in missing if (above, None) not in self.mount_points]
            self.mount_points.append((path, self.of_others.get(path, content)))


def parts_of(path: str) -> list[str]:
    """What to sort by so that parents come first."""
    return path.split(os.sep)


def nearest(rules: dict[str, Access], path: str) -> tuple[str, Access]:
    """The rule that decides about a path, and the path that it is about."""
    while path not in rules and path != os.sep:
        path = path.rpartition(os.sep)[0] or os.sep
    return path, rules.get(path, "read")


def between(root: str, path: str) -> list[str]:
    """The folders below a root and above a path, the innermost first."""
    found: list[str] = []
    while (path := path.rpartition(os.sep)[0]) and path != root and is_inside(path, root):
        found.append(path)
    return found


def is_missing(path: str) -> bool:
    """Whether there is nothing, or only the mount point of a sandbox, which changes nothing."""
    name = os.path.basename(path)
    if name in SOCKETS and is_socket(path):
        return True
    try:
        return not os.path.lexists(path) or (name in EMPTY and not os.listdir(path))
    except OSError:
        return False


EMPTY = (".cargo",)
"""What is nothing as long as it is an empty folder."""
SOCKETS = (".npmrc", ".yarnrc.yml")
"""What is nothing as long as it is a socket: package managers would stop at a folder."""


def closed_above(path: str) -> str | None:
    """The folder on the way to a path that was closed (`chmod 000`), so that nobody can tell what is there."""
    try:
        os.lstat(path)
    except PermissionError:
        return next((str(folder) for folder in reversed(Path(path).parents) if not os.access(folder, os.X_OK)), None)
    except OSError:
        pass
    return None
