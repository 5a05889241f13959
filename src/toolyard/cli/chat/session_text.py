"""What happened in a session, in words or as lines of JSON."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from toolyard.agents.sessions.copying import export_lines
from toolyard.agents.sessions.event_lines import as_object
from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    CallBegan,
    ContextShortened,
    Noticed,
    PromptGiven,
    QuestionAnswered,
    QuestionAsked,
    Rewound,
    TurnEnded,
)
from toolyard.agents.sessions.history import effective
from toolyard.agents.sessions.questions import subagents_of
from toolyard.cli.render import show_line, show_note, show_text
from toolyard.core.content import text_of
from toolyard.core.visible_text import escaped
from toolyard.permissions.approval import in_brief
from toolyard.process.environment import process_secrets
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.agents.sessions.event_log import SessionUpdate
    from toolyard.agents.sessions.store import SessionRow, SessionStore


def show_session(store: SessionStore, row: SessionRow, *, as_json: bool, everything: bool) -> None:
    """Print what happened, with what subagents did below the calls that they work on."""
    shown, redactor = told_events(store, row.id, everything=everything), known_secrets()
    if as_json:
        for update, _ in shown:
            show_line(redactor.redact_all(as_object(update)))
        return
    show_note(f"{row.id}  {row.agent}  {row.title}", "strong")
    for update, depth in shown:
        while isinstance(update, SubagentTold):
            update = update.update
        for line in in_words(update):
            show_text(f"{textwrap.indent(redactor.redact(line), '    ' * depth)}\n")


def known_secrets() -> Redactor:
    """Takes the secrets of this process out of what leaves the store, which has to keep what a model said as it was."""
    return Redactor(process_secrets())


def exported_lines(store: SessionStore, row: SessionRow) -> Iterator[Any]:
    """The lines of an export, for other eyes."""
    redactor = known_secrets()
    return map(redactor.redact_all, export_lines(store, row))


def told_events(store: SessionStore, id: str, *, everything: bool) -> Iterator[tuple[SessionUpdate, int]]:
    """The events of a session, each with how deep it is: those of a subagent follow the call that it works on."""
    events = store.events(id)
    shown, told = events if everything else effective(events), set[str]()
    children = dict(subagents_of(store, id, events))
    for one in shown:
        yield one, 0
        child = children.get(one.seq)
        if child and child not in told and isinstance(one.event, CallBegan):
            told.add(child)
            name = store.session(child).agent
            for update, depth in told_events(store, child, everything=everything):
                yield SubagentTold(call_id=one.event.call.id, session=child, agent=name, update=update), depth + 1


def in_words(one: Any) -> Iterator[str]:
    """An event for a person."""
    match one.event:
        case PromptGiven(message=message):
            yield f"[{one.seq}] > {escaped(text_of(message.content))}"
        case AnswerReceived(message=message):
            if message.text:
                yield f"[{one.seq}] {escaped(message.text)}"
            for call in message.calls:
                arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
                yield f"[{one.seq}] → {escaped(call.name)} {escaped(arguments)}"
        case CallAnswered(answer=answer):
            yield f"[{one.seq}]   {escaped(text_of(answer.content).rstrip())}"
        case QuestionAsked(question=question):
            yield f"[{one.seq}]   asked: {in_brief(question)}"
        case QuestionAnswered(allowed=allowed, reason=reason):
            yield f"[{one.seq}]   {'allowed' if allowed else 'not allowed'}: {escaped(reason)}"
        case ContextShortened(what=what):
            yield f"[{one.seq}] (the conversation was shortened: {what})"
        case Noticed(text=text):
            yield f"[{one.seq}] {escaped(text)}"
        case Rewound(redoes=earlier) if earlier:
            yield f"[{one.seq}] (took back that it went back, event {earlier})"
        case Rewound(to=to):
            files = f"{', '.join(map(escaped, one.event.paths)) or 'the files'} went back"
            yield f"[{one.seq}] ({files if to == one.seq else f'went back to before event {to}'})"
        case TurnEnded(outcome=outcome, reason=reason) if outcome != "answered":
            yield f"[{one.seq}] ({outcome}: {escaped(reason)})"
        case _:
            return
