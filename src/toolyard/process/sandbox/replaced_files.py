"""What stays of a file that its owner replaced while something inside could write it."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from toolyard.files.plain_text import printable
from toolyard.process.keeper.guard_lists import SEPARATOR, told_beside
from toolyard.process.keeper.held_files import SAFELY, content
from toolyard.process.sandbox.mount_points import NEW_FILE, folder_itself, free_name, is_free, move_unwanted, writable

if TYPE_CHECKING:
    from collections.abc import Sequence

Fate = Literal["kept", "removed", "ended", "lost"]
"""It is guarded again; it was removed, and is there as before; all that ran inside was ended; nothing is there now."""


class Outcome(NamedTuple):
    """What became of a guarded path that was replaced."""

    path: str
    moved_to: str
    """Where went what did not stay; empty when all of it did."""
    what: Fate = "kept"


def swap(path: str, data: bytes, *, like: os.stat_result) -> str | None:
    """Put a new file in the place of whatever is there, with the rights of another; tells where that is now."""
    above, name = os.path.split(path)
    beside = f"{name}.{os.urandom(6).hex()}"
    with folder_itself(above) as folder, writable(folder):
        new = write_new(folder, name, data, like)
        was_there = not is_free(name, folder)
        if was_there:
            os.rename(name, beside, src_dir_fd=folder, dst_dir_fd=folder)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    return os.path.join(above, beside) if was_there else None


def keep_wanted(
    path: str, found_at: str, found: bytes | None, wanted: bytes | None, *, before: bytes, like: os.stat_result
) -> str:
    """Put what is wanted into its place, or leave what was there before; tells where what was found went, if it did.

    What was written there meanwhile is its owner's, since nobody else could.
    """
    above, name = os.path.split(path)
    with folder_itself(above) as folder, writable(folder):
        now = content_at(name, folder)
        kept = now if now != before else before if wanted is None else wanted
        if kept is not None and kept != now:
            try:
                new = write_new(folder, name, kept, like)
                os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:  # as on a full disk: then it stays beside what was there before
                kept = now
        beside = os.path.basename(found_at)
        if kept == found:
            os.unlink(beside, dir_fd=folder)
            return ""
        place = free_name(f"{name}.from-sandbox", folder)
        os.rename(beside, place, src_dir_fd=folder, dst_dir_fd=folder)
    return os.path.join(above, place)


def content_at(name: str, folder: int) -> bytes | None:
    """What a regular file in an open folder holds; None when there is none, or it is too long."""
    try:
        fd = os.open(name, SAFELY, dir_fd=folder)
    except OSError:
        return None
    try:
        return content(fd)
    finally:
        os.close(fd)


def put_aside(path: str, what: Fate = "removed") -> Outcome:
    """Give whatever is at a path another name, for which no room is needed."""
    return Outcome(path, move_unwanted([path]).get(path, ""), what)


def write_new(folder: int, name: str, data: bytes, like: os.stat_result) -> str:
    """A new file beside a name in an open folder, with the rights and the owner of another; tells its name.

    OSError where there is no room for it; nothing of it is left then.
    """
    new = f"{name}.{os.urandom(6).hex()}"
    fd = os.open(new, NEW_FILE, 0o600, dir_fd=folder)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), like.st_mode & 0o777)
            if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                keep_owner(file.fileno(), like)
    except OSError:
        os.unlink(new, dir_fd=folder)
        raise
    return new


def keep_owner(fd: int, facts: os.stat_result) -> None:
    try:
        os.fchown(fd, facts.st_uid, facts.st_gid)
    except OSError:
        os.fchmod(fd, facts.st_mode & 0o755)


class ReplacedFiles:
    """What the guard tells of such files, each once."""

    def __init__(self, listed: str) -> None:
        self._file = told_beside(listed)
        self._read = 0

    def new(self) -> list[Outcome]:
        """What was not told yet."""
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
        return [Outcome(path, to, cast("Fate", what)) for path, to, what in zip(*(iter(fields),) * 3, strict=True)]


def notes_on(outcomes: Sequence[Outcome]) -> list[str]:
    """What to say of them: what was done, and the line that brings back what was put aside."""
    return list(dict.fromkeys(note for outcome in outcomes if (note := note_on(outcome))))


def note_on(outcome: Outcome) -> str:
    path, to = printable(outcome.path), printable(outcome.moved_to)
    if outcome.moved_to:
        line = printable(f"mv {shlex.quote(outcome.moved_to)} {shlex.quote(outcome.path)}")
        reason = "was replaced while something ran inside that could write it"
        if outcome.what == "lost":
            reason += ", and what was there before could not be put back, since the disk is full or cannot be written"
        return f"[{path} {reason}; what was found there is {to}: look at it, and if it is yours: {line}]"
    if outcome.what == "removed":
        return f"[{path} was removed while something ran inside, which could make another: it is there as it was]"
    if outcome.what == "ended":
        return f"[{path} was replaced while something ran inside, so all that ran there was ended]"
    return ""
