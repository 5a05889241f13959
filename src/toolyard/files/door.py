"""The one way in for a file that the application obeys: a regular file, bounded, never by a link that a tool made.

Whoever obeys a file obeys the bytes that were read here, and does not open it a second time: by then it may be another.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.core.problems import Position, Problem
from toolyard.files.inside import is_inside
from toolyard.files.steps import PASSING, open_folder
from toolyard.files.user_folders import SYSTEM_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Stamp: TypeAlias = "tuple[int, int, int]"
"""What changes when a file is written or replaced."""

LARGEST_CONFIGURATION = 16 << 20
LARGEST_TEXT = 4 << 20
"""Of a file whose text becomes part of a configuration or a prompt."""
LARGEST_CODE = 4 << 20
LARGEST_SCRIPT = 16 << 20

MOST_LINKS = 40
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
"""What is no regular file must not hold us up before we can see that it is none."""
HINTS = {
    errno.ELOOP: "name the file itself: a link there may have been made by a tool",
    errno.EINVAL: "only a regular file is read: no pipe, device or socket",
    errno.EFBIG: "keep large data elsewhere",
}


class FileRefused(OSError):
    """A file that is there, and that we do not obey."""

    @property
    def hint(self) -> str:
        """What to do about it."""
        if self.errno == errno.EACCES:
            from toolyard.files.accepted import how_to_accept

            return how_to_accept(self.filename)
        return HINTS.get(self.errno or 0, "")

    def problem(self, code: str = "file_refused") -> Problem:
        message, where = f"this file is not read: {self.strerror}", Position(file=Path(self.filename))
        return Problem(code=code, message=message, hint=self.hint, where=where)


class FileContent(msgspec.Struct, frozen=True):
    """A file as it was read, once."""

    data: bytes
    facts: os.stat_result

    @property
    def stamp(self) -> Stamp:
        return stamp(self.facts)

    def is_still_at(self, path: str) -> bool:
        """Whether the file is there untouched, so that whatever read it meanwhile has read the same."""
        try:
            facts = os.stat(path, follow_symlinks=False)
        except OSError:
            return False
        # The time of a change, unlike that of its content, cannot be set back.
        return (stamp(facts), facts.st_ctime_ns) == (self.stamp, self.facts.st_ctime_ns)

    def text(self) -> str:
        """As Python reads text: in UTF-8, with lines that end alike; UnicodeDecodeError when it is none."""
        return self.data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")

    @property
    def digest(self) -> str:
        """By which the same bytes are known again."""
        import hashlib

        return hashlib.sha256(self.data).hexdigest()


class Door(msgspec.Struct, frozen=True):
    """Reads files, and knows where tools can write: from there on no link is followed, not even to a folder."""

    writable: tuple[str, ...] = ()
    """Such folders, all links followed, none inside another."""

    @classmethod
    def to(cls, folders: Iterable[str]) -> Door:
        """A door that minds these folders, as far as tools can write them: neither the system's nor read-only ones."""
        real = {one for folder in folders if can_be_written(one := os.path.realpath(folder))}
        inner = {one for one in real for other in real if one != other and is_inside(one, other)}
        return cls(tuple(sorted(real - inner)))

    @classmethod
    def here(cls) -> Door:
        """The door of somebody who knows only that tools work in the current folder."""
        try:
            folder = os.getcwd()  # the kernel's word, without links
        except FileNotFoundError:  # it was removed, and nobody can write there
            return cls()
        return cls((folder,) if can_be_written(folder) else ())

    def read(self, path: str | Path, *, largest: int) -> FileContent:
        """A file's bytes and its stamp, by bare system calls, since a hundred tools are read at every start.

        OSError when there is none, or it may not be read; FileRefused when it is not to be obeyed.
        """
        path, whole = os.fspath(path), os.path.abspath(path)  # without `..`, which links would give another meaning
        found = way_in(whole, self.writable)
        fd = open_anywhere(whole) if found is None else open_below(*found, path)
        try:
            return read_opened(fd, path, largest)
        finally:
            os.close(fd)

    def read_accepted(self, path: str | Path, *, largest: int) -> FileContent:
        """The same for what has an effect outside of every sandbox: not what tools may have written.

        A person can accept such a file, by its content.
        """
        content = self.read(path, largest=largest)
        from toolyard.files.accepted import objection

        if reason := objection(os.path.abspath(path), content.data, content.facts):
            raise FileRefused(errno.EACCES, reason, os.fspath(path))
        return content

    def folder_problem(self, path: str) -> Problem | None:
        """Why nothing below a folder is to be obeyed: a link leads there that a tool may have made."""
        try:
            self.check_folder(path)
        except FileRefused as refused:
            return refused.problem()
        return None

    def check_folder(self, path: str) -> None:
        """FileRefused for a folder to which a link leads that a tool may have made, also where nothing is yet."""
        try:
            if found := way_in(os.path.abspath(path), self.writable):
                os.close(open_below(*found, path))
        except FileRefused:
            raise
        except OSError:  # which whoever reads it will tell
            return

    def is_writable(self, path: str) -> bool:
        """Whether tools can write a path, or something on the way to it; also when that cannot be told."""
        try:
            return way_in(os.path.abspath(path), self.writable) is not None
        except FileRefused:
            return True


