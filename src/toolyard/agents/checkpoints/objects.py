"""What a kept state is made of: contents of files, and folders that list them. Each is known by its digest."""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

import msgspec

Digest: TypeAlias = bytes
DIGEST_SIZE = 20


class FileEntry(msgspec.Struct, frozen=True, array_like=True, tag="f"):
    """A regular file."""

    mode: int
    size: int
    content: Digest


class LinkEntry(msgspec.Struct, frozen=True, array_like=True, tag="l"):
    """A symbolic link, and where it points."""

    target: bytes


class FolderEntry(msgspec.Struct, frozen=True, array_like=True, tag="d"):
    """A folder, and the listing of what is in it."""

    mode: int
    listing: Digest


TreeEntry: TypeAlias = FileEntry | LinkEntry | FolderEntry
Listing: TypeAlias = dict[bytes, TreeEntry]
"""What a folder has, by names as the disk has them: any bytes."""

ENCODER = msgspec.msgpack.Encoder()
DECODER = msgspec.msgpack.Decoder(dict[bytes, TreeEntry])
NO_NAMES = (b"", b".", b"..")


def encode_listing(listing: Listing) -> bytes:
    """The same bytes for the same content, in whatever order the disk gave it."""
    return ENCODER.encode(dict(sorted(listing.items())))


def decode_listing(data: bytes) -> Listing:
    listing = DECODER.decode(data)
    if any(name in NO_NAMES or b"/" in name or b"\0" in name for name in listing):
        raise msgspec.ValidationError("a name in it is none of a file")  # it would lead elsewhere
    return listing


def new_digest() -> blake2b:
    return blake2b(digest_size=DIGEST_SIZE)


def digest_of(data: bytes) -> Digest:
    return blake2b(data, digest_size=DIGEST_SIZE).digest()


EMPTY_FOLDER = digest_of(encode_listing({}))
