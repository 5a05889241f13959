"""Git's index: read as git does, checked, and written anew.

Git believes its index: an entry `.git/hooks/…` or `../…` would be written there by the next `git checkout`. So nothing
of the file itself goes to the other side: only entries that everybody reads alike, and no extension, each of which git
would believe as well. What an index that is split in two holds is put together from both.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from toolyard.core.regexes import late_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SIGNATURE = b"DIRC"
STAT, MODE = 40, slice(24, 28)
EXTENDED, ASSUMED_OR_STAGE, STAGE, LONGEST_LENGTH = 0x4000, 0xB000, 0x3000, 0x0FFF
SKIPPED, INTENDED = 0x4000, 0x2000
"""Of the extended flags: not in a sparse working tree, and to be added later."""
FILE, PROGRAM, LINK, MODULE, FOLDER = (
    mode.to_bytes(4, "big") for mode in (0o100644, 0o100755, 0o120000, 0o160000, 0o040000)
)
"""A folder is one entry where the index itself is sparse."""
FILES = frozenset((FILE, PROGRAM, LINK, MODULE))
SPLIT, SPARSE = b"link", b"sdir"
FORBIDDEN = (b"", b".", b"..", b".git", b"git~1")
DOUBTFUL = late_pattern(
    rb"\A\Z|\A/|//|/\Z|(?:\A|[/\\])\.\.?(?:[/\\]|\Z)|\.git|git~1|\xe2\x80|\xe2\x81|\xef\xbb\xbf", re.I
)
"""What a path has in it that may not be given to git; most have nothing of it."""
MOST_ENTRIES, LONGEST_NAME, MOST_NAMES = 1_000_000, 4096, 1 << 27
LONGEST_NUMBER = 8
"""What an index is bounded by, the names by their length together: version 4 writes one in a few bytes."""
UNSEEN = late_pattern("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Letters that some file systems take no notice of in a name."""


class IndexEntry(NamedTuple):
    """One path that is staged; `stat` is what git remembers of the file on the disk, and its mode."""

    name: bytes
    flags: int
    extended: int
    id: bytes
    stat: bytes

    @property
    def mode(self) -> bytes:
        return self.stat[MODE]

    @property
    def place(self) -> tuple[bytes, int]:
        """What entries are sorted by."""
        return self.name, self.flags & STAGE


class GitIndex(NamedTuple):
    """What is staged, in order."""

    version: int
    id_length: int
    entries: list[IndexEntry]

    def digest(self) -> str:
        """Of what is staged, whatever git remembers of the files on the disk."""
        digest = hashlib.sha256()
        for name, flags, extended, id, stat in self.entries:
            digest.update(b"%b%b%b%b\0" % (stat[MODE], id, (flags << 16 | extended).to_bytes(4, "big"), name))
        return digest.hexdigest()

    def objects(self) -> Iterator[str]:
        """The objects that have to be there; commits of submodules are elsewhere."""
        return (one.id.hex() for one in self.entries if one.mode != MODULE)

    def written(self) -> bytes:
        """The same as a file."""
        is_extended = any(one.extended for one in self.entries)
        version = 4 if self.version == 4 else 3 if is_extended else 2
        parts = [SIGNATURE, version.to_bytes(4, "big"), len(self.entries).to_bytes(4, "big")]
        before = b""
        for one in self.entries:
            parts += written_entry(one, before if version == 4 else None)
            before = one.name
        if any(one.mode == FOLDER for one in self.entries):
            parts += [SPARSE, bytes(4)]
        data = b"".join(parts)
        return data + hashlib.new("sha1" if self.id_length == 20 else "sha256", data, usedforsecurity=False).digest()


def written_entry(one: IndexEntry, before: bytes | None) -> list[bytes]:
    """As version 4 does it where the name before is given: without what both names begin with."""
    length = min(len(one.name), LONGEST_LENGTH)
    flags = one.flags | length | (EXTENDED if one.extended else 0)
    parts = [one.stat, one.id, flags.to_bytes(2, "big"), one.extended.to_bytes(2, "big") if one.extended else b""]
    if before is not None:
        common = len_of_common(before, one.name)
        return [*parts, written_number(len(before) - common), one.name[common:], b"\0"]
    size = sum(map(len, parts)) + len(one.name)
    return [*parts, one.name, bytes(8 - size % 8)]


def read_index(data: bytes, id_length: int, beside: Callable[[str], bytes | None]) -> GitIndex:
    """What is staged; ValueError where git could not read it, or would be led elsewhere by it.

    `beside` tells what another file in the folder of the index holds.
    """
    version, entries, extensions = read_file(data, id_length)
    if link := extensions.get(SPLIT):
        base = beside(f"sharedindex.{link[:id_length].hex()}") if any(link[:id_length]) else None
        shared = read_file(base, id_length)[1] if base else []
        entries = joined(shared, entries, link[id_length:])
    check_entries(entries, is_sparse=SPARSE in extensions)
    return GitIndex(version, id_length, entries)


