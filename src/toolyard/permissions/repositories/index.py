"""The files that git's index names, and the submodules, each of which git looks into."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


COMMIT_MODE = b"\x00\x00\xe0\x00"
"""How the index says that a path is a commit of another repository, behind the times and numbers of an entry."""
MODE_AT = 24
EXTENDED, LONGEST_NAME = 0x4000, 0xFFF
HASHES = (20, 32)


class IndexUnread(Exception):
    """An index that is not understood."""


def submodule_paths(index: bytes) -> list[str]:
    """Where the submodules are, below the working tree."""
    if COMMIT_MODE not in index:  # nearly always, and the search is fast
        return []
    return [name for mode, name in entries_in(index) if mode == COMMIT_MODE]


def tracked_paths(index: bytes) -> list[str]:
    """All files that git tracks, below the working tree."""
    return [name for _, name in entries_in(index)]


def entries_in(index: bytes) -> list[tuple[bytes, str]]:
    for hash_size in HASHES:
        try:
            return [(mode, os.fsdecode(name)) for mode, name in read_entries(index, hash_size)]
        except (IndexUnread, struct.error, ValueError, IndexError):
            continue
    raise IndexUnread


def read_entries(index: bytes, hash_size: int) -> Iterator[tuple[bytes, bytes]]:
    signature, version, count = struct.unpack_from(">4sII", index)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise IndexUnread
    at, name = 12, b""
    for _ in range(count):
        mode = index[at + MODE_AT : at + MODE_AT + 4]
        (flags,) = struct.unpack_from(">H", index, at + 40 + hash_size)
        start = at + 42 + hash_size + (2 if version > 2 and flags & EXTENDED else 0)
        if version == 4:
            removed, start = variable_number(index, start)
            end = index.index(b"\0", start)
            name = name[: len(name) - removed] + index[start:end]
            after = end + 1
        else:
            end = index.index(b"\0", start)
            name = index[start:end]
            after = at + (end - at) // 8 * 8 + 8
        if (flags & LONGEST_NAME) != min(len(name), LONGEST_NAME):
            raise IndexUnread
        yield mode, name
        at = after


def variable_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it takes, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
