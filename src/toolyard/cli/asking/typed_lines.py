"""Where a person types answers."""

from __future__ import annotations

from typing import Protocol

from toolyard.cli.render import show_piece
from toolyard.core.visible_text import escaped


class TypedLines(Protocol):
    """Where a person types answers."""

    async def ask(self, label: str, text: str = "") -> str | None:
        """A line, with something in it to begin with where that can be; None when the person gives it up."""


class PlainLines:
    """Lines of standard input, where nothing can be typed on."""

    def __init__(self) -> None:
        from toolyard.cli.shell.lines import Lines

        self._lines = Lines()

    async def ask(self, label: str, text: str = "") -> str | None:
        show_piece(f"{escaped(text)}\n{label}" if text else label, is_error=True)
        return await self._lines.next()
