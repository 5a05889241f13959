"""What a session waits for, as its events tell, and where the conversations of its subagents are."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from toolyard.agents.sessions.event_log import needed_events
from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, CallBegan, QuestionAnswered, QuestionAsked
from toolyard.agents.sessions.history import read_history, since_answer
from toolyard.core.conversation import CallAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.agents.sessions.events import Stored
    from toolyard.agents.sessions.store import SessionStore


def subagent_session(parent: str, answer: int, call_id: str) -> str:
    """The id of the session in which a subagent works on a call of an answer: the same whenever it is asked for."""
    return blake2b(f"{parent}\n{answer}\n{call_id}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def subagents_of(store: SessionStore, session: str, events: Sequence[Stored]) -> Iterator[tuple[int, str]]:
    """The calls that began a subagent, as the numbers of their events, and its session."""
    answer = 0
    for one in events:
        if isinstance(one.event, AnswerReceived):
            answer = one.seq
        elif isinstance(one.event, CallBegan) and store.has(id := subagent_session(session, answer, one.event.call.id)):
            yield one.seq, id


def open_questions(store: SessionStore, session: str) -> list[QuestionAsked]:
    """The questions of an open turn that nobody has answered, with those of subagents that work for it."""
    history = read_history(needed_events(store, session))
    if not history.is_open:
        return []
    asked: dict[str, QuestionAsked] = {}
    for one in since_answer(history.events):
        match one.event:
            case QuestionAsked(call_id=id):
                asked[id] = one.event
            case QuestionAnswered(call_id=id) | CallAnswered(answer=CallAnswer(call_id=id)):
                asked.pop(id, None)
            case _:
                pass
    children = {id for _, id in subagents_of(store, session, list(since_answer(history.events)))}
    return [*asked.values(), *(one for id in sorted(children) for one in open_questions(store, id))]
