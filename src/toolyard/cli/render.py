"""The only module that prints: answers on standard output, all else on standard error."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.config.problems import ConfigProblem

__all__ = ["LiveOutput", "show_bug", "show_json", "show_note", "show_problems", "show_rows", "show_text"]

STYLES = {"error": "31", "warning": "33", "good": "32", "faint": "2"}


def show_text(text: str) -> None:
    """An answer, ending in exactly the newline a terminal needs."""
    write(sys.stdout, text if text.endswith("\n") or not text or not sys.stdout.isatty() else text + "\n")


def show_json(value: Any) -> None:
    """An answer for programs."""
    write(sys.stdout, json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def show_rows(rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell, the last one cut to the terminal."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)] if rows else []
    room = terminal_width() - sum(widths) - 2 * len(widths)
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        last = row[-1] if not sys.stdout.isatty() or len(row[-1]) <= room else row[-1][: max(1, room - 1)] + "…"
        write(sys.stdout, "  ".join((*cells, last)).rstrip() + "\n")


def show_note(text: str, style: str = "") -> None:
    """Something a person should see beside the answer."""
    write(sys.stderr, paint(text, style, sys.stderr) + "\n")


def show_problems(problems: Iterable[ConfigProblem]) -> None:
    """Problems, one after the other, with their hints."""
    for problem in problems:
        place = f"{relative(str(problem.where))}: " if problem.where else ""
        kind = "warning: " if problem.severity == "warning" else ""
        show_note(f"{place}{kind}{problem.message}", problem.severity)
        if problem.hint:
            show_note(f"  hint: {problem.hint}", "faint")


def show_bug() -> None:
    """We broke a promise: say so, with all that a report needs."""
    traceback.print_exc(file=sys.stderr)
    show_note("This is a bug in toolyard; please report it with the lines above.", "error")


class LiveOutput:
    """Shows partial output as it comes, on a terminal only, and remembers what was shown."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self.live = sys.stdout.isatty()

    def add(self, text: str, *, is_error: bool) -> None:
        """Show the next piece."""
        if not self.live:
            return
        if is_error:
            write(sys.stderr, paint(text, "faint", sys.stderr))
        else:
            write(sys.stdout, text)
            self._shown.append(text)

    def finish(self, text: str) -> None:
        """Show the final text, unless it is what was shown already."""
        shown = "".join(self._shown)
        if self.live and shown == text:
            show_newline_if_needed(shown)
            return
        if shown and not shown.endswith("\n"):
            write(sys.stdout, "\n")
        show_text(text)


def show_newline_if_needed(shown: str) -> None:
    if shown and not shown.endswith("\n"):
        write(sys.stdout, "\n")


def relative(path: str) -> str:
    """A path as short as it can be written from here."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def paint(text: str, style: str, stream: TextIO) -> str:
    """Colour on a terminal only, and never against NO_COLOR."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or style not in STYLES:
        return text
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 80


def write(stream: TextIO, text: str) -> None:
    """Write text that may hold what the terminal's encoding does not."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
