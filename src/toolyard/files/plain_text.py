"""The text of files that nobody vouches for: pipes, devices and what is too long are none.

What lies where tools can write, or came along with a workspace, is read by `data_itself` and `data_at`, which follow no
link: it may lead to what is hidden inside.
"""

from __future__ import annotations

import errno
import os
import stat

from toolyard.files.steps import open_itself

MOST_READ = 1 << 18
READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def text_of(path: str) -> str:
    """The text of a regular file; empty when there is none, or when it holds a NUL."""
    data = data_of(path)
    return "" if b"\0" in data else os.fsdecode(data)


def text_itself(path: str) -> str:
    """The same, where no link leads to it."""
    data = data_itself(path)
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
    """The beginning of a regular file, also behind links, which are its owner's; nothing when there is none."""
    try:
        fd = os.open(path, READING)
    except (OSError, ValueError):
        return b""
    return begin_of(fd, most)


def data_itself(path: str, most: int = MOST_READ) -> bytes:
    """The same of an absolute path, with no link at its end or on the way: it is opened step by step."""
    above, name = os.path.split(path)
    try:
        folder = open_itself(above)
    except (OSError, ValueError):
        return b""
    try:
        return data_at(name, folder, most)
    finally:
        os.close(folder)


def data_at(name: str, folder: int, most: int = MOST_READ) -> bytes:
    """The same of a file in an open folder."""
    try:
        fd = os.open(name, READING | os.O_NOFOLLOW, dir_fd=folder)
    except (OSError, ValueError):
        return b""
    return begin_of(fd, most)


def begin_of(fd: int, most: int) -> bytes:
    """The beginning of an open file, which is closed."""
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
