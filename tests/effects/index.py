"""What git's index says, without what it only remembers about files."""

from __future__ import annotations

import struct


def entries_of(data: bytes) -> list[tuple[bytes, bytes]] | bytes:
    """Mode and object with the flags and the path of each entry; of another format than the usual, all bytes."""
    signature, version, count = struct.unpack(">4sII", data[:12]) if len(data) >= 12 else (b"", 0, 0)
    if signature != b"DIRC" or version not in (2, 3):
        return data
    found, at = [], 12
    for _ in range(count):
        flags = struct.unpack(">H", data[at + 60 : at + 62])[0]
        path_at = at + (64 if flags & 0x4000 else 62)
        end = data.index(b"\0", path_at)
        found.append((data[at + 24 : at + 28] + data[at + 40 : at + 60], data[path_at:end]))
        at += (end - at + 8) // 8 * 8
    return found
