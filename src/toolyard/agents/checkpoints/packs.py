"""Objects on disk: packs that are written once, whole, and never changed.

A pack is a file of compressed objects with an index beside it. It counts from the moment at which it has its name, and
it gets that last, so that one that was being written when the machine stopped is no pack.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.agents.checkpoints.objects import DIGEST_SIZE, Digest, digest_of, new_digest
from toolyard.files.atomic import replace_within, sync_folder
from toolyard.files.own.entering import enter, entered, open_own, read_own, remove_own
from toolyard.files.own.folder_listing import FolderListing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from io import BufferedWriter
    from pathlib import Path

PIECE = 1 << 20
LEVEL = 1
"""Of compression: more costs far more time than it saves room."""
WORTH_IT = 0.9
LONG_LISTING = 1 << 16
Encoding = Literal["raw", "zlib"]


class Damaged(Exception):
    """A kept object is not what it was."""


class PackedObject(msgspec.Struct, frozen=True, array_like=True):
    """Where an object lies in its pack."""

    digest: Digest
    offset: int
    stored: int
    size: int
    encoding: Encoding


class PackIndex(msgspec.Struct, frozen=True):
    """What a pack has."""

    places: list[PackedObject]


INDEX_DECODER = msgspec.msgpack.Decoder(PackIndex)


class Packs:
    """All packs of one store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._listing = FolderListing(folder)
        self._known: dict[Digest, tuple[str, PackedObject]] = {}
        self._names: frozenset[str] = frozenset()
        """The packs that it knows."""
        self._files: dict[str, int] = {}
        os.close(enter(folder, make=True))
        self.reread()

    def reread(self) -> bool:
        """Learn of packs that others wrote or removed; whether some were removed."""
        names = frozenset(name for name in self._listing.sizes() if name.endswith(".pack"))
        gone = self._names - names
        if gone:
            self._known = {digest: at for digest, at in self._known.items() if at[0] not in gone}
        for name in sorted(names - self._names):
            for place in read_index(self._index_of(name)):
                self._known.setdefault(place.digest, (name, place))
        self._names = names
        return bool(gone)

    def __contains__(self, digest: Digest) -> bool:
        return digest in self._known

    def read(self, digest: Digest) -> bytes:
        """An object, whole; Damaged when the disk does not give what was kept."""
        data = b"".join(self.pieces(digest))
        if digest_of(data) != digest:
            raise Damaged(f"the kept object {digest.hex()} is damaged")
        return data

    def pieces(self, digest: Digest) -> Iterator[bytes]:
        """An object, piece by piece, for what may be too large to hold."""
        if digest not in self._known:
            raise Damaged(f"the kept object {digest.hex()} is missing")
        pack, place = self._known[digest]
        fd, at, left = self._opened(pack), place.offset, place.stored
        unpack = zlib.decompressobj() if place.encoding == "zlib" else None
        try:
            while left:
                piece = os.pread(fd, min(left, PIECE), at)
                if not piece:
                    raise Damaged(f"the pack {pack} is cut short")
                at, left = at + len(piece), left - len(piece)
                yield unpack.decompress(piece) if unpack else piece
            if unpack:
                yield unpack.flush()
        except zlib.error as error:
            raise Damaged(f"the pack {pack} is damaged: {error}") from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[PackWriter]:
        """A new pack, which is there when this ends; none when nothing was added, or an error ended it."""
        number = max((int(name[:-5]) for name in self._listing.sizes() if name.endswith(".pack")), default=0) + 1
        name = f"{number:08}.pack"
        partial = self._folder / f"{name}.partial"
        writer = PackWriter(partial, self)
        try:
            yield writer
            writer.finish()
            if writer.places:
                index = msgspec.msgpack.encode(PackIndex(writer.places))
                with entered(self._folder) as folder:
                    replace_within(folder, self._index_of(name).name, index, durable=True, with_folder=False)
                    os.rename(partial.name, name, src_dir_fd=folder, dst_dir_fd=folder)
                    sync_folder(folder)
                self._known |= {place.digest: (name, place) for place in writer.places}
                self._names |= {name}
        finally:
            writer.close()

    def keep_only(self, live: Collection[Digest]) -> int:
        """Forget all other objects; the number of bytes that this freed.

        What a pack still has of use is written into a new one first. So nothing is lost by a stop at any moment.
        """
        before = self.size()
        by_pack: dict[str, list[PackedObject]] = {}
        for pack, place in self._known.values():
            by_pack.setdefault(pack, []).append(place)
        poor = [pack for pack, places in by_pack.items() if is_poor(places, live)]
        with self.writing() as new:
            for pack in poor:
                for place in by_pack[pack]:
                    if place.digest in live:
                        new.copy(place, os.pread(self._opened(pack), place.stored, place.offset))
        for pack in poor:
            self._remove(pack)
        return before - self.size()

    def remove_leftovers(self) -> None:
        """Remove what was being written by somebody who did not live to finish it; only for who holds the lock."""
        names = self._listing.sizes()
        for name in names:
            lone = name.endswith(".index") and f"{name[:-6]}.pack" not in names
            if lone or name.endswith(".partial") or name.startswith("."):
                remove_own(self._folder / name)

    def size(self) -> int:
        """Bytes on disk."""
        return sum(self._listing.sizes().values())

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])

    def _remove(self, pack: str) -> None:
        remove_own(self._folder / pack)
        remove_own(self._index_of(pack))
        if fd := self._files.pop(pack, None):
            os.close(fd)
        self._known = {digest: at for digest, at in self._known.items() if at[0] != pack}
        self._names -= {pack}

    def _opened(self, pack: str) -> int:
        if pack not in self._files:
            self._files[pack] = open_own(self._folder / pack)
        return self._files[pack]

    def _index_of(self, pack: str) -> Path:
        return (self._folder / pack).with_suffix(".index")


