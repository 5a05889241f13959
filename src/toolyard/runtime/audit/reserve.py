"""Room for a log on a disk that becomes full: blocks that belong to its file, and that nobody else can use up.

Each day's file has some beyond its end, taken long before they are needed. So has an empty file that becomes that of
the next day.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from stat import S_ISREG
from typing import TYPE_CHECKING

from toolyard.files.own.entering import entered, open_own

if TYPE_CHECKING:
    from pathlib import Path

RESERVE = 256 << 10
KEPT_FOR_ENDS = 64 << 10
"""Of it, what is left to the ends of calls that have begun: nothing whose number or length a model chooses gets it."""
RENEW_AFTER = RESERVE // 8
"""After how many bytes it is made whole again, so that a disk that becomes full leaves nearly all of it."""
LEAST_TAKEN = 4 << 10
LOOK_AGAIN = 4 << 10
"""After how many bytes it is tried again to get more."""
NEVER = 1 << 62
TAKE_BLOCKS = 0x4030582A
"""Of `ioctl`: give a file blocks beyond its end and leave its end where it is (`FS_IOC_RESVSP64`), as `fallocate`
does, which Python lets us have only with another end."""
WRITING = os.O_WRONLY | os.O_CREAT
FULL = (errno.ENOSPC, errno.EDQUOT)


class Reserve:
    """The room that the file which is open has beyond its end."""

    def __init__(self) -> None:
        self.due_at = 0
        """From which size of the file on more is to be taken."""
        self.is_short = False
        """Whether no more could be had, since the disk is full."""

    def forget(self) -> None:
        """Another file is open now."""
        self.due_at, self.is_short = 0, False

    def renew(self, fd: int, size: int, *, line: int, ends: int) -> None:
        """Take more, if there is any: also for the line that comes now, and for the ends of what runs."""
        try:
            take_blocks(fd, size, RESERVE + line + ends)
        except OSError as error:
            self.is_short = error.errno in FULL
            self.due_at = size + LOOK_AGAIN if self.is_short else NEVER
            if self.is_short:
                take_what_is_left(fd, size)
        else:
            self.is_short = False
            self.due_at = size + line + RENEW_AFTER


def room_beyond(fd: int) -> int:
    """How many bytes a file has beyond its end."""
    facts = os.fstat(fd)
    return facts.st_blocks * 512 - facts.st_size


def take_blocks(fd: int, start: int, size: int = RESERVE) -> None:
    space = b"".join((bytes(8), start.to_bytes(8, "little"), size.to_bytes(8, "little"), bytes(24)))
    fcntl.ioctl(fd, TAKE_BLOCKS, space)


def take_what_is_left(fd: int, start: int) -> None:
    """A disk that has no room for all of the reserve may have some for a part of it."""
    size = RESERVE // 2
    while size >= LEAST_TAKEN:
        try:
            take_blocks(fd, start, size)
        except OSError:
            size //= 2
        else:
            return


def give_back(fd: int) -> None:
    """Of a file that nothing will be added to."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, os.fstat(fd).st_size)


def keep_for_next_day(folder: Path) -> None:
    """An empty file with room, which one that is there may lack."""
    with contextlib.suppress(OSError):
        fd = open_own(reserve_path(folder), WRITING)
        try:
            if room_beyond(fd) < RESERVE:
                take_blocks(fd, 0)
        finally:
            os.close(fd)


def become_day(folder: Path, days: int, day_file: str) -> None:
    """Let the file that was kept be that of a day for which there is none, in the folder of days, which is open."""
    name = os.path.basename(reserve_path(folder))
    with contextlib.suppress(OSError), entered(folder.parent) as above:
        facts = os.stat(name, dir_fd=above, follow_symlinks=False)
        if not is_there(day_file, days) and S_ISREG(facts.st_mode) and facts.st_size == 0:
            os.rename(name, day_file, src_dir_fd=above, dst_dir_fd=days)


def is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def reserve_path(folder: Path) -> str:
    """Beside the folder of a log, which holds nothing but days."""
    return f"{folder}.next-day"
