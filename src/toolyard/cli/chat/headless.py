"""A turn for those who do not watch: the answer on standard output, or every event as a line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolyard.agents.sessions.event_lines import as_object
from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    ContextShortened,
    Noticed,
    QuestionAnswered,
    QuestionAsked,
    Stored,
    TurnEnded,
    TurnWaits,
)
from toolyard.cli.render import show_foreign, show_line, show_note
from toolyard.core.events import CallStarted, PreviewReady
from toolyard.core.model import Waiting
from toolyard.core.visible_text import escaped
from toolyard.permissions.approval import in_brief

if TYPE_CHECKING:
    from toolyard.agents.session import AgentSession
    from toolyard.agents.sessions.event_log import SessionUpdate
    from toolyard.agents.sessions.events import SessionEvent

EXIT_CODES = {"answered": 0, "refused": 3, "interrupted": 130}
WAITS = 4
LONGEST_SHOWN = 200


class JsonListener:
    """Prints every event."""

    def __init__(self, session: str) -> None:
        self._ended: TurnEnded | TurnWaits | None = None
        show_line({"v": 1, "type": "session", "id": session})

    def hear(self, update: SessionUpdate) -> None:
        self._ended = ended_by(update) or self._ended
        show_line(as_object(update))

    def exit_code(self) -> int:
        return exit_code_of(self._ended)


class TextListener:
    """Prints the last answer, and beside it, on standard error, what the agent does."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._ended: TurnEnded | TurnWaits | None = None
        self._answer = ""

    def hear(self, update: SessionUpdate) -> None:
        self._ended = ended_by(update) or self._ended
        match update:
            case SubagentTold():
                hear_subagent(update)
            case Stored(event=event):
                self._hear_kept(event)
            case PreviewReady(preview=preview) if preview:
                show_note(f"→ {first_line(preview)}", "faint")
            case CallStarted(tool=tool):
                show_note(f"→ {escaped(tool)}", "faint")
            case Waiting():
                show_note(f"waiting {update.seconds:.0f} s: {update.reason}", "warning")
            case _:
                pass

    def _hear_kept(self, event: SessionEvent) -> None:
        match event:
            case AnswerReceived(message=message):
                self._answer = message.text
                if message.calls and message.text:
                    show_note(escaped(message.text), "faint")
            case CallAnswered(answer=answer) if answer.is_error:
                show_note(f"  {first_line(answer.text)}", "warning")
            case QuestionAsked(question=question):
                show_note(f"  asks: {in_brief(question)}", "warning")
            case QuestionAnswered(allowed=False, reason=reason):
                show_note(f"  not allowed: {reason}", "warning")
            case Noticed(text=text):
                show_note(text, "warning")
            case ContextShortened(what=what):
                show_note(f"the conversation was shortened ({what})", "faint")
            case TurnWaits():
                hint = f"toolyard chat --session {self._session[:12]} --answer yes|session|always|no"
                show_note("a question waits for an answer; nothing of it was run", "warning", hint=hint)
            case TurnEnded(outcome=outcome, reason=reason, hint=hint):
                if self._answer:
                    show_foreign(self._answer)
                if outcome != "answered":
                    show_note(f"{outcome}: {reason}", "error", hint=hint)
                show_note(f"session {self._session}", "faint")
            case _:
                pass

    def exit_code(self) -> int:
        return exit_code_of(self._ended)


async def listen_to_turn(session: AgentSession, prompt: str | None, listener: JsonListener | TextListener) -> int:
    """Say something, and have all told that happens; also how the turn ended when somebody ended the program."""
    seen = session.last_seq
    try:
        async for update in session.send(prompt):
            listener.hear(update)
            seen = update.seq if isinstance(update, Stored) else seen
    except asyncio.CancelledError:
        for one in session.events(after=seen):
            listener.hear(one)
        raise
    return listener.exit_code()


def hear_subagent(told: SubagentTold, depth: int = 1) -> None:
    """What a subagent does, and who it is."""
    match told.update:
        case SubagentTold():
            hear_subagent(told.update, depth + 1)
        case PreviewReady(preview=preview) if preview:
            show_note(f"{'  ' * depth}{escaped(told.agent)} → {first_line(preview)}", "faint")
        case Stored(event=QuestionAsked(question=question)):
            asked = f"asks: {in_brief(question)}"
            show_note(f"{'  ' * depth}{escaped(told.agent)} {asked}", "warning")
        case _:
            pass


def ended_by(update: SessionUpdate) -> TurnEnded | TurnWaits | None:
    return update.event if isinstance(update, Stored) and isinstance(update.event, TurnEnded | TurnWaits) else None


def exit_code_of(ended: TurnEnded | TurnWaits | None) -> int:
    """By how the turn ended; an error that is the configuration's has the status of one."""
    if ended is None:
        return 1
    if isinstance(ended, TurnWaits):
        return WAITS
    return 2 if ended.fault == "setup" else EXIT_CODES.get(ended.outcome, 1)


def first_line(text: str) -> str:
    line = escaped(text.strip().split("\n")[0])
    return line if len(line) <= LONGEST_SHOWN else f"{line[: LONGEST_SHOWN - 1]}…"
