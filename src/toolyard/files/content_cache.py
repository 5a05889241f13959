"""What was learnt of contents, by their fingerprints, kept across runs in one small file."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from toolyard.files.atomic import replace_file
from toolyard.files.door import Door

if TYPE_CHECKING:
    from pathlib import Path


MOST_ENTRIES = 1000
LARGEST_CACHE = 256 << 20
DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
Known = TypeVar("Known", bound=msgspec.Struct)


class ContentCache(Generic[Known]):
    """One value for each content; a damaged or unwritable file only costs time."""

    def __init__(self, path: Path | None, kind: type[Known]) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(kind)
        self._entries: dict[str, msgspec.Raw] | None = None
        self._fresh: dict[str, msgspec.Raw] = {}

    def get(self, key: str) -> Known | None:
        raw = self._known().get(key)
        if raw is None:
            return None
        try:
            return self._decoder.decode(raw)
        except msgspec.MsgspecError:
            return None

    def put(self, key: str, value: Known) -> None:
        """Remember a value; `save` writes it."""
        self._known()[key] = self._fresh[key] = msgspec.Raw(msgspec.json.encode(value))

    def save(self) -> None:
        """Write what is new, with what other processes wrote meanwhile; all or nothing."""
        if self._path is None or not self._fresh:
            return
        merged = read_entries(self._path) | self._fresh
        newest = dict(list(merged.items())[-MOST_ENTRIES:])
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, msgspec.json.encode(newest))
            self._fresh = {}

    def _known(self) -> dict[str, msgspec.Raw]:
        if self._entries is None:
            self._entries = read_entries(self._path) if self._path else {}
        return self._entries


def read_entries(path: Path) -> dict[str, msgspec.Raw]:
    try:
        return DECODER.decode(Door.here().read(path, largest=LARGEST_CACHE).data)
    except (OSError, msgspec.MsgspecError):
        return {}
