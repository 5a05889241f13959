"""The streams of a child: what it reads is there before it starts, what it prints is read as it comes."""

from __future__ import annotations

import asyncio
import os
import tempfile
from functools import partial
from typing import TYPE_CHECKING

from toolyard.errors import CannotStart
from toolyard.process.keeper_link import close_all
from toolyard.process.pipe_end import PipeEnd
from toolyard.process.transcript import Transcript

if TYPE_CHECKING:
    from toolyard.core.tool import Stream
    from toolyard.process.child import ChildRequest
    from toolyard.process.output import Captured

__all__ = ["Printed", "Unheard", "open_streams"]

READ_AFTER = 0.01
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


def open_streams(request: ChildRequest) -> tuple[dict[int, int], Printed, Printed]:
    """The child's descriptors and our two readers; all of them or none."""
    fds: dict[int, int] = {}
    readers: list[Printed] = []
    try:
        if request.stdin is not None:
            fds[0] = open_stdin(request.stdin)
        for stream in STREAMS:
            reader, fds[len(readers) + 1] = Printed.open(request, stream)
            readers.append(reader)
    except OSError as error:
        close_all(fds.values())
        for reader in readers:
            reader.finish()
        raise CannotStart(f"streams: {error.strerror}", errno=error.errno or 0) from error
    return fds, readers[0], readers[1]


class Printed:
    """What a child prints on one of its streams."""

    __slots__ = ("_pipe", "_transcript")

    def __init__(self, pipe: PipeEnd, transcript: Transcript) -> None:
        self._pipe = pipe
        self._transcript = transcript

    @classmethod
    def open(cls, request: ChildRequest, stream: Stream) -> tuple[Printed, int]:
        """One for us, and the end that goes to the child."""
        heard = request.on_output if stream in request.streams else None
        pipe, theirs = PipeEnd.new()
        transcript = Transcript(
            request.output_limit,
            listener=partial(heard, stream) if heard else None,
            spill_to=request.spill_to if stream == "stdout" else None,
        )
        return cls(pipe, transcript), theirs

    @property
    def is_heard(self) -> bool:
        """Whether somebody wants to know at once what comes."""
        return self._transcript.is_heard

    def start(self) -> None:
        """Begin to read whenever there is something."""
        self._pipe.listen(self._transcript.add, self._pipe.close)

    def finish(self) -> Captured:
        """Take what is still in the pipe, whoever else may hold it open, and close it."""
        try:
            self._pipe.drain(self._transcript.add)
        finally:
            self._pipe.close()
            captured = self._transcript.finish()
        return captured


class Unheard:
    """Pipes that are read at once where somebody listens, else as soon as their children have lived a little.

    Most children end within milliseconds and print less than a pipe holds; what those print is read once, at their end,
    which saves a good part of what a call costs. One timer serves all of them: at each turn those are read that were
    there at the turn before.
    """

    def __init__(self) -> None:
        self._young: set[Printed] = set()
        self._old: set[Printed] = set()
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    def add(self, *readers: Printed) -> None:
        """Read these now or soon."""
        for reader in readers:
            if reader.is_heard:
                reader.start()
            else:
                self._young.add(reader)
        loop = asyncio.get_running_loop()
        if self._young and (self._timer is None or self._timer[0] is not loop):
            self._timer = (loop, loop.call_later(READ_AFTER, self._turn, loop))

    def leave(self, *readers: Printed) -> None:
        """These have ended."""
        self._young.difference_update(readers)
        self._old.difference_update(readers)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        for reader in self._old:
            reader.start()
        self._old, self._young = self._young, set()
        self._timer = (loop, loop.call_later(READ_AFTER, self._turn, loop)) if self._old else None


def open_stdin(data: bytes) -> int:
    """A descriptor that holds exactly `data`: no writer, no deadlock, and nothing to clean up."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
