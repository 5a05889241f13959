"""The only module that prints: answers on standard output, all else on standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.core.problems import Problem


STYLES = {"error": "31", "warning": "33", "good": "32", "faint": "2", "strong": "1"}


def reserve_stdout() -> None:
    """Keep standard output for answers: what plugins and their processes write there goes to standard error."""
    stream = sys.__stdout__
    if stream is None or sys.stdout is not stream:
        return
    with contextlib.suppress(OSError, ValueError):  # closed
        if stream.fileno() != 1:
            return
        stream.flush()
        answers = os.dup(1)
        others = os.dup(2) if is_open(2) else os.open(os.devnull, os.O_WRONLY)
        os.dup2(others, 1)
        os.close(others)
        buffering = 1 if os.isatty(answers) else -1
        sys.stdout = open(  # noqa: SIM115 - for the rest of the process
            answers, "w", encoding=stream.encoding, errors=stream.errors, buffering=buffering
        )


def take_standard_streams() -> tuple[int, int]:
    """Standard input and output for a protocol alone: nothing else of the process, or started by it, reads or writes
    there. What is printed goes to standard error, and whoever reads finds the end.
    """
    reserve_stdout()
    source, sink = os.dup(0), os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout = sys.stderr
    return source, sink


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def show_text(text: str, style: str = "") -> None:
    """Show an answer, which ends its last line, so that nothing runs into it."""
    text = paint(text, style, sys.stdout)
    write(sys.stdout, text + "\n" if text and not text.endswith("\n") else text)


def show_foreign(text: str) -> None:
    """Show what a model or a tool wrote; on a terminal nothing in it can move the cursor, or hide."""
    from toolyard.core.visible_text import escaped

    show_text("\t".join(map(escaped, text.split("\t"))) if is_terminal(sys.stdout) else text)


def show_json(value: Any) -> None:
    import json

    write(sys.stdout, json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def show_line(value: Any) -> None:
    """Show one object of a list, on a line of its own, at once."""
    import json

    write(sys.stdout, json.dumps(value, ensure_ascii=False, default=str) + "\n")


def show_rows(rows: Sequence[Sequence[str]]) -> None:
    """Show a table: a line for each row, the last column cut to the width of the terminal."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    room = terminal_width() - sum(widths) - 2 * len(widths)
    for *cells, last in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        write(sys.stdout, "  ".join((*padded, shortened(last, room))).rstrip() + "\n")


def show_note(text: str, style: str = "", *, hint: str = "") -> None:
    """Show a person something beside the answer, and a hint what to do about it."""
    write(sys.stderr, paint(fitted(text, sys.stderr), style, sys.stderr) + "\n")
    if hint:
        write(sys.stderr, paint(f"  {fitted(f'hint: {hint}', sys.stderr)}\n", "faint", sys.stderr))


def show_problems(problems: Iterable[Problem], *, on_stdout: bool = False) -> None:
    """Show problems with their hints; on standard output where they are the answer."""
    stream = sys.stdout if on_stdout else sys.stderr
    for problem in problems:
        place = f"{relative(str(problem.where))}: " if problem.where else ""
        kind = "warning: " if problem.severity == "warning" else ""
        write(stream, paint(f"{place}{kind}{problem.sentence}\n", problem.severity, stream))
        if problem.hint:
            write(stream, paint(f"  hint: {problem.hint}\n", "faint", stream))


def show_piece(text: str, *, is_error: bool = False) -> None:
    stream = sys.stderr if is_error else sys.stdout
    write(stream, paint(text, "faint" if is_error else "", stream))


def show_bug() -> None:
    import traceback

    traceback.print_exc(file=sys.stderr)
    show_note("This is a bug in toolyard; please report it with the lines above.", "error")


def ask(question: str) -> bool:
    """Ask yes or no; anything but a no means yes."""
    write(sys.stderr, f"{question} [Y/n] ")
    answer = sys.stdin.readline()
    if not answer:
        raise click.Abort
    return not answer.strip().lower().startswith("n")


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; one that was closed is None."""
    return stream is not None and stream.isatty()


def relative(path: str) -> str:
    """Shorten a path below the current folder."""
    try:
        return path.removeprefix(os.getcwd() + os.sep)
    except OSError:  # the current folder is gone
        return path


def paint(text: str, style: str, stream: TextIO | None) -> str:
    """Colour where it may be; a final newline stays outside."""
    if not text or style not in STYLES or not has_colour(stream):
        return text
    line = text.removesuffix("\n")
    return f"\x1b[{STYLES[style]}m{line}\x1b[0m{text[len(line) :]}"


def paint_line(line: str, style: str) -> str:
    """A line in its style, for what is written to standard output later."""
    return paint(line, style, sys.stdout)


def has_colour(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that knows colours, and nobody is against them."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_move_cursor() -> bool:
    """Whether the terminal can do more than write one line after the other."""
    return os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


def one_line(cell: str) -> str:
    """Replace line ends and whatever would move the cursor."""
    return "".join(char if char.isprintable() else "�" for char in " ".join(cell.split()))


def shortened(cell: str, room: int) -> str:
    if not is_terminal(sys.stdout) or len(cell) <= room:
        return cell
    return cell[: max(1, room - 1)] + "…"


def terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):  # closed, or no terminal
        return 80


def wrapped(text: str, indent: str = "    ", *, margin: int = 1) -> str:
    """Words of ours on as many lines as they need; a word that is longer than a line is left to the terminal."""
    import textwrap

    width = max(20, terminal_width() - margin)
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def fitted(text: str, stream: TextIO | None) -> str:
    """Sentences of ours, broken between words where a terminal would break them anywhere.

    What is set in is to be copied, and stays one line.
    """
    if not is_terminal(stream):
        return text
    lines = text.split("\n")
    return "\n".join(line if line.startswith(" ") else wrapped(line, margin=3) for line in lines)


def write(stream: TextIO | None, text: str) -> None:
    """Write text that may hold what the stream's encoding does not; to a closed stream, nothing."""
    if stream is None:
        return
    encoding = stream.encoding or "ascii"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        raise ReaderLeft("nobody reads the output") from error
    except OSError as error:
        raise CannotPrint(f"the output cannot be written: {error.strerror}") from error


class CannotPrint(click.ClickException):
    """The disk under an output is full, or its terminal is gone."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        with contextlib.suppress(OSError):
            super().show(file)
        stop_printing()


class Interrupted(click.ClickException):
    """A signal ended the command. Click would write of a bare KeyboardInterrupt to a pipe that nobody reads."""

    exit_code = 130

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's interface
        """Begin a new line on a terminal, below the ^C."""
        show_note(f"\n{self.message}" if is_terminal(sys.stderr) else self.message)


class ReaderLeft(click.ClickException):
    """Whoever read the output has seen enough. Click would end the program at a bare BrokenPipeError."""

    exit_code = 0

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's interface
        stop_printing()


def stop_printing() -> None:
    """Discard what is still to come; Python flushes its streams at exit, and would complain again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
