"""The text of files that nobody vouches for: pipes, devices and what is too long are none."""

from __future__ import annotations

import errno
import os
import stat

MOST_READ = 1 << 18


def text_of(path: str) -> str:
    """The text of a regular file; empty when there is none, or when it holds a NUL."""
    data = data_of(path)
    return "" if b"\0" in data else os.fsdecode(data)


def path_of(data: bytes) -> str:
    """The path that a file names; OSError where it can be none, which a NUL in it makes it."""
    if b"\0" in data:
        raise OSError(errno.EINVAL, "a NUL is in a path")
    return os.fsdecode(data)


def printable(name: str) -> str:
    """A name that somebody else chose, as it can be shown and sent: bytes that are no text, and controls, are told."""
    if name.isprintable():
        return name
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in name)


def data_of(path: str, most: int = MOST_READ) -> bytes:
    """The beginning of a regular file; nothing when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        return read_whole(fd, most) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_whole(fd: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(fd, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)
