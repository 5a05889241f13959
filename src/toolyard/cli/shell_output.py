"""What a command of the live session prints, as it comes, and what else there is to say of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from toolyard.cli.render import is_terminal, show_piece
from toolyard.core.events import OutputChunk
from toolyard.core.screen_text import as_seen
from toolyard.kinds.shell.session_tools import NO_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.events import Event
    from toolyard.core.tool import ToolResult


LONGEST_LINE = 1 << 16


class ShownOutput:
    """Shows output at once, and remembers of it the first line and the one that is still open."""

    def __init__(self) -> None:
        self.first_line = ""
        self.open_line = ""
        self.broken: click.ClickException | None = None
        """Why nothing more can be shown."""
        self._first_is_open = True
        self._give_up: Callable[[], None] | None = None

    def begin(self, give_up: Callable[[], None]) -> None:
        """A call begins, to be given up when nobody takes its output any more."""
        self.first_line = ""
        self._first_is_open = True
        self._give_up = give_up

    def see(self, event: Event) -> None:
        """Hear of one event. The path lets no observer break a call, so what breaks here ends it explicitly."""
        if isinstance(event, OutputChunk):
            self.show(event.text)

    def show(self, text: str) -> None:
        """Show a piece; the call is given up when that cannot be done."""
        if self.broken:
            return
        self._remember(text)
        try:
            show_piece(text)
        except click.ClickException as error:
            self.broken = error
            if self._give_up:
                self._give_up()

    def end_line(self) -> None:
        """End a line that a command left open, for a person who looks at it."""
        if self.open_line and is_terminal(sys.stdout):
            show_piece("\n")
        self.open_line = ""

    def _remember(self, text: str) -> None:
        _, newline, last = text.rpartition("\n")
        self.open_line = last[-LONGEST_LINE:] if newline else (self.open_line + last)[-LONGEST_LINE:]
        if self._first_is_open:
            line, newline, _ = text.partition("\n")
            self.first_line = (self.first_line + line)[:LONGEST_LINE]
            self._first_is_open = not newline


def note_of(result: ToolResult, first_line: str) -> str | None:
    """The line that a result has before the output, such as that the shell is a fresh one."""
    line = result.text.partition("\n")[0]
    return None if line in (NO_OUTPUT, as_seen(first_line)) else line
