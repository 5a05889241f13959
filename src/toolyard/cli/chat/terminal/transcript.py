"""What a person reads of a conversation: a few lines for each thing that happened, long ones folded to their tail."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from toolyard.cli.render import count, paint_line
from toolyard.core.content import text_of
from toolyard.core.screen_text import readable
from toolyard.core.visible_text import columns, escaped, fitting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.agents.sessions.events import TurnEnded
    from toolyard.core.conversation import CallAnswer, Usage, UserMessage

MOST_TAIL = 6
"""Lines of a result that are shown."""
MOST_DIFF = 60
MOST_SAID = 20
"""Lines of what a person said; who pastes a file need not see all of it again."""
DIFF_STYLES = {"+": "good", "-": "error", "@": "faint"}


def prompt_lines(message: UserMessage, width: int) -> Iterator[str]:
    """What a person said."""
    lines = escaped_lines(said_in_words(message))
    for number, line in enumerate(lines[:MOST_SAID]):
        yield paint_line(f"{'>' if number == 0 else ' '} {fitting(line, MOST_SAID * width)}", "strong")
    if len(lines) > MOST_SAID:
        yield paint_line(f"  … {len(lines) - MOST_SAID} lines more", "faint")


def said_in_words(message: UserMessage) -> str:
    """What was typed, without the files that it named."""
    typed = text_of(message.content[:1])
    return f"{typed}\n(and {count(len(message.content) - 1, 'file')})" if len(message.content) > 1 else typed


def call_heading(name: str, preview: str, width: int, took: str = "") -> str:
    first = preview.strip().split("\n")[0]
    return paint_line(cut(f"● {escaped(name)}  {escaped(first)}".rstrip(), width, took), "strong")


def result_lines(answer: CallAnswer, seconds: float, width: int, printed: int = 0) -> Iterator[str]:
    """How a call ended, below its last lines; then an empty line, since an answer may follow.

    `printed` is how many lines there were, of which the answer may have lost those in the middle.
    """
    yield from tail(answer.text, width, most=MOST_TAIL, printed=printed)
    how = f"exit {answer.exit_code}" if answer.exit_code else "failed" if answer.is_error else "done"
    how = "timed out" if answer.timed_out else how
    yield paint_line(f"  └ {how}, {seconds:.1f} s", "faint" if how == "done" else "warning")
    yield ""


def tail(text: str, width: int, *, most: int, printed: int = 0) -> Iterator[str]:
    """The last lines of an output, and how many there are above them; `printed` counts also those not in the text."""
    lines = readable(text).rstrip("\n").split("\n") if text.strip() else []
    if (above := max(printed, len(lines)) - most) > 0:
        yield paint_line(f"  │ … {count(above, 'line')} above", "faint")
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


def cut(line: str, width: int, end: str = "") -> str:
    """A line that fits beside its end; the last column stays free, where some terminals go on to the next line."""
    return fitting(line, max(2, width - 1 - columns(end))) + end
