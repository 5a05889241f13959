"""A chat on a terminal that can only write: a line is typed when the prompt is there, or while the agent works."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolyard.cli.render import show_piece
from toolyard.cli.shell.lines import Lines

if TYPE_CHECKING:
    from types import TracebackType

    from toolyard.cli.chat.terminal.listening import Listener

PROMPT = "> "


class PlainScreen:
    """Hands lines on as long as it is entered."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._lines = Lines()
        self._question: asyncio.Future[str | None] | None = None
        self._left = asyncio.Event()
        self._is_prompted = False
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> PlainScreen:
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reading:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def until_left(self) -> None:
        await self._left.wait()

    def leave(self) -> None:
        self._left.set()

    def refresh(self) -> None:
        """Show the prompt when there is something to wait for."""
        if not self._listener.is_working and not self._is_prompted:
            self._is_prompted = True
            show_piece(PROMPT)

    def put_back(self, text: str) -> None:
        """Nothing can be typed on here, so it is only said."""
        show_piece(f"not sent: {text}\n")

    def give_up(self) -> None:
        """Ctrl-C."""
        if self._question and not self._question.done():
            self._question.set_result(None)
        self._is_prompted = False
        show_piece("\n")
        self._listener.interrupt()
        self.refresh()

    async def ask(self, label: str, text: str = "") -> str | None:
        show_piece(f"{text}\n{label}" if text else label)
        self._question = asyncio.get_running_loop().create_future()
        try:
            return await self._question
        finally:
            self._question = None

    async def _read(self) -> None:
        while (line := await self._lines.next()) is not None:
            self._is_prompted = False
            if self._question and not self._question.done():
                self._question.set_result(line)
            elif line.strip():
                self._listener.submit(line)
            self.refresh()
        self._left.set()
