"""Lines of standard input, without keeping the event loop from anything else."""

from __future__ import annotations

import asyncio
import os

STDIN = 0
READ_SIZE = 1 << 16


class Lines:
    def __init__(self) -> None:
        self._rest = b""
        self._waiting: asyncio.Future[None] | None = None

    async def next(self) -> str | None:
        """The next line without its newline; None at the end of input, which on a terminal is not for ever."""
        while b"\n" not in self._rest:
            data = await self._read()
            if not data:
                line, self._rest = self._rest, b""
                return decoded(line) if line else None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return decoded(line)

    def interrupt(self) -> None:
        """Give up the line that is waited for, if one is."""
        if self._waiting and not self._waiting.done():
            self._rest = b""
            self._waiting.set_exception(KeyboardInterrupt())

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        self._waiting = ready = loop.create_future()
        try:
            loop.add_reader(STDIN, wake, ready)
            try:
                await ready
            finally:
                loop.remove_reader(STDIN)
        except PermissionError:
            pass  # a file, for which nobody ever has to wait
        except OSError:
            return b""  # closed
        try:
            return os.read(STDIN, READ_SIZE)
        except OSError:  # the terminal is gone
            return b""


def wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def decoded(line: bytes) -> str:
    """Decode a line; bytes that are not UTF-8 are refused later, with all other bad arguments."""
    return line.decode("utf-8", "surrogateescape")
