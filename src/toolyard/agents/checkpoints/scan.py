"""Seeing what a workspace has now, and reading only what changed since it was last seen."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.agents.checkpoints.coverage import CACHE_TAG, REPOSITORIES, Coverage, LeftOut
from toolyard.agents.checkpoints.objects import FileEntry, FolderEntry, LinkEntry, Listing, encode_listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.agents.checkpoints.objects import Digest, TreeEntry
    from toolyard.agents.checkpoints.packs import PackWriter

FileStamp: TypeAlias = tuple[int, int, int, int, int]
"""Mode, size, time of the content, time of the change, inode: what cannot all stay the same when a file changes."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
KIND, A_FILE, A_LINK, A_FOLDER = 0o170000, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR
"""The bits of a mode that say what something is, and what they say."""
KEPT_MODE = 0o1777
"""Bits of a mode that are kept; those that make a program run as somebody else are not."""
DEEPEST = 200
TICK = 20_000_000
"""Nanoseconds within which a file may change twice and look as if it had changed once."""
NEVER: FileStamp = (0, 0, 0, 0, 0)
STAMP_OF = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
MODE_OF = itemgetter(0)


class SeenFolder(msgspec.Struct, array_like=True):
    """A folder as it was seen last."""

    stamps: dict[str, FileStamp]
    folders: dict[str, tuple[int, bytes]]
    """Of each folder in it, its mode and its listing."""
    listing: bytes
    entries: Listing


SeenFolders: TypeAlias = "dict[str, SeenFolder]"
NOTHING = SeenFolder({}, {}, b"", {})


class TooMany(Exception):
    """A workspace has more files than are kept."""


