"""What a folder holds, how that differs from before, and how to make it so again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from toolyard.files.removal import remove_tree


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One file, folder or link, as it was found."""

    mode: int
    owner: tuple[int, int]
    modified: int
    changed: int
    identity: tuple[int, int]
    """Inode and number of names."""
    content: bytes = b""
    """Of a file its bytes, of a link its target."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def same_as(self, other: Node) -> bool:
        """Whether nothing differs that a reader can see, times aside."""
        return (self.mode, self.owner, self.content) == (other.mode, other.owner, other.content)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one path."""

    path: str
    before: Node | None
    after: Node | None

    @property
    def how(self) -> str:
        if self.before is None or self.after is None:
            return "made" if self.before is None else "deleted"
        if self.before.same_as(self.after):
            return "touched"
        return "changed"


class Tree:
    """A folder that can be compared with what it was, and restored to it."""

    def __init__(self, top: Path, *, without: tuple[str, ...] = ()) -> None:
        self.top = top
        self._without = {str(top / name) for name in without}
        self._known: dict[str, Node] = {}

    def remember(self) -> None:
        """Take what is there now as the state to compare with."""
        self._known = self._read()

    def differences(self) -> list[Difference]:
        now = self._read()
        paths = [path for path in {**self._known, **now} if self._known.get(path) != now.get(path)]
        return [
            Difference(path=os.path.relpath(path, self.top), before=self._known.get(path), after=now.get(path))
            for path in sorted(paths)
        ]

    def restore(self, differences: list[Difference]) -> None:
        """Put back what differs, in place where that can be done, so that nobody takes a file for another."""
        for one in sorted(differences, key=lambda each: -each.path.count("/")):
            if one.before is None or (one.after and stat.S_IFMT(one.after.mode) != stat.S_IFMT(one.before.mode)):
                clear(str(self.top / one.path))
        for one in differences:
            if one.before is not None:
                put_back(str(self.top / one.path), one.before)
        for one in reversed(differences):
            if one.before is not None and not stat.S_ISLNK(one.before.mode):
                os.utime(self.top / one.path, ns=(one.before.modified, one.before.modified))
        now = self._read()
        self._known = {path: now[path] for path in now}

    def _read(self) -> dict[str, Node]:
        found = {str(self.top): self._node(str(self.top), os.lstat(self.top))}
        for path, facts in self._walk(str(self.top)):
            found[path] = self._node(path, facts)
        return found

    def _walk(self, folder: str) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(folder) as entries:
            below = [entry for entry in entries if entry.path not in self._without]
        for entry in below:
            facts = entry.stat(follow_symlinks=False)
            yield entry.path, facts
            if stat.S_ISDIR(facts.st_mode):
                yield from self._walk(entry.path)

    def _node(self, path: str, facts: os.stat_result) -> Node:
        """What was read before is read again only if the kernel says that something happened to it."""
        known = self._known.get(path)
        key = (facts.st_mtime_ns, facts.st_ctime_ns, (facts.st_ino, facts.st_nlink))
        if known is not None and (known.modified, known.changed, known.identity) == key:
            return known
        return Node(
            mode=facts.st_mode,
            owner=(facts.st_uid, facts.st_gid),
            modified=facts.st_mtime_ns,
            changed=facts.st_ctime_ns,
            identity=(facts.st_ino, facts.st_nlink),
            content=content_of(path, facts),
        )


def content_of(path: str, facts: os.stat_result) -> bytes:
    if stat.S_ISLNK(facts.st_mode):
        return os.fsencode(os.readlink(path))
    if not stat.S_ISREG(facts.st_mode):
        return b""
    with open(path, "rb") as file:
        return file.read(1 << 20)


def clear(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
    else:
        remove_tree(path)


def put_back(path: str, node: Node) -> None:
    if stat.S_ISLNK(node.mode):
        clear(path)
        os.symlink(os.fsdecode(node.content), path)
        return
    if node.is_folder:
        os.makedirs(path, exist_ok=True)
    elif stat.S_ISREG(node.mode):
        if os.path.exists(path):
            os.chmod(path, 0o600)
        with open(path, "wb") as file:
            file.write(node.content)
    os.chown(path, *node.owner)
    os.chmod(path, stat.S_IMODE(node.mode))
