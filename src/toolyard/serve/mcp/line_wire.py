"""Lines over two descriptors, whatever they are: pipes, a socket, a terminal, files."""

from __future__ import annotations

import asyncio
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE = 4 << 20
END_SIZE = 1 << 10
"""How much of each end of a longer line is kept."""
READ_SIZE = 1 << 16
"""Four times that, which asyncio reads at once, is a mapping of memory for each line: 20 times the time of the read."""
LAST_WRITE = 5.0
"""How many seconds the other end has to take what is left when this one closes."""


class CutLine(NamedTuple):
    """The ends of a line over the limit."""

    head: bytes
    tail: bytes


class LineWire(asyncio.Protocol):
    """Reads and writes lines; takes both descriptors over."""

    def __init__(self, source: int, sink: int, *, limit: int = LONGEST_LINE) -> None:
        self.limit = limit
        self._source, self._sink = source, sink
        self._take: Callable[[bytes | CutLine], None] | None = None
        self._rest = b""
        self._head = b""
        """The beginning of the line, as soon as it is too long; `_rest` is then its end."""
        self._input: asyncio.ReadTransport | None = None
        self._at_end: asyncio.Future[None] | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> LineWire:
        loop = asyncio.get_running_loop()
        if not is_file(self._sink):
            file = os.fdopen(self._sink, "wb", 0)
            transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
            self._writer = asyncio.StreamWriter(transport, flow, None, loop)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._input:
            self._input.close()
        if self._writer is None:
            return
        try:
            async with asyncio.timeout(LAST_WRITE):
                await self.drain()
        except TimeoutError:
            self._writer.transport.abort()
        self._writer.close()

    @property
    def has_reader(self) -> bool:
        """Whether somebody may still read what is sent."""
        return self._writer is None or not self._writer.is_closing()

    async def read(self, take: Callable[[bytes | CutLine], None]) -> None:
        """Give each line that is not empty to `take`, as it comes, until the end; of one over the limit, its ends."""
        self._take = take
        if is_file(self._source):
            while data := await asyncio.to_thread(os.read, self._source, READ_SIZE):
                self.data_received(data)
        else:
            loop = asyncio.get_running_loop()
            self._at_end = loop.create_future()
            self._input, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(self._source, "rb", 0))
            self._input.max_size = READ_SIZE  # type: ignore[attr-defined] # asyncio's own attribute
            await self._at_end
        if self._rest.strip() and not self._head:
            take(self._rest)

    def data_received(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._give(line)
        if len(self._rest) > self.limit:
            self._head, self._rest = self._head or self._rest[:END_SIZE], self._rest[-END_SIZE:]

    def _give(self, line: bytes) -> None:
        head, self._head = self._head, b""
        if self._take and (head or len(line) > self.limit):
            self._take(CutLine(head or line[:END_SIZE], line[-END_SIZE:]))
        elif self._take and line.strip():
            self._take(line)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever it was, nothing more comes
        if self._at_end and not self._at_end.done():
            self._at_end.set_result(None)

    def send(self, line: bytes) -> None:
        if self._writer is None:
            os.write(self._sink, line + b"\n")
        elif not self._writer.is_closing():
            self._writer.write(line + b"\n")

    async def drain(self) -> None:
        """Wait until the other end has taken most of it."""
        if self._writer is not None and not self._writer.is_closing():
            try:
                await self._writer.drain()
            except OSError:  # nobody reads any more, which the end of the input will say, too
                return


def is_file(fd: int) -> bool:
    """Whether the event loop cannot wait for it: files are always ready."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode) or os.path.samestat(os.fstat(fd), os.stat(os.devnull))
