"""What one command prints: heard as it comes, kept in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.process.output import NOTHING, HeadTail, Utf8Stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolyard.process.output import Captured

__all__ = ["Transcript"]


class Transcript:
    """Takes bytes; what it keeps them in is made for the first of them, since many commands print nothing."""

    __slots__ = ("_decoder", "_kept", "_limit", "_listener", "_spill_to", "_total", "on_too_much", "stop_at")

    def __init__(
        self,
        limit: int,
        *,
        listener: Callable[[str], None] | None = None,
        spill_to: Path | None = None,
        stop_at: int | None = None,
    ) -> None:
        self._limit = limit
        self._listener = listener
        self._decoder = Utf8Stream() if listener else None
        self._spill_to = spill_to
        self.stop_at = stop_at
        self._kept: HeadTail | None = None
        self.on_too_much: Callable[[], None] | None = None
        self._total = 0

    @property
    def is_heard(self) -> bool:
        """Whether somebody wants to know at once what comes."""
        return self._listener is not None

    @property
    def unread(self) -> bool:
        """Whether there is anything to take."""
        return self._kept is not None

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self._total += len(data)
        if self._kept is None:
            self._kept = HeadTail(self._limit, spill_to=self._spill_to)
        self._kept.add(data)
        if self._decoder and self._listener and (text := self._decoder.feed(data)):
            self._listener(text)
        if self.stop_at is not None and self._total > self.stop_at and self.on_too_much:
            self.on_too_much()

    def finish(self) -> Captured:
        """All of it."""
        decoder, self._decoder = self._decoder, None
        try:
            if decoder and self._listener and (rest := decoder.finish()):
                self._listener(rest)
        finally:
            captured = self._so_far()  # also when nobody gets it: it closes the file
        return captured

    def take(self) -> Captured:
        """What came since the last time."""
        taken, self._kept = self._so_far(), None
        return taken

    def forget(self) -> None:
        """Start again with nothing, heard by nobody."""
        self._kept = self._listener = self._decoder = self.on_too_much = None

    def _so_far(self) -> Captured:
        return self._kept.finish() if self._kept else NOTHING
