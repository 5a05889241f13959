"""What a child prints: a bounded head and tail, the whole in a file when asked for, characters never cut in two."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.core.tool import KeptFile, Truncation
from toolyard.files.own.entering import entered, open_within, remove_own

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO

    from toolyard.core.tool import OutputRedactor


UTF8_DECODER = codecs.getincrementaldecoder("utf-8")
PIECE_SIZE = 4096
"""Smaller pieces are joined, so that a child that prints byte by byte does not cost an object for each."""
LARGEST_PIECE = 1 << 16
"""Larger ones are taken apart: a piece is kept or dropped as a whole."""


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """One stream of a child after its end."""

    text: str
    """Everything, or the head, a line that says what is missing, and the tail."""
    total_bytes: int
    truncated: Truncation | None = None
    held_back: bool = False
    """Whether an end is not in it yet that may be the beginning of a secret, since more may come."""


NO_OUTPUT = Captured(text="", total_bytes=0)


class HeadTail:
    """Keeps the first and the last bytes of a stream of any length in bounded memory."""

    def __init__(self, limit: int, *, spill_to: os.PathLike[str] | str | None = None) -> None:
        self._limit = limit
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._dropped_lines = 0
        self._spill_to = spill_to
        self._spill: OutputFile | None = None
        self._head_in_spill = 0
        self.total = 0

    def add_text(self, text: str) -> None:
        """The same for a text of any length, of which no second copy is made."""
        for start in range(0, len(text), LARGEST_PIECE):
            self._add_piece(text[start : start + LARGEST_PIECE].encode("utf-8", "replace"))

    def add(self, data: bytes) -> None:
        if len(data) <= LARGEST_PIECE:
            self._add_piece(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), LARGEST_PIECE):
            self._add_piece(bytes(view[start : start + LARGEST_PIECE]))

    def _add_piece(self, data: bytes) -> None:
        self.total += len(data)
        if self._spill is not None:
            self._spill.write(data)
        elif self._spill_to is not None and self.total > self._limit:
            self._open_spill(self._spill_to, data)
        if len(self._head) < self._head_limit:
            room = self._head_limit - len(self._head)
            self._head += data[:room]
            data = data[room:]
        if data:
            self._extend_tail(data)
            self._drop_middle()

    def finish(self) -> Captured:
        if self._spill is not None:
            self._spill.close()
        if self.total <= self._limit:
            whole = b"".join((self._head, *self._tail))
            return Captured(text=whole.decode("utf-8", "replace"), total_bytes=self.total)
        return self._finish_truncated()

    def _extend_tail(self, data: bytes) -> None:
        self._tail_size += len(data)
        if self._tail and len(self._tail[-1]) + len(data) <= PIECE_SIZE:
            self._tail[-1] += data
        else:
            self._tail.append(data)

    def _drop_middle(self) -> None:
        """Forget the oldest of the tail as soon as newer bytes fill it."""
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            gone = self._tail.popleft()
            self._tail_size -= len(gone)
            self._dropped += len(gone)
            if b"\n" in gone:  # a search is many times faster than a count, and binary output has few lines
                self._dropped_lines += gone.count(b"\n")

    def _finish_truncated(self) -> Captured:
        """The head and the tail, each cut at whole characters, around a line that says what is missing."""
        head, head_rest = cut_before(bytes(self._head))
        tail = b"".join(self._tail)
        start = after_continuation(tail, len(tail) - self._tail_limit)
        missing = head_rest + tail[:start]
        truncation = Truncation(
            omitted_bytes=self._dropped + len(missing),
            omitted_lines=self._dropped_lines + missing.count(b"\n"),
            kept_at=self._spill.path if self._spill else None,
            starts_at=self._head_in_spill if self._spill and self._spill.is_redacted else len(head),
        )
        text = join_around(head.decode("utf-8", "replace"), tail[start:].decode("utf-8", "replace"), truncation)
        return Captured(text=text, total_bytes=self.total, truncated=truncation)

    def _open_spill(self, place: os.PathLike[str] | str, data: bytes) -> None:
        """From here on the whole goes to a file too; a disk that does not take it costs the file, not the call."""
        try:
            self._spill = OutputFile(place)
        except OSError:
            self._spill_to = None
            return
        room = self._head_limit - len(self._head)
        for piece in (bytes(self._head), data[:room]):
            self._spill.write(piece)
        self._head_in_spill = self._spill.size
        for piece in (*self._tail, data[room:]):
            self._spill.write(piece)


class OutputFile:
    """A new file for the whole of long output; no known secret is ever in it, not even while it is written.

    If the disk does not take all of it, it is removed, and has no path any more.
    """

    def __init__(self, place: os.PathLike[str] | str) -> None:
        self.path: Path | None = Path(place)
        self.size = 0
        self._file = open_new(self.path)
        redactor = place.redactor if isinstance(place, KeptFile) else None
        self._secrets = RedactedBytes(redactor, self._append) if redactor and redactor.knows_any else None

    @property
    def is_redacted(self) -> bool:
        """Whether it may differ from what was written to it."""
        return self._secrets is not None

    def write(self, data: bytes) -> None:
        if self._secrets:
            self._secrets.feed(data)
        else:
            self._append(data)

    def close(self) -> None:
        """Closing it again does nothing."""
        if self._secrets:
            self._secrets.finish()
        self._file.close()

    def _append(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view and self.path:
                view = view[self._file.write(view) :]
            self.size += len(data)
        except OSError:
            self._abandon()

    def _abandon(self) -> None:
        self._file.close()
        if self.path:
            with contextlib.suppress(OSError):
                remove_own(self.path)
        self.path = None


class LastWords:
    """The end of what a program prints; what is left out before it is marked, so that half a secret is looked for."""

    __slots__ = ("_kept", "_left_out", "_limit", "_lines")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = b""
        self._left_out = self._lines = 0

    def add(self, data: bytes) -> None:
        whole = self._kept + data
        start = max(0, len(whole) - self._limit)
        self._kept = whole[start:]
        self._left_out += start
        self._lines += whole.count(b"\n", 0, start)

    def text(self) -> str:
        """What is kept, with a line before it that says what is missing."""
        start = after_continuation(self._kept, 0) if self._left_out else 0
        kept = self._kept[start:].decode("utf-8", "replace")
        if not self._left_out:
            return kept.strip()
        return join_around(
            "", kept, Truncation(omitted_bytes=self._left_out + start, omitted_lines=self._lines)
        ).rstrip()


def open_new(path: Path) -> FileIO:
    """A new file, locked until it is closed, so that nobody drops it before.

    No link that a tool may have made leads elsewhere, neither in its place nor on the way.
    """
    import fcntl

    with entered(path.parent, make=True, mode=0o777) as folder:
        fd = open_within(folder, path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with contextlib.suppress(OSError):  # some file systems have no locks
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return open(fd, "wb", buffering=0)


class RedactedBytes:
    """Passes bytes on at once, but for an end that may be the beginning of a secret; what is no text stays as it is."""

    __slots__ = ("_decoder", "_stream")

    def __init__(self, redactor: OutputRedactor, sink: Callable[[bytes], None]) -> None:
        self._decoder = UTF8_DECODER("surrogateescape")
        self._stream = redactor.stream(lambda text: sink(text.encode("utf-8", "surrogateescape")))

    @property
    def holds_back(self) -> bool:
        """Whether anything came that was not passed on."""
        return self._stream.holds_back or bool(self._decoder.getstate()[0])

    def feed(self, data: bytes) -> None:
        if text := self._decoder.decode(data):
            self._stream.feed(text)

    def finish(self) -> None:
        """Nothing more comes: pass on what was held back."""
        self._stream.feed(self._decoder.decode(b"", final=True))
        self._stream.finish()


def limit_text(text: str, limit: int) -> tuple[str, Truncation | None]:
    """Cut a text that is already in memory to its head and tail."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text, None
    head, _ = cut_before(data[: limit // 2])
    start = after_continuation(data, len(data) - (limit - limit // 2))
    missing = data[len(head) : start]
    truncation = Truncation(omitted_bytes=len(missing), omitted_lines=missing.count(b"\n"), starts_at=len(head))
    ends = [part.decode("utf-8", "surrogatepass") for part in (head, data[start:])]
    return join_around(ends[0], ends[1], truncation), truncation


def join_around(head: str, tail: str, truncation: Truncation) -> str:
    """Head and tail with a line between them that says what is missing."""
    where = f"; the whole is in {truncation.kept_at}" if truncation.kept_at else ""
    lines = "1 line" if truncation.omitted_lines == 1 else f"{truncation.omitted_lines} lines"
    return f"{head}\n[... {truncation.omitted_bytes} bytes, {lines} left out{where} ...]\n{tail}"


def cut_before(data: bytes) -> tuple[bytes, bytes]:
    """Split off an incomplete last character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            width = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            end = len(data) - back if width > back else len(data)
            return data[:end], data[end:]
    return data, b""


def after_continuation(data: bytes, start: int) -> int:
    """Move a start forward past the rest of a character that began before it, which is three bytes at most."""
    end = start
    while end < min(start + 3, len(data)) and data[end] & 0xC0 == 0x80:
        end += 1
    return end


class Transcript:
    """Keeps the head and tail of a stream and tells a listener what comes.

    The buffer is made for the first bytes, since many commands print nothing.
    """

    __slots__ = (
        *("_decoder", "_kept", "_limit", "_secrets", "_spill_to", "_total"),
        *("listener", "on_too_much", "stop_at"),
    )

    def __init__(
        self,
        limit: int,
        *,
        listener: Callable[[str], None] | None = None,
        spill_to: os.PathLike[str] | str | None = None,
        stop_at: int | None = None,
        redactor: OutputRedactor | None = None,
    ) -> None:
        """With a redactor no secret is in what is heard or taken, in however many pieces that is done."""
        self._limit = limit
        self._secrets = RedactedBytes(redactor, self._pass_on) if redactor and redactor.knows_any else None
        self.listener = listener
        # A character split over two reads is one, and invalid bytes become U+FFFD.
        self._decoder = UTF8_DECODER("replace") if listener else None
        self._spill_to = spill_to
        self.stop_at = stop_at
        self._kept: HeadTail | None = None
        self.on_too_much: Callable[[], None] | None = None
        self._total = 0

    @property
    def unread(self) -> bool:
        """Whether something came since the last `take`, or was held back by then."""
        return self._kept is not None or self._holds_back

    @property
    def _holds_back(self) -> bool:
        return self._secrets is not None and self._secrets.holds_back

    def add(self, data: bytes) -> None:
        self._total += len(data)
        if self._secrets:
            self._secrets.feed(data)
        else:
            self._pass_on(data)
        if self.stop_at is not None and self._total > self.stop_at and self.on_too_much:
            self.on_too_much()

    def release(self) -> None:
        """Nothing more comes: what was held back is given, too."""
        if self._secrets:
            self._secrets.finish()

    def finish(self, *, goes_on: bool = False) -> Captured:
        """What was kept of the whole stream; the listener hears the rest. What `goes_on` may be taken later."""
        try:
            if not goes_on:
                self.release()
            decoder, self._decoder = self._decoder, None
            if decoder and self.listener and (rest := decoder.decode(b"", final=True)):
                self.listener(rest)
        finally:
            captured = self._so_far()  # also when nobody gets it: it closes the file
        return captured

    def take(self) -> Captured:
        """What came since the last time."""
        taken, self._kept = self._so_far(), None
        return taken

    def forget(self) -> None:
        """Drop what was kept, and the listener; what was held back is still to come."""
        self._kept = self.listener = self._decoder = self.on_too_much = None

    def _pass_on(self, data: bytes) -> None:
        if self._kept is None:
            self._kept = HeadTail(self._limit, spill_to=self._spill_to)
        self._kept.add(data)
        if self._decoder and self.listener and (text := self._decoder.decode(data)):
            self.listener(text)

    def _so_far(self) -> Captured:
        captured = self._kept.finish() if self._kept else NO_OUTPUT
        return replace(captured, held_back=True) if self._holds_back else captured
