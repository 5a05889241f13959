"""A turn as it happens, on a terminal that can move its cursor."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    ContextShortened,
    Noticed,
    PromptGiven,
    QuestionAnswered,
    Stored,
    TurnEnded,
)
from toolyard.cli.chat.headless import hear_subagent
from toolyard.cli.chat.terminal.markdown import MarkdownPainter, MarkdownStream
from toolyard.cli.chat.terminal.transcript import (
    call_heading,
    cut,
    diff_lines,
    ending_lines,
    is_diff,
    prompt_lines,
    result_lines,
    tail,
)
from toolyard.cli.render import has_colour, paint_line, show_note, show_text, terminal_width
from toolyard.core.events import CallStarted, OutputChunk, PermissionAsked, PreviewReady
from toolyard.core.json_values import brief
from toolyard.core.model import CallDelta, TextDelta, ThinkingDelta, Waiting
from toolyard.core.screen_text import as_seen
from toolyard.core.visible_text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolyard.agents.sessions.event_log import SessionUpdate
    from toolyard.agents.sessions.events import SessionEvent
    from toolyard.agents.sessions.history import History
    from toolyard.cli.chat.terminal.markdown import Block
    from toolyard.core.conversation import CallAnswer
    from toolyard.core.tool import ToolCall

MOST_LIVE_TAIL = 5
MOST_OUTPUT = 8192
"""Characters of a running call's output that are kept to be shown."""
LONGEST_THOUGHT = 400
MOST_ARGUMENTS = 200
"""Characters of the arguments of a call of before."""
MOST_RECALLED = 40
"""Events of a session that goes on."""


class RunningCall(msgspec.Struct, kw_only=True):
    """A call that has no result yet."""

    name: str
    started: float
    preview: str = ""
    output: str = ""
    printed: int = 0
    """Lines so far, of which only the last are kept here."""
    was_asked_about: bool = False
    """Whether a person has seen what it does."""
    was_refused: bool = False


class TurnView:
    """Hears what happens: what is over goes into the terminal's history, what is under way is drawn below it."""

    def __init__(self) -> None:
        self._painter = MarkdownPainter(colour=has_colour(sys.stdout))
        self._answer = MarkdownStream()
        self._has_streamed = False
        self._thinking = ""
        self._writing = ""
        self._waiting = ""
        self._calls: dict[str, RunningCall] = {}

    def hear(self, update: SessionUpdate) -> None:
        match update:
            case SubagentTold():
                hear_subagent(update)
            case Stored(event=event):
                self._hear_kept(event)
            case TextDelta(text=text):
                self._waiting, self._thinking, self._has_streamed = "", "", True
                self._show(self._answer.feed(text))
            case ThinkingDelta(text=text):
                self._waiting, self._thinking = "", (self._thinking + text)[-LONGEST_THOUGHT:]
            case CallDelta(name=name):
                self._writing = name or self._writing
            case Waiting():
                self._answer.finish()
                self._waiting = f"waiting {update.seconds:.0f} s, then asking again: {escaped(update.reason)}"
            case CallStarted(call_id=id, tool=tool):
                self._writing, self._calls[id] = "", RunningCall(name=tool, started=time.monotonic())
            case PreviewReady(call_id=id, preview=preview) if id in self._calls:
                self._calls[id].preview = preview
            case PermissionAsked(call_id=id) if id in self._calls:
                self._calls[id].was_asked_about = True
            case OutputChunk(call_id=id, text=text) if id in self._calls:
                call = self._calls[id]
                call.output = (call.output + text)[-MOST_OUTPUT:]
                call.printed += text.count("\n")
            case _:
                pass

    def recall(self, history: History) -> None:
        """Show the end of what was said in a session that goes on."""
        for one in history.events[-MOST_RECALLED:]:
            self._hear_kept(one.event)
            if isinstance(one.event, AnswerReceived):
                self._calls |= {call.id: recalled(call) for call in one.event.message.calls}
        self._calls.clear()

    def live(self, width: int, rows: int) -> str:
        """What is under way, at most so many rows of it."""
        lines = "\n".join(self._live(width)).split("\n")
        return "\n".join(lines[-rows:])

    def _live(self, width: int) -> Iterator[str]:
        if block := self._answer.open:
            yield self._painter.paint(block, width)
        if self._waiting:
            yield paint_line(cut(self._waiting, width), "warning")
        if self._thinking and not self._answer.open:
            yield paint_line(
                cut(f"thinking: {' '.join(as_seen(self._thinking).split())[-(width - 12) :]}", width), "faint"
            )
        if self._writing:
            yield paint_line(cut(f"writing a call of {escaped(self._writing)} …", width), "faint")
        for call in self._calls.values():
            took = f"  ({time.monotonic() - call.started:.0f} s)"
            yield call_heading(call.name, summary(call.preview), width, took)
            yield from tail(call.output, width, most=MOST_LIVE_TAIL, printed=call.printed)

    def _hear_kept(self, event: SessionEvent) -> None:
        width = terminal_width()
        match event:
            case PromptGiven(message=message):
                show_lines(prompt_lines(message, width))
            case AnswerReceived(message=message):
                self._show([*([] if self._has_streamed else self._answer.feed(message.text)), *self._answer.finish()])
                self._has_streamed, self._thinking, self._writing = False, "", ""
            case CallAnswered(answer=answer, seconds=seconds):
                self._show_result(answer, seconds, width)
            case QuestionAnswered(call_id=id, allowed=allowed, reason=reason):
                if not allowed:
                    show_note(f"  not allowed: {reason}", "warning")
                if id in self._calls:
                    self._calls[id].was_refused = not allowed
            case Noticed(text=text):
                show_note(text, "warning")
            case ContextShortened(what=what):
                show_note(f"the conversation was shortened ({what})", "faint")
            case TurnEnded():
                self._show(self._answer.finish())
                self._calls.clear()
                self._waiting = self._thinking = self._writing = ""
                show_lines(ending_lines(event))
            case _:
                pass

    def _show_result(self, answer: CallAnswer, seconds: float, width: int) -> None:
        """How a call ended; of a change that nobody was asked about, the change."""
        call = self._calls.pop(answer.call_id, RunningCall(name=answer.name, started=0.0))
        shown: Iterable[str] = result_lines(answer, seconds, width, call.printed)
        if call.was_refused:  # and why has been said
            shown = (paint_line("  └ not run", "warning"), "")
        if is_diff(call.preview) and not answer.is_error:
            changes = () if call.was_asked_about else diff_lines(call.preview, width)
            shown = (*changes, *result_lines(msgspec.structs.replace(answer, text=""), seconds, width))
        show_lines([call_heading(answer.name, summary(call.preview), width), *shown])

    def _show(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            show_text(f"{self._painter.paint(block, terminal_width())}\n{'' if block.goes_on else chr(10)}")


def recalled(call: ToolCall) -> RunningCall:
    """A call of before, by its arguments, since nobody previews it any more."""
    given = call.arguments
    shown = given if isinstance(given, str) else str(given.get("command") or brief(dict(given), MOST_ARGUMENTS))
    return RunningCall(name=call.name, started=0.0, preview=shown)


def summary(preview: str) -> str:
    """What a call does, in a line; of a change, the file."""
    lines = preview.strip().split("\n")
    files = [line[4:].removeprefix("b/") for line in lines if line.startswith("+++ ")]
    return ", ".join(files) if is_diff(preview) else lines[0]


def show_lines(lines: Iterable[str]) -> None:
    if text := "\n".join(lines):
        show_text(f"{text}\n")