def read_file(data: bytes, id_length: int) -> tuple[int, list[IndexEntry], dict[bytes, bytes]]:
    """The version, entries and extensions of one file."""
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != SIGNATURE or not 2 <= version <= 4:
        raise ValueError("not an index")
    entries, at, name, length = [], 12, b"", 0
    if count > MOST_ENTRIES:
        raise ValueError("more entries than can be compared")
    for _ in range(count):
        id_at, flags_at = at + STAT, at + STAT + id_length
        flags, extended, start = int.from_bytes(data[flags_at : flags_at + 2], "big"), 0, flags_at + 2
        if flags & EXTENDED:
            extended, start = int.from_bytes(data[start : start + 2], "big"), start + 2
        kept = 0
        if version == 4:
            removed, start = number_at(data, start)
            kept = len(name) - removed
        end = data.index(b"\0", start)
        if kept < 0 or extended & ~(SKIPPED | INTENDED):
            raise ValueError("not an entry")
        length += kept + end - start
        if kept + end - start > LONGEST_NAME or length > MOST_NAMES:
            raise ValueError("names longer than can be compared")
        name = name[:kept] + data[start:end]
        if flags & LONGEST_LENGTH != min(len(name), LONGEST_LENGTH):
            raise ValueError("a name is not as long as it says, so git would read on elsewhere")
        entries.append(IndexEntry(name, flags & ASSUMED_OR_STAGE, extended, data[id_at:flags_at], data[at:id_at]))
        at = end + 1 if version == 4 else at + ((end - at + 8) & ~7)
    return version, entries, read_extensions(data[at : len(data) - id_length])


def read_extensions(data: bytes) -> dict[bytes, bytes]:
    """The extensions, each by its name; ValueError for one that git must know, and we do not."""
    found, at = {}, 0
    while at < len(data):
        name, start = data[at : at + 4], at + 8
        at = start + int.from_bytes(data[at + 4 : start], "big")
        if at > len(data) or name in found or not (name[:1].isupper() or name in (SPLIT, SPARSE)):
            raise ValueError(f"an extension that is none: {name!r}")
        found[name] = data[start:at]
    return found


def joined(shared: list[IndexEntry], own: list[IndexEntry], changes: bytes) -> list[IndexEntry]:
    """An index that goes on from another one: some entries there are gone, some replaced, and some are new."""
    removed, at = read_bitmap(changes, 0, len(shared)) if changes else ([], 0)
    replaced, _ = read_bitmap(changes, at, len(shared)) if changes else ([], 0)
    result = list(shared)
    for position, one in zip(replaced, own, strict=False):
        result[position] = one._replace(name=result[position].name)
    for position in sorted(removed, reverse=True):
        del result[position]
    by_place = {one.place: one for one in (*result, *own[len(replaced) :])}
    return [by_place[place] for place in sorted(by_place)]


def read_bitmap(data: bytes, at: int, size: int) -> tuple[list[int], int]:
    """The numbers in a compressed bitmap, all of them below a size; and where it ends."""
    words_at, count = at + 8, int.from_bytes(data[at + 4 : at + 8], "big")
    end = words_at + 8 * count
    if end + 4 > len(data):
        raise ValueError("a bitmap is cut short")
    words = iter([int.from_bytes(data[place : place + 8], "big") for place in range(words_at, end, 8)])
    found: list[int] = []
    position = 0
    for word in words:
        repeated, literal = 64 * (word >> 1 & 0xFFFFFFFF), word >> 33
        if literal > count:
            raise ValueError("a bitmap is cut short")
        if word & 1:
            found += range(position, min(position + repeated, size + 1))
        position += repeated
        for _ in range(literal):
            bits = next(words, 0)
            found += [position + bit for bit in range(64) if bits >> bit & 1]
            position += 64
    if found and found[-1] >= size:
        raise ValueError("a bitmap names more than there is")
    return found, end + 4


def check_entries(entries: list[IndexEntry], *, is_sparse: bool) -> None:
    """ValueError for what git would not write, and for what would lead it elsewhere."""
    before: tuple[bytes, int] = (b"", 0)
    folders: set[bytes] = set()
    for name, flags, extended, _, stat in entries:
        mode, place = stat[MODE], (name, flags & STAGE)
        if place <= before or (name == before[0] and not before[1]):
            raise ValueError(f"not in order: {name!r}")
        before = place
        is_folder = mode == FOLDER and is_sparse and name.endswith(b"/") and bool(extended & SKIPPED)
        if mode not in FILES and not is_folder:
            raise ValueError(f"neither a file, a link nor a submodule: {name!r}")
        check_path(name[:-1] if is_folder else name, is_link=mode == LINK)
        above = name.rpartition(b"/")[0]
        while above and not place[1] and above not in folders:
            folders.add(above)
            above = above.rpartition(b"/")[0]
    if any(one.name in folders and not one.flags & STAGE for one in entries):
        raise ValueError("a file where there is a folder, too")


def check_path(name: bytes, *, is_link: bool = False) -> None:
    """ValueError for a path that leads out of the working tree, or into the git folder."""
    if not DOUBTFUL.search(name):
        return
    text = UNSEEN.sub("", name.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    for part in re.split(rb"[/\\]", text):
        plain = part.lower()
        short = plain.partition(b":")[0].rstrip(b" .")
        if plain in FORBIDDEN or short in FORBIDDEN[3:] or (is_link and plain == b".gitmodules"):
            raise ValueError(f"a path that leads elsewhere: {name!r}")


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it needs, as git writes offsets; and where it ends."""
    value, start, byte = -1, at, 0x80
    while byte & 0x80:
        if at == len(data) or at == start + LONGEST_NUMBER:
            raise ValueError("a number is cut short, or too long")
        byte = data[at]
        value, at = ((value + 1) << 7) | (byte & 0x7F), at + 1
    return value, at


def written_number(value: int) -> bytes:
    """The same the other way round."""
    written = [value & 0x7F]
    while value := value >> 7:
        value -= 1
        written.append(0x80 | value & 0x7F)
    return bytes(reversed(written))


def len_of_common(one: bytes, other: bytes) -> int:
    """How much of the beginning two names have in common."""
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)
