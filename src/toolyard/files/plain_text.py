"""The text of files that nobody vouches for: pipes, devices and what is too long are none."""

from __future__ import annotations

import os
import stat

MOST_READ = 1 << 18


def text_of(path: str) -> str:
    """The text of a regular file; empty when there is none, or when it holds a NUL."""
    data = data_of(path)
    return "" if b"\0" in data else os.fsdecode(data)


def data_of(path: str, most: int = MOST_READ) -> bytes:
    """The beginning of a regular file; nothing when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except (OSError, ValueError):
        return b""
