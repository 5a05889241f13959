"""A turn as it happens, for a terminal that can only write: words as they come, nothing is drawn twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    Noticed,
    PromptGiven,
    QuestionAnswered,
    Stored,
    TurnEnded,
)
from toolyard.cli.chat.headless import hear_subagent
from toolyard.cli.chat.terminal.transcript import (
    call_heading,
    diff_lines,
    ending_lines,
    is_diff,
    prompt_lines,
    result_lines,
)
from toolyard.cli.chat.terminal.turn_view import MOST_RECALLED, show_lines
from toolyard.cli.render import show_note, show_piece, terminal_width
from toolyard.core.events import CallStarted, PreviewReady
from toolyard.core.model import TextDelta, Waiting
from toolyard.core.screen_text import as_seen
from toolyard.core.visible_text import escaped

if TYPE_CHECKING:
    from toolyard.agents.sessions.event_log import SessionUpdate
    from toolyard.agents.sessions.events import SessionEvent
    from toolyard.agents.sessions.history import History


class PlainView:
    """Hears what happens and writes it down."""

    def __init__(self) -> None:
        self._is_in_line = False
        self._tools: dict[str, str] = {}

    def hear(self, update: SessionUpdate) -> None:
        match update:
            case SubagentTold():
                hear_subagent(update)
            case Stored(event=event):
                self._hear_kept(event)
            case TextDelta(text=text):
                show_piece(as_seen(text))
                self._is_in_line = True
            case Waiting():
                self._end_line()
                show_note(f"waiting {update.seconds:.0f} s, then asking again: {escaped(update.reason)}", "warning")
            case CallStarted(call_id=id, tool=tool):
                self._tools[id] = tool
            case PreviewReady(call_id=id, preview=preview):
                self._end_line()
                shown = diff_lines(preview, terminal_width()) if is_diff(preview) else ()
                show_lines([call_heading(self._tools.pop(id, ""), preview, terminal_width()), *shown])
            case _:
                pass

    def recall(self, history: History) -> None:
        """Show the end of what was said in a session that goes on."""
        for one in history.events[-MOST_RECALLED:]:
            if isinstance(one.event, PromptGiven):
                show_lines(prompt_lines(one.event.message, terminal_width()))
            self._hear_kept(one.event)

    def live(self, width: int, rows: int) -> str:  # noqa: ARG002 - what other views have
        """Nothing is drawn below."""
        return ""

    def _hear_kept(self, event: SessionEvent) -> None:
        match event:
            case AnswerReceived(message=message):
                if message.text and not self._is_in_line:
                    show_piece(as_seen(message.text))
                    self._is_in_line = True
                self._end_line()
            case CallAnswered(answer=answer, seconds=seconds):
                show_lines(result_lines(answer, seconds, terminal_width()))
            case QuestionAnswered(allowed=False, reason=reason):
                show_note(f"  not allowed: {reason}", "warning")
            case Noticed(text=text):
                show_note(text, "warning")
            case TurnEnded():
                self._end_line()
                show_lines(ending_lines(event))
            case _:
                pass

    def _end_line(self) -> None:
        if self._is_in_line:
            show_piece("\n")
        self._is_in_line = False
