"""Our end of a pipe that others print to: read whenever there is something, and to its end without waiting for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


READ_SIZE = 1 << 16
READS_AT_ONCE = 16
MOST_IN_A_PIPE = 1 << 20
F_SETPIPE_SZ = 1031


class PipeEnd:
    """Reads without a task of its own, and keeps nothing: what comes goes to a sink."""

    __slots__ = ("_is_listening", "_is_wide", "_loop", "_on_end", "_sink", "fd")

    def __init__(self, fd: int) -> None:
        """Of a descriptor that does not block, which is closed with this."""
        self.fd = fd
        self._loop = asyncio.get_running_loop()
        self._sink: Callable[[bytes], None] | None = None
        self._on_end: Callable[[], object] | None = None
        self._is_listening = False
        self._is_wide = False

    @classmethod
    def new(cls) -> tuple[PipeEnd, int]:
        """Of a new pipe, and the end that goes to a child."""
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        return cls(ours), theirs

    def listen(self, sink: Callable[[bytes], None], on_end: Callable[[], object] | None = None) -> None:
        """Read whenever there is something. When nobody holds the pipe any more, stop and say so."""
        if self.fd >= 0:
            self._sink, self._on_end = sink, on_end
            self._loop.add_reader(self.fd, self._read)
            self._is_listening = True

    def stop(self) -> None:
        """Listen no more."""
        if self._is_listening:
            self._loop.remove_reader(self.fd)
            self._is_listening = False
            self._sink = self._on_end = None

    def drain(self, sink: Callable[[bytes], None]) -> bool:
        """Take what was printed by now; tell whether somebody still holds the pipe.

        And no more than that: something that could not be killed may print for ever.
        """
        for _ in range(MOST_IN_A_PIPE // READ_SIZE + 1):
            data = read_some(self.fd)
            if not data:
                return data is None
            sink(data)
        return True

    def close(self) -> None:
        """Hang up; whoever still prints gets told that nobody listens."""
        if self.fd >= 0:
            self.stop()
            os.close(self.fd)
            self.fd = -1

    def _read(self) -> None:
        """Read several times in a row, so that much output costs few turns of the loop but never starves it."""
        for _ in range(READS_AT_ONCE):
            data = read_some(self.fd)
            if data is None:
                return
            if not data:
                self._end()
                return
            if len(data) == READ_SIZE and not self._is_wide:
                self._widen()
            if self._sink:
                self._sink(data)
            if not self._is_listening:  # whoever heard it may have had enough
                return

    def _end(self) -> None:
        on_end = self._on_end
        self.stop()
        if on_end:
            on_end()

    def _widen(self) -> None:
        """Give a stream that fills its pipe a larger one, which saves most of the switches between the two."""
        self._is_wide = True
        with contextlib.suppress(OSError):
            import fcntl

            fcntl.fcntl(self.fd, F_SETPIPE_SZ, MOST_IN_A_PIPE)


def read_some(fd: int) -> bytes | None:
    """What there is; nothing at the end or when it is closed, None when there is nothing yet."""
    try:
        return os.read(fd, READ_SIZE)
    except BlockingIOError:
        return None
    except OSError:
        return b""
