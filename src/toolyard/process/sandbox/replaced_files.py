"""What stays of a file that its owner replaced while something inside could write it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from toolyard.process.keeper.file_guards import SEPARATOR, content, told_beside
from toolyard.process.sandbox.mount_points import NEW_FILE, folder_itself, free_name, is_free, writable

if TYPE_CHECKING:
    from toolyard.files.write_times import Identity


def swap(path: str, data: bytes, *, like: int) -> str | None:
    """Put a new file in the place of whatever is there, with the rights of an open one; tells where that is now."""
    above, name = os.path.split(path)
    beside = f"{name}.{os.urandom(6).hex()}"
    with folder_itself(above) as folder, writable(folder):
        new = write_new(folder, name, data, os.fstat(like))
        was_there = not is_free(name, folder)
        if was_there:
            os.rename(name, beside, src_dir_fd=folder, dst_dir_fd=folder)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    return os.path.join(above, beside) if was_there else None


def keep_wanted(path: str, found_at: str, found: bytes | None, *, before: bytes, seen: bytes | None, like: int) -> str:
    """Put what is wanted of what was found into its place; tells where the rest went.

    That is what was seen at the first look. What was written there meanwhile is its owner's, since nobody else could.
    """
    above, name = os.path.split(path)
    now = content(path)
    wanted = before if found is None else found if seen is None else seen
    kept = wanted if now == before else now
    with folder_itself(above) as folder, writable(folder):
        if kept is not None and kept != now:
            new = write_new(folder, name, kept, os.fstat(like))
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        beside = os.path.basename(found_at)
        if kept == found:
            os.unlink(beside, dir_fd=folder)
            return ""
        place = free_name(f"{name}.from-sandbox", folder)
        os.rename(beside, place, src_dir_fd=folder, dst_dir_fd=folder)
    return os.path.join(above, place)


def write_new(folder: int, name: str, data: bytes, like: os.stat_result) -> str:
    """A new file beside a name in an open folder, with the rights and the owner of another; tells its name."""
    new = f"{name}.{os.urandom(6).hex()}"
    with open(os.open(new, NEW_FILE, 0o600, dir_fd=folder), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), like.st_mode & 0o777)
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            keep_owner(file.fileno(), like)
    return new


def keep_owner(fd: int, facts: os.stat_result) -> None:
    try:
        os.fchown(fd, facts.st_uid, facts.st_gid)
    except OSError:
        os.fchmod(fd, facts.st_mode & 0o755)


class ReplacedFile(NamedTuple):
    """A file that was replaced and is guarded again."""

    path: str
    moved_to: str
    """Where went what did not stay; empty when all of it did."""
    which: Identity


class ReplacedFiles:
    """What the guard tells of such files, each once."""

    def __init__(self, listed: str) -> None:
        self._file = told_beside(listed)
        self._read = 0

    def new(self) -> list[ReplacedFile]:
        """Those that were not told yet."""
        if not os.access(self._file, os.F_OK):  # asked several times in a call, and an exception costs more
            return []
        try:
            if os.stat(self._file).st_size == self._read:
                return []
            with open(self._file, "rb") as file:
                told = file.read()[self._read :]
        except OSError:
            return []
        self._read += len(told)
        fields = [os.fsdecode(field) for field in told.split(SEPARATOR)[:-1]]
        return [
            ReplacedFile(path=path, moved_to=to, which=(int(device), int(number)))
            for path, to, device, number in zip(*(iter(fields),) * 4, strict=True)
        ]