class WorkspaceScan:
    """One look at a workspace; what it reads goes into a pack."""

    def __init__(
        self,
        writer: PackWriter,
        coverage: Coverage,
        *,
        seen: SeenFolders,
        never: Iterable[tuple[int, int]],
        without: Iterable[str] = (),
    ) -> None:
        self.left_out: list[LeftOut] = []
        self.seen: SeenFolders = {}
        """What this look saw; where nothing changed, the very same as before."""
        self._before = seen
        self._writer = writer
        self._coverage = coverage
        self._never = frozenset(never)
        """Folders that are not looked into, by device and inode."""
        self._without = names_by_folder(without)
        """Paths that are no part of the state."""
        self._files = 0
        self._fresh_since = time.time_ns() - TICK
        self._device = 0

    def run(self, workspace: str) -> Digest:
        """The listing of the workspace's top folder."""
        fd = os.open(workspace, FOLDER & ~os.O_NOFOLLOW)
        try:
            self._device = os.fstat(fd).st_dev
            return self._folder(fd, "", 0)
        finally:
            os.close(fd)

    def _folder(self, fd: int, path: str, depth: int) -> Digest:
        stamps, folders = self._look(fd, path, depth)
        before = self._before.get(path)
        if before and before.stamps == stamps and before.folders == folders:
            self.seen[path] = before
            return before.listing
        entries = self._entries(fd, path, stamps, folders, before)
        listing = self._writer.add_listing(encode_listing(entries))
        self.seen[path] = SeenFolder(stamps, folders, listing, entries)
        return listing

    def _entries(
        self,
        fd: int,
        path: str,
        stamps: dict[str, FileStamp],
        folders: dict[str, tuple[int, bytes]],
        before: SeenFolder | None,
    ) -> Listing:
        """What a folder has; only what is new or changed is read. Stamps of what could change unseen are taken out."""
        if before is None or len(before.entries) != len(before.stamps) + len(before.folders):
            before = NOTHING
        entries, old = dict(before.entries), before.stamps
        changed = [name for name, now in stamps.items() if old.get(name) != now]
        for name in (*(old.keys() - stamps.keys()), *changed, *before.folders):
            entries.pop(os.fsencode(name), None)
        for name in changed:
            now = stamps[name]
            if entry := self._read(fd, name, now, path):
                entries[os.fsencode(name)] = entry
                if max(now[2], now[3]) >= self._fresh_since:
                    stamps[name] = NEVER
            else:
                del stamps[name]
        return entries | {os.fsencode(name): FolderEntry(mode, below) for name, (mode, below) in folders.items()}

    def _look(self, fd: int, path: str, depth: int) -> tuple[dict[str, FileStamp], dict[str, tuple[int, bytes]]]:
        """The stamps of files and links, and the folders with what is in them."""
        stamps = stamps_in(fd)
        below: list[tuple[str, os.stat_result]] = []
        if any(mode & KIND != A_FILE for mode in set(map(MODE_OF, stamps.values()))):
            for name, kind in [(name, stamp[0] & KIND) for name, stamp in stamps.items()]:
                if kind in (A_FILE, A_LINK):
                    continue
                del stamps[name]
                if kind != A_FOLDER:
                    self._leave(path, name, "it is neither a file, a folder nor a link")
                    continue
                with contextlib.suppress(FileNotFoundError):  # it went while we looked
                    below.append((name, os.stat(name, dir_fd=fd, follow_symlinks=False)))
        for name in sorted(stamps.keys() & (REPOSITORIES | self._without.get(path, frozenset()))):
            self._leave(path, name, "it is not part of states")  # as a file that leads to a worktree's repository
            del stamps[name]
        self._count(len(stamps) + len(below))
        folders = {}
        for name, facts in below:
            listing = self._below(fd, name, facts, path, depth)
            if listing is not None:
                folders[name] = (facts.st_mode & KEPT_MODE, listing)
        return stamps, folders

    def _below(self, above: int, name: str, facts: os.stat_result, path: str, depth: int) -> Digest | None:
        """The listing of a folder in a folder; None when it is not kept."""
        is_without = name in self._without.get(path, ())
        reason = "tools cannot change it" if is_without else self._why_not(name, facts, depth)
        if reason:
            self._leave(path, name, reason)
            return None
        try:
            fd = os.open(name, FOLDER, dir_fd=above)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._leave(path, name, f"it cannot be read ({error.strerror})")
            return None
        try:
            if is_marked_as_cache(fd):
                self._leave(path, name, f"its {CACHE_TAG} says that it is a cache")
                return None
            return self._folder(fd, f"{path}/{name}" if path else name, depth + 1)
        finally:
            os.close(fd)

    def _why_not(self, name: str, facts: os.stat_result, depth: int) -> str:
        if self._coverage.leaves_out(name):
            return "folders of this name are left out"
        if (facts.st_dev, facts.st_ino) in self._never:
            return "it is where states are kept"
        if facts.st_dev != self._device:
            return "it is another file system"
        return f"it is more than {DEEPEST} folders deep" if depth >= DEEPEST else ""

    def _read(self, folder: int, name: str, now: FileStamp, path: str) -> TreeEntry | None:
        """A file or a link, kept; None when it cannot be, or is gone."""
        try:
            if stat.S_ISLNK(now[0]):
                return LinkEntry(os.fsencode(os.readlink(name, dir_fd=folder)))
            if now[1] > self._coverage.largest_file:
                raise OSError(0, f"larger than {self._coverage.largest_file} bytes")
            return self._read_file(folder, name, now)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._leave(path, name, error.strerror or str(error))
            return None

    def _read_file(self, folder: int, name: str, now: FileStamp) -> FileEntry:
        fd = os.open(name, FILE, dir_fd=folder)
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode):
                raise OSError(0, "it is not a regular file any more")
            kept = self._writer.add_file(fd, facts.st_size, self._coverage.largest_file)
        finally:
            os.close(fd)
        if kept is None:
            raise OSError(0, f"larger than {self._coverage.largest_file} bytes")
        return FileEntry(now[0] & KEPT_MODE, kept[1], kept[0])

    def _count(self, more: int) -> None:
        self._files += more
        if self._files > self._coverage.most_files:
            raise TooMany(f"the workspace has more than {self._coverage.most_files} files")

    def _leave(self, path: str, name: str, reason: str) -> None:
        self.left_out.append(LeftOut(path=f"{path}/{name}" if path else name, reason=reason))


def stamps_in(folder: int) -> dict[str, FileStamp]:
    """The stamps of all that is in a folder; this is where the time of a look goes."""
    try:
        with os.scandir(folder) as found:
            return {entry.name: STAMP_OF(entry.stat(follow_symlinks=False)) for entry in found}
    except FileNotFoundError:  # something went while we looked
        stamps = {}
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                stamps[name] = STAMP_OF(os.stat(name, dir_fd=folder, follow_symlinks=False))
        return stamps


def names_by_folder(paths: Iterable[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, set()).add(name)
    return {folder: frozenset(names) for folder, names in found.items()}


def is_marked_as_cache(folder: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(CACHE_TAG, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
