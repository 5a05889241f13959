"""How a file that the application obeys is opened: a regular file, bounded, its bytes and its stamp at once."""

from __future__ import annotations

import errno
import os
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Stamp: TypeAlias = "tuple[int, int, int]"
"""What changes when a file is written or replaced."""
LARGEST = 16 << 20


def read_file(path: str | Path, *, largest: int = LARGEST) -> tuple[bytes, Stamp]:
    """A file's content and its stamp; by bare system calls, since a hundred tools are read at every start.

    A pipe would never open and a device never end, so only a regular file is read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        stat = os.fstat(fd)
        if not S_ISREG(stat.st_mode):
            raise IsADirectoryError if S_ISDIR(stat.st_mode) else OSError(errno.EINVAL, "not a regular file")
        if stat.st_size > largest:
            raise OSError(errno.EFBIG, f"larger than {largest} bytes")
        source = os.read(fd, stat.st_size + 1)
        while more := os.read(fd, 65536):
            source += more
    finally:
        os.close(fd)
    return source, stamp(stat)


def stamp_of(path: str | Path) -> Stamp | None:
    """The stamp of a file; None when there is none."""
    try:
        return stamp(os.stat(path))
    except (OSError, ValueError):
        return None


def stamp(stat: os.stat_result) -> Stamp:
    """The stamp in what the system says of a file."""
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
