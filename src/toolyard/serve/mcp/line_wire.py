"""Lines over two descriptors, whatever they are: pipes, a socket, a terminal, files."""

from __future__ import annotations

import asyncio
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONGEST_LINE = 4 << 20
READ_SIZE = 1 << 16
LAST_WRITE = 5.0
"""How many seconds the other end has to take what is left when this one closes."""


class LineWire:
    """Reads and writes lines; takes both descriptors over."""

    def __init__(self, source: int, sink: int, *, limit: int = LONGEST_LINE) -> None:
        self.limit = limit
        self._source, self._sink = source, sink
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> LineWire:
        loop = asyncio.get_running_loop()
        if not is_file(self._source):
            reader = self._reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader)
            await loop.connect_read_pipe(lambda: protocol, os.fdopen(self._source, "rb", 0))
        if not is_file(self._sink):
            file = os.fdopen(self._sink, "wb", 0)
            transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
            self._writer = asyncio.StreamWriter(transport, flow, None, loop)
        return self

    async def __aexit__(self, *_: object) -> None:
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

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Each line that is not empty; None for one that is longer than the limit."""
        rest = b""
        too_long = False
        while data := await self._read():
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                if too_long or len(line) > self.limit:
                    yield None
                elif line.strip():
                    yield line
                too_long = False
            if len(rest) > self.limit:
                rest, too_long = b"", True
        if rest.strip() and not too_long:
            yield rest

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

    async def _read(self) -> bytes:
        if self._reader is None:
            return await asyncio.to_thread(os.read, self._source, READ_SIZE)
        try:
            return await self._reader.read(READ_SIZE)
        except OSError:
            return b""


def is_file(fd: int) -> bool:
    """Whether the event loop cannot wait for it: files are always ready."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode) or os.path.samestat(os.fstat(fd), os.stat(os.devnull))
