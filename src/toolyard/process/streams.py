"""The streams of a child: its standard input, and our ends of the pipes that it prints to."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.process.output import Captured, Transcript


READ_SIZE = 1 << 16
READS_AT_ONCE = 16
MOST_IN_A_PIPE = 1 << 20
F_SETPIPE_SZ = 1031
PIPES_OF_A_CHILD = 3
READ_AFTER = 0.01
"""How long a child runs before its output is read, unless somebody listens."""


class PipeReader:
    """Reads a pipe without a task of its own, and keeps nothing: what comes goes to a sink."""

    __slots__ = ("_is_wide", "_loop", "_on_end", "_sink", "fd")

    def __init__(self, fd: int) -> None:
        """Takes over a descriptor that does not block."""
        self.fd = fd
        self._loop: asyncio.AbstractEventLoop | None = None
        """The one that tells when there is something, while we listen."""
        self._sink: Callable[[bytes], None] | None = None
        self._on_end: Callable[[], object] | None = None
        self._is_wide = False

    @classmethod
    def new(cls) -> tuple[PipeReader, int]:
        """The reader of a new pipe, and the end that goes to a child."""
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        return cls(ours), theirs

    def listen(self, sink: Callable[[bytes], None], on_end: Callable[[], object] | None = None) -> None:
        """Read whenever there is something. When nobody holds the pipe any more, stop and say so."""
        if self.fd >= 0:
            self._sink, self._on_end = sink, on_end
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self.fd, self._read)

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self.fd)
            self._loop = self._sink = self._on_end = None

    def drain(self, sink: Callable[[bytes], None]) -> bool:
        """Take what was printed by now; tell whether somebody still holds the pipe.

        And no more than that: something that could not be killed may print for ever.
        """
        fd = self.fd
        for _ in range(MOST_IN_A_PIPE // READ_SIZE + 1):
            try:  # as `read_some`: this is done several times in every call
                data = os.read(fd, READ_SIZE)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            sink(data)
        return True

    def close(self) -> None:
        """Hang up; whoever still prints gets SIGPIPE."""
        if self.fd >= 0:
            if self._loop is not None:
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
            if self._loop is None:  # whoever heard it may have had enough
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


class OutputStream:
    """One output stream of a child: its pipe, and what was kept of what came."""

    __slots__ = ("_pipe", "transcript")

    def __init__(self, pipe: PipeReader, transcript: Transcript) -> None:
        self._pipe = pipe
        self.transcript = transcript

    def start(self) -> None:
        self._pipe.listen(self.transcript.add, self._pipe.close)

    def finish(self) -> Captured:
        """Take what is still in the pipe, whoever else may hold it open, and close it."""
        pipe, transcript = self._pipe, self.transcript
        try:
            if pipe.fd >= 0:
                pipe.drain(transcript.add)
        finally:
            pipe.close()
            captured = transcript.finish()
        return captured


class SparePipes:
    """Pipes that were opened while a child ran, so that the next one need not wait for them."""

    def __init__(self) -> None:
        self._ready: list[tuple[PipeReader, int]] = []

    def take(self) -> tuple[PipeReader, int]:
        """The reader of a pipe that nobody had before, and the end that goes to a child."""
        return self._ready.pop() if self._ready else PipeReader.new()

    def fill(self) -> None:
        """Open as many as a child takes; where that cannot be done, the next child is told."""
        with contextlib.suppress(OSError):
            while len(self._ready) < PIPES_OF_A_CHILD:
                self._ready.append(PipeReader.new())

    def close(self) -> None:
        for pipe, theirs in self._ready:
            pipe.close()
            os.close(theirs)
        self._ready.clear()


class DelayedReading:
    """Reads streams at once where somebody listens, else as soon as their children have lived a little.

    Most children end within milliseconds and print less than a pipe holds; what those print is read once, at their end,
    which saves a good part of what a call costs. One timer serves all of them: each time it fires, those are read that
    were there the time before.
    """

    def __init__(self) -> None:
        self._new: set[OutputStream] = set()
        self._due: set[OutputStream] = set()
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    def add(self, *streams: OutputStream) -> None:
        for stream in streams:
            if stream.transcript.listener:
                stream.start()
            else:
                self._new.add(stream)
        loop = asyncio.get_running_loop()
        if self._new and (self._timer is None or self._timer[0] is not loop):
            self._timer = (loop, loop.call_later(READ_AFTER, self._on_timer, loop))

    def discard(self, *streams: OutputStream) -> None:
        """Their child has ended, and somebody finishes them."""
        self._new.difference_update(streams)
        self._due.difference_update(streams)

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        for stream in self._due:
            stream.start()
        self._due, self._new = self._new, set()
        self._timer = (loop, loop.call_later(READ_AFTER, self._on_timer, loop)) if self._due else None


def open_stdin(data: bytes) -> int:
    """A descriptor that holds exactly `data`: no writer, no deadlock, and nothing to clean up."""
    fd = memory_file()
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def memory_file() -> int:
    """A file without a name, in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("toolyard", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read_some(fd: int) -> bytes | None:
    """What there is; nothing at the end or when it is closed, None when there is nothing yet."""
    try:
        return os.read(fd, READ_SIZE)
    except BlockingIOError:
        return None
    except OSError:
        return b""
