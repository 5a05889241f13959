"""Git's index: what is staged, without what it remembers of the files on the disk, and whether git may be given it.

Git believes its index: an entry `.git/hooks/…` or `../…` would be written there by the next `git checkout`.
"""

from __future__ import annotations

import hashlib
import re

EXTENDED, KEPT_FLAGS = 0x4000, 0xF000
STAT, MODE = 40, slice(24, 28)
SIGNATURE = b"DIRC"
FORBIDDEN = (b"", b".", b"..", b".git", b"git~1")
DOUBTFUL = re.compile(rb"\A\Z|\A/|//|(?:\A|/)\.\.?(?:/|\Z)|\.git|git~1", re.IGNORECASE)
"""What a path has in it that may not be given to git; most have nothing of it."""


def staged_in(data: bytes, id_length: int) -> str:
    """A digest of what is staged; ValueError where git could not read it, or would be led elsewhere by it."""
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != SIGNATURE or not 2 <= version <= 4:
        raise ValueError("not an index")
    digest, at, name = hashlib.sha256(), 12, b""
    for _ in range(count):
        flags_at = at + STAT + id_length
        flags = int.from_bytes(data[flags_at : flags_at + 2], "big")
        start = flags_at + (4 if flags & EXTENDED else 2)
        kept = 0
        if version == 4:
            removed, start = number_at(data, start)
            kept = len(name) - removed
        end = data.index(b"\0", start)
        if kept < 0:
            raise ValueError("a name is cut short by more than it has")
        name = name[:kept] + data[start:end]
        check_path(name)
        mode_and_id = data[at + MODE.start : at + MODE.stop] + data[at + STAT : flags_at]
        digest.update(mode_and_id + (flags & KEPT_FLAGS).to_bytes(2, "big") + data[flags_at + 2 : start] + name + b"\0")
        at = end + 1 if version == 4 else at + ((end - at + 8) & ~7)
    digest.update(shared_part(data[at : -id_length or None]))
    return digest.hexdigest()


def check_path(name: bytes) -> None:
    """ValueError for a path that leads out of the working tree, or into the git folder."""
    if DOUBTFUL.search(name) and any(part in FORBIDDEN for part in name.lower().removesuffix(b"/").split(b"/")):
        raise ValueError(f"a path that leads elsewhere: {name!r}")


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it needs, as git writes offsets; and where it ends."""
    byte = data[at]
    value, at = byte & 0x7F, at + 1
    while byte & 0x80:
        byte = data[at]
        value, at = ((value + 1) << 7) | (byte & 0x7F), at + 1
    return value, at


def shared_part(extensions: bytes) -> bytes:
    """The extension that says which other index this one goes on from."""
    at = 0
    while at + 8 <= len(extensions):
        end = at + 8 + int.from_bytes(extensions[at + 4 : at + 8], "big")
        if extensions[at : at + 4] == b"link":
            return extensions[at:end]
        at = end
    return b""
