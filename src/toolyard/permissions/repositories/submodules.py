"""The submodules that git's index names: git looks into each of them, and obeys what it finds there."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


COMMIT_MODE = b"\x00\x00\xe0\x00"
"""How the index says that a path is a commit of another repository."""
MODE_AT = 24
"""Where that stands in an entry, behind its times and numbers."""
EXTENDED, LONGEST_NAME = 0x4000, 0xFFF
HASHES = (20, 32)


class IndexUnread(Exception):
    """An index that is not understood."""


def submodule_paths(index: bytes) -> list[str]:
    """Where the submodules are, below the working tree."""
    if COMMIT_MODE not in index:  # nearly always, and the search is fast
        return []
    for hash_size in HASHES:
        try:
            return [path.decode("utf-8", "surrogateescape") for path in commits_in(index, hash_size)]
        except (IndexUnread, struct.error, ValueError, IndexError):
            continue
    raise IndexUnread


def commits_in(index: bytes, hash_size: int) -> Iterator[bytes]:
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
        if mode == COMMIT_MODE:
            yield name
        at = after


def variable_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it takes, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
