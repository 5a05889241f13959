"""What a person reads of a conversation: a few lines for each thing that happened, long ones folded to their tail."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from toolyard.cli.render import count, paint_line
from toolyard.core.content import text_of
from toolyard.core.screen_text import readable
from toolyard.core.visible_text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.agents.sessions.events import TurnEnded
    from toolyard.core.conversation import CallAnswer, Usage, UserMessage

MOST_TAIL = 6
"""Lines of a result that are shown."""
MOST_DIFF = 60
DIFF_STYLES = {"+": "good", "-": "error", "@": "faint"}


def prompt_lines(message: UserMessage, width: int) -> Iterator[str]:
    """What a person said."""
    for number, line in enumerate(escaped(said_in_words(message)).split("\n")):
        yield paint_line(cut(f"{'>' if number == 0 else ' '} {line}", width), "strong")


def said_in_words(message: UserMessage) -> str:
    """What was typed, without the files that it named."""
    typed = text_of(message.content[:1])
    return f"{typed}\n(and {count(len(message.content) - 1, 'file')})" if len(message.content) > 1 else typed


def call_heading(name: str, preview: str, width: int) -> str:
    first = preview.strip().split("\n")[0]
    return paint_line(cut(f"● {escaped(name)}  {escaped(first)}".rstrip(), width), "strong")


def result_lines(answer: CallAnswer, seconds: float, width: int) -> Iterator[str]:
    """How a call ended, below its last lines; then an empty line, since an answer may follow."""
    yield from tail(answer.text, width, most=MOST_TAIL)
    how = f"exit {answer.exit_code}" if answer.exit_code else "failed" if answer.is_error else "done"
    how = "timed out" if answer.timed_out else how
    yield paint_line(f"  └ {how}, {seconds:.1f} s", "faint" if how == "done" else "warning")
    yield ""


def tail(text: str, width: int, *, most: int) -> Iterator[str]:
    """The last lines of an output, and how many there are above them."""
    lines = readable(text).rstrip("\n").split("\n") if text.strip() else []
    if len(lines) > most:
        yield paint_line(f"  │ … {len(lines) - most} lines above", "faint")
    for line in lines[-most:]:
        yield paint_line(cut(f"  │ {line.expandtabs(4)}", width), "faint")


def diff_lines(text: str, width: int, *, most: int = MOST_DIFF) -> Iterator[str]:
    """A patch in colours, its beginning if it is long."""
    lines = escaped_lines(text)
    for line in lines[:most]:
        yield paint_line(cut(f"  {line}", width), DIFF_STYLES.get(line[:1], ""))
    if len(lines) > most:
        yield paint_line(f"  … {len(lines) - most} lines more", "faint")


def escaped_lines(text: str) -> Sequence[str]:
    return [escaped(line.expandtabs(4)) for line in text.rstrip("\n").split("\n")]


def is_diff(text: str) -> bool:
    lines = text.lstrip().split("\n")
    return any(one.startswith("--- ") and two.startswith("+++ ") for one, two in itertools.pairwise(lines))


def ending_lines(ended: TurnEnded) -> Iterator[str]:
    """Why a turn is over, unless it is by its answer."""
    if ended.outcome == "answered":
        return
    style = "warning" if ended.outcome == "interrupted" else "error"
    yield paint_line(f"{ended.outcome}: {escaped(ended.reason)}", style)
    if ended.hint:
        yield paint_line(f"  hint: {ended.hint}", "faint")


def usage_text(usage: Usage) -> str:
    """What was taken, in a few words."""
    cost = f", ${usage.cost:.4f}" if usage.cost else ""
    return f"{short(usage.input)} in, {short(usage.output)} out{cost}"


def short(number: int) -> str:
    return f"{number / 1000:.1f}k" if number >= 1000 else str(number)


def cut(line: str, width: int) -> str:
    """A line that fits, as long as each of its characters takes one column."""
    return line if len(line) < width else f"{line[: max(1, width - 2)]}…"