def can_be_written(folder: str) -> bool:
    """Whether tools that work in a folder can write it; rights do not matter, for they may be theirs to give."""
    try:
        return folder not in SYSTEM_FOLDERS and not os.statvfs(folder).f_flag & os.ST_RDONLY
    except (OSError, ValueError):  # it may still be made
        return True


def way_in(path: str, tops: Sequence[str], links: int = MOST_LINKS) -> tuple[str, list[str]] | None:
    """The folder among some into which a path leads, and the names from there on; None for a path that leads elsewhere.

    Links outside of these folders are their owner's, and are followed.
    """
    for top in tops:
        if is_inside(path, top):
            return top, [name for name in path[len(top) :].split(os.sep) if name]
    end = path.find(os.sep, 1)
    while tops:
        place, rest = (path, "") if end < 0 else (path[:end], path[end + 1 :])
        try:
            target = os.readlink(place)
        except OSError:  # no link, or nothing at all, which opening it will tell
            if end < 0:
                break
            end = path.find(os.sep, end + 1)
            continue
        if not links:
            raise FileRefused(errno.ELOOP, "it is behind too many links", path)
        return way_in(os.path.normpath(os.path.join(os.path.dirname(place), target, rest)), tops, links - 1)
    return None


def open_anywhere(path: str) -> int:
    try:
        return os.open(path, READING)
    except OSError as error:
        raise (no_regular_file(path) if error.errno == errno.ENXIO else error) from None  # which a socket gives


def open_below(top: str, names: Sequence[str], path: str) -> int:
    """Open a file step by step, so that nobody can put a link in the way meanwhile."""

    def entered(name: str, folder: int, how: int = PASSING) -> int:
        try:
            return os.open(name, how | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            raise refusal(error, name, folder, path) from None

    folder = open_folder(top, names[:-1], entered)
    try:
        return entered(names[-1] if names else os.curdir, folder, READING)
    finally:
        os.close(folder)


def refusal(error: OSError, name: str, folder: int, path: str) -> OSError:
    """Why a name on the way to a path cannot be opened."""
    if is_link(name, folder):
        which = "it" if name == os.path.basename(path) else f"'{name}' on the way to it"
        return FileRefused(errno.ELOOP, f"{which} is a link in a folder that tools can write", path)
    if error.errno == errno.ENXIO:
        return no_regular_file(path)
    return type(error)(error.errno, error.strerror, path)


def is_link(name: str, folder: int) -> bool:
    try:
        os.readlink(name, dir_fd=folder)
    except OSError:
        return False
    return True


def read_opened(fd: int, path: str, largest: int) -> FileContent:
    facts = os.fstat(fd)
    if not S_ISREG(facts.st_mode):
        raise no_regular_file(path, facts.st_mode)
    data = read_at_most(fd, facts.st_size, largest) if facts.st_size <= largest else None
    if data is None or len(data) > largest:
        raise FileRefused(errno.EFBIG, f"it is larger than {in_units(largest)}", path)
    return FileContent(data, facts)


def read_at_most(fd: int, expected: int, largest: int) -> bytes:
    """All that there is, or a little more than is allowed of what is growing."""
    data = os.read(fd, expected + 1)
    while len(data) <= largest and (more := os.read(fd, 1 << 16)):
        data += more
    return data


def no_regular_file(path: str, mode: int = 0) -> OSError:
    if S_ISDIR(mode):
        return IsADirectoryError(errno.EISDIR, "it is a folder", path)
    return FileRefused(errno.EINVAL, "it is not a regular file", path)


def in_units(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} bytes"


def stamp_of(path: str | Path) -> Stamp | None:
    """The stamp of a file; None when there is none."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return None
    return (facts.st_mtime_ns, facts.st_size, facts.st_ino)  # as `stamp`: this is asked at every call


def stamp(stat: os.stat_result) -> Stamp:
    """The stamp in what the system says of a file."""
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
