"""A terminal that gets another width: most set what is on them anew, so that rows which were drawn become more rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prompt_toolkit.layout.screen import Screen

CUTS_LINES = ("linux", "vt", "ansi", "cons", "screen")
"""How the names of terminals begin that cut lines instead; tmux, which may call itself a screen, does not."""


class ResizedApplication(Application[None]):
    """Erases all of what it had drawn, where that has become more rows than it was."""

    def _on_resize(self) -> None:
        drawn = self.renderer.last_rendered_screen
        if drawn and sets_lines_anew(os.environ):
            cursor = drawn.get_cursor_position(self.layout.current_window)
            self.output.cursor_up(more_rows(drawn, cursor.y, cursor.x, self.output.get_size().columns))
        super()._on_resize()


def sets_lines_anew(environ: Mapping[str, str]) -> bool:
    name = environ.get("TERM", "")
    return "TMUX" in environ or not ("XTERM_VERSION" in environ or name.startswith(CUTS_LINES))


def more_rows(drawn: Screen, row: int, column: int, width: int) -> int:
    """How many rows have been added above the cursor, now that lines are only so wide."""
    if width <= 0:
        return 0
    lengths = [length_of(drawn.data_buffer[number]) for number in range(row)]
    return sum(max(0, length - 1) // width for length in lengths) + column // width


def length_of(cells: Mapping[int, Any]) -> int:
    """Up to the last column with something in it."""
    return max((column + cell.width for column, cell in cells.items() if cell.char.strip()), default=0)
