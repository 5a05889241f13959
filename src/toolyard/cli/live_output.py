"""A call's output on a terminal: partial output as it comes, and at the end only what was not yet to be seen."""

from __future__ import annotations

import sys
from hashlib import sha256
from typing import TYPE_CHECKING

from toolyard.cli.render import is_terminal, show_note, show_piece, show_text

if TYPE_CHECKING:
    from toolyard.core.tool import ToolResult


class LiveOutput:
    """Shows pieces on a terminal only; remembers of them no more than whether they were the final text."""

    def __init__(self) -> None:
        self._live = is_terminal(sys.stdout)
        self._shown = sha256()
        self._space = ""
        """Blanks and line ends that were shown after the last of anything else."""
        self._begun = False
        self._line_is_open = False

    def add(self, text: str, *, is_error: bool) -> None:
        """Show the next piece."""
        if not self._live:
            return
        show_piece(text, is_error=is_error)
        if not is_error:
            self._line_is_open = not text.endswith("\n")
            self._remember(text)

    def finish(self, result: ToolResult) -> None:
        """Show the final text, unless all of it has been shown."""
        if self._line_is_open:
            show_piece("\n")
        if result.ok and self._live and result.truncated:
            left_out = result.truncated.omitted_bytes
            show_note(f"(too long for a result: a model sees it without {left_out} bytes of its middle)", "faint")
        elif not self._live or self._shown.digest() != sha256(encoded(result.text.strip())).digest():
            show_text(result.text)

    def _remember(self, text: str) -> None:
        """Some results are the output without the blanks around it, which is no reason to show them again."""
        text = self._space + text if self._begun else text.lstrip()
        seen = text.rstrip()
        self._begun = self._begun or bool(seen)
        self._shown.update(encoded(seen))
        self._space = text[len(seen) :]


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