class PackWriter:
    """Adds objects to a pack that nobody sees yet; what is in another pack already is not added."""

    def __init__(self, path: Path, known: Packs) -> None:
        self.places: list[PackedObject] = []
        self._known = known
        self._own: set[Digest] = set()
        self._path = path
        self._opened: BufferedWriter | None = None
        self._offset = 0

    def add(self, data: bytes) -> Digest:
        """Keep an object that is at hand."""
        digest = digest_of(data)
        if not self._has(digest):
            packed = zlib.compress(data, LEVEL)
            if len(packed) < len(data) * WORTH_IT:
                self._append(digest, packed, len(data), "zlib")
            else:
                self._append(digest, data, len(data), "raw")
        return digest

    def add_listing(self, data: bytes) -> Digest:
        """Keep what is mostly digests, in which there is little to compress; only what is long is worth the time."""
        if len(data) > LONG_LISTING:
            return self.add(data)
        digest = digest_of(data)
        if not self._has(digest):
            self._append(digest, data, len(data), "raw")
        return digest

    def add_file(self, fd: int, size: int, largest: int) -> tuple[Digest, int] | None:
        """Keep what a file has, in one reading; None when it has more than is allowed."""
        if size <= PIECE:
            data = os.read(fd, PIECE + 1)
            if len(data) <= PIECE:
                return self.add(data), len(data)
            os.lseek(fd, 0, os.SEEK_SET)
        return self._add_large(fd, largest)

    def copy(self, place: PackedObject, packed: bytes) -> None:
        """Take an object over from another pack as it is."""
        if place.digest not in self._own:
            self._append(place.digest, packed, place.size, place.encoding)

    def finish(self) -> None:
        """All that was added is on the disk."""
        if self._opened:
            self._opened.flush()
            os.fsync(self._opened.fileno())

    def close(self) -> None:
        """Leave nothing behind of a pack that did not get its name."""
        if self._opened:
            self._opened.close()
            remove_own(self._path)

    @property
    def _file(self) -> BufferedWriter:
        """The pack, made when something is to be added: mostly nothing is."""
        if self._opened is None:
            fd = open_own(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            self._opened = open(fd, "wb")  # noqa: SIM115 - closed by `close`, which `writing` calls
        return self._opened

    def _add_large(self, fd: int, largest: int) -> tuple[Digest, int] | None:
        """Hash, compress and write piece by piece; taken back when it turns out to be known or too large."""
        digest, size, start, stored = new_digest(), 0, self._offset, 0
        pack: zlib._Compress | None = None
        while piece := os.read(fd, PIECE):
            if not size:
                pack = zlib.compressobj(LEVEL) if shrinks(piece) else None
            size += len(piece)
            if size > largest:
                self._take_back(start)
                return None
            digest.update(piece)
            stored += self._file.write(pack.compress(piece) if pack else piece)
        if pack:
            stored += self._file.write(pack.flush())
        if self._has(digest.digest()):
            self._take_back(start)
        else:
            self._note(digest.digest(), stored, size, "zlib" if pack else "raw")
        return digest.digest(), size

    def _take_back(self, start: int) -> None:
        self._file.flush()
        self._file.truncate(start)
        self._file.seek(start)

    def _append(self, digest: Digest, packed: bytes, size: int, encoding: Encoding) -> None:
        self._file.write(packed)
        self._note(digest, len(packed), size, encoding)

    def _note(self, digest: Digest, stored: int, size: int, encoding: Encoding) -> None:
        self.places.append(PackedObject(digest, self._offset, stored, size, encoding))
        self._own.add(digest)
        self._offset += stored

    def _has(self, digest: Digest) -> bool:
        return digest in self._own or digest in self._known


def read_index(path: Path) -> list[PackedObject]:
    """The index of a pack; nothing of one that cannot be read, whose objects are then missing."""
    try:
        places = INDEX_DECODER.decode(read_own(path)).places
    except (OSError, msgspec.MsgspecError):
        return []
    return [place for place in places if len(place.digest) == DIGEST_SIZE]


def is_poor(places: list[PackedObject], live: Collection[Digest]) -> bool:
    """Whether at least half of a pack is of no use any more."""
    useful = sum(place.stored for place in places if place.digest in live)
    return useful * 2 <= sum(place.stored for place in places)


def shrinks(piece: bytes) -> bool:
    sample = piece[: 1 << 16]
    return len(zlib.compress(sample, LEVEL)) < len(sample) * WORTH_IT
