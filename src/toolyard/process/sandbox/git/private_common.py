"""The part of a repository that git inside has for itself: a folder that `commondir` names, and only inside.

Git inside then writes its configuration there, while objects, branches and worktrees are those of the repository; HEAD
and the index are not in that part. Since git looks for other uses of a branch among worktrees, the repository is also
mounted as one of them, locked, so that nobody removes it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from toolyard.files.inside import is_inside
from toolyard.files.plain_text import text_of
from toolyard.files.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.process.sandbox.mount_points import MountPoint


ITSELF = "toolyard"
"""The name of the worktree that is the repository itself."""
LOCKED = b"while toolyard runs tools here, the repository is one of its own worktrees for git inside\n"
SHARED = ("objects", "refs", "logs/refs", "info", "worktrees")
"""What is the repository's own inside as outside."""
LINKED = ("packed-refs", "shallow")
"""Files that git replaces, and whose links it follows."""


class InsideRepository(NamedTuple):
    """A repository whose configuration can be written inside, without anybody outside obeying that."""

    git: str
    pointers: tuple[str, ...] = ()
    """The `commondir` files of worktrees of it, beside its own."""
    is_new: bool = False
    """Whether there is no repository yet, only room for one."""

    def mount_points(self) -> list[MountPoint]:
        """What has to be there beside what is guarded, so that all of it can be mounted; parents first."""
        folders = ("objects", "refs", "logs", "logs/refs", "info")
        return [*((f"{self.git}/{name}", None) for name in folders), (f"{self.as_worktree}/locked", LOCKED)]

    def guards(self) -> dict[str, bytes | None]:
        """What must not be written, and what to make where there is nothing."""
        pointer = os.fsencode(self.git) + b"\n"
        return {f"{self.git}/locked": LOCKED, f"{self.git}/gitdir": pointer, self.as_worktree: None}

    @property
    def as_worktree(self) -> str:
        return f"{self.git}/worktrees/{ITSELF}"


class PrivateCommon:
    """Such a folder, made outside, and how it is mounted inside."""

    def __init__(self, repository: InsideRepository, place: str) -> None:
        self.repository = repository
        self.place = place
        self.config = f"{place}/config"
        """The configuration that git inside obeys and writes."""
        self._pointer = f"{place}.commondir"

    def make(self) -> None:
        """Make it anew, with the configuration that the repository has now."""
        git = self.repository.git
        remove_tree(self.place)
        for name in (*SHARED, "hooks"):
            os.makedirs(f"{self.place}/{name}")
        for name in LINKED:
            os.symlink(f"{git}/{name}", f"{self.place}/{name}")
        write(self.config, text_of(f"{git}/config"))
        write(f"{self.place}/HEAD", head_of(git))
        write(self._pointer, f"{self.place}\n")

    def mounts(self, guards: Sequence[str]) -> Iterator[str]:
        """Options for bubblewrap, which come after those of the layout. What is guarded is so under its new names."""
        git, place = self.repository.git, self.place
        yield from ("--bind", place, place)
        for name in SHARED:
            yield from ("--ro-bind" if f"{git}/{name}" in guards else "--bind", f"{git}/{name}", f"{place}/{name}")
        if not self.repository.is_new:
            yield from ("--ro-bind", f"{git}/hooks", f"{place}/hooks")
        itself = f"{place}/worktrees/{ITSELF}"
        names = [(guard, name) for guard in guards for name in self.names_of(guard) if name != itself]
        yield from read_only(pair for pair in names if not is_inside(pair[1], itself))
        yield from ("--bind", git, itself)
        yield from read_only(pair for pair in names if is_inside(pair[1], itself))
        for pointer in (f"{git}/commondir", *self.repository.pointers):
            yield from read_only((self._pointer, name) for name in (pointer, *self.names_of(pointer)))

    def names_of(self, path: str) -> list[str]:
        """The other names that something in the repository has inside."""
        git, place = self.repository.git, self.place
        views = {f"{git}/{name}": f"{place}/{name}" for name in SHARED} | {git: f"{place}/worktrees/{ITSELF}"}
        return [to + path[len(root) :] for root, to in views.items() if path != root and is_inside(path, root)]


def read_only(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Options that mount the first of each pair at the second."""
    for source, name in pairs:
        yield from ("--ro-bind", source, name)


def head_of(git: str) -> str:
    """A HEAD for what git takes for the main worktree: a commit that is needed, if there is one, and no branch."""
    head = text_of(f"{git}/HEAD").strip()
    if head.startswith("ref: "):
        head = text_of(f"{git}/{head.removeprefix('ref: ')}").strip()
    is_commit = len(head) in (40, 64) and set(head) <= set("0123456789abcdef")
    return f"{head}\n" if is_commit else "ref: refs/heads/toolyard-none\n"


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
