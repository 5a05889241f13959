"""Making a workspace what it was: every step by handles of folders, so that no link leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.checkpoints.coverage import LeftOut
from toolyard.agents.checkpoints.objects import FileEntry, FolderEntry, LinkEntry, TreeEntry, new_digest
from toolyard.agents.checkpoints.packs import Damaged, Packs
from toolyard.agents.checkpoints.scan import FOLDER, KEPT_MODE
from toolyard.files.steps import own_like, set_mode, spare_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.agents.checkpoints.changes import Change

OWN_RIGHTS = 0o700
ENDS_ALL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
"""Errors after which no other step can be hoped to succeed."""


class Restored(msgspec.Struct, kw_only=True):
    """What came of it."""

    changed: list[str] = msgspec.field(default_factory=list)
    left_alone: list[LeftOut] = msgspec.field(default_factory=list)


class WorkspaceWriter:
    """Carries out changes in one workspace."""

    def __init__(self, workspace: str, packs: Packs, *, never: Sequence[str] = ()) -> None:
        self.result = Restored()
        self._packs = packs
        self._never = frozenset(never)
        """Paths of things that one of the states does not have, and so must not be lost."""
        self._top = os.open(workspace, FOLDER & ~os.O_NOFOLLOW)
        self._modes: dict[str, int] = {}
        """Of folders that were opened to us for the time being, or that are new: what they will have at the end."""

    def apply(self, changes: Sequence[Change]) -> Restored:
        """Remove first, deepest first; then make, from the top down; at last give folders their modes."""
        for change in reversed(changes):
            if change.before is not None and removes(change):
                self._guarded(change.path, self._remove, change.before)
        for change in changes:
            if change.after is not None:
                self._guarded(change.path, self._make, change.after)
        for path, mode in sorted(self._modes.items(), reverse=True):
            with contextlib.suppress(OSError), self._parent(path) as (folder, name):
                set_mode(name, mode, folder)
        return self.result

    def close(self) -> None:
        os.close(self._top)

    def _guarded(self, path: str, step: Step, entry: TreeEntry) -> None:
        """One step; what cannot be done is told, and does not stop the others. A full disk does."""
        if any(one in self._never for one in with_parents(path)):
            self.result.left_alone.append(LeftOut(path=path, reason="it is not part of both states"))
            return
        try:
            with self._parent(path) as (folder, name):
                step(path, folder, name, entry)
        except OSError as error:
            if error.errno in ENDS_ALL:
                raise
            self.result.left_alone.append(LeftOut(path=path, reason=error.strerror or str(error)))
        else:
            self.result.changed.append(path)

    def _remove(self, path: str, folder: int, name: str, entry: TreeEntry) -> None:
        with contextlib.suppress(FileNotFoundError):
            if isinstance(entry, FolderEntry):
                os.rmdir(name, dir_fd=folder)  # which fails where it has something that no state has
                self._modes.pop(path, None)
            else:
                os.unlink(name, dir_fd=folder)

    def _make(self, path: str, folder: int, name: str, entry: TreeEntry) -> None:
        match entry:
            case FolderEntry():
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, OWN_RIGHTS, dir_fd=folder)
                    own_like(name, folder)
                self._modes[path] = entry.mode & KEPT_MODE
            case LinkEntry():
                spare = spare_name()
                os.symlink(entry.target, spare, dir_fd=folder)
                move(spare, name, folder)
            case FileEntry():
                self._make_file(folder, name, entry)

    def _make_file(self, folder: int, name: str, entry: FileEntry) -> None:
        """Write beside and move into place, so that nobody ever sees half a file."""
        spare, digest = spare_name(), new_digest()
        fd = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                for piece in self._packs.pieces(entry.content):
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                if digest.digest() != entry.content:
                    raise Damaged(f"the kept content of {name} is damaged")
                own_like(spare, folder)
                os.fchmod(fd, entry.mode & KEPT_MODE)
            move(spare, name, folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(spare, dir_fd=folder)
            raise

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder that a path is in, by its handle, and the name in it; no link is followed on the way."""
        *folders, name = path.split("/")
        fd, so_far = os.dup(self._top), ""
        try:
            for one in folders:
                so_far = f"{so_far}/{one}" if so_far else one
                below = self._enter(fd, one, so_far)
                os.close(fd)
                fd = below
            yield fd, name
        finally:
            os.close(fd)

    def _enter(self, above: int, name: str, path: str) -> int:
        """Open a folder; one that is closed to us, though ours, is opened for the time being."""
        facts = os.stat(name, dir_fd=above, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode) and facts.st_mode & OWN_RIGHTS != OWN_RIGHTS and path not in self._modes:
            self._modes[path] = facts.st_mode & KEPT_MODE
            set_mode(name, facts.st_mode & KEPT_MODE | OWN_RIGHTS, above)
        return os.open(name, FOLDER, dir_fd=above)


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Step: TypeAlias = Callable[[str, int, str, TreeEntry], None]


def removes(change: Change) -> bool:
    """Whether what is there must go first: it goes for good, or something of another kind comes in its place."""
    if change.after is None:
        return True
    return isinstance(change.before, FolderEntry) != isinstance(change.after, FolderEntry)


def with_parents(path: str) -> Iterator[str]:
    """A path, and every folder on the way to it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def move(spare: str, name: str, folder: int) -> None:
    try:
        os.rename(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(spare, dir_fd=folder)
        raise
