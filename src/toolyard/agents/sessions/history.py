"""From the events of a session to the messages that a model reads, in an order that every API takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    CallBegan,
    ContextShortened,
    PartialAnswer,
    PromptGiven,
    Rewound,
    TurnEnded,
    TurnStarted,
)
from toolyard.core.conversation import AssistantMessage, CallAnswer, SummaryMessage, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.agents.sessions.events import Stored
    from toolyard.core.conversation import Message
    from toolyard.core.tool import ToolCall

INTERRUPTED = (
    "The call was interrupted before it had a result: the application ended while it ran. "
    "It may have done a part of its work, and it was not run again."
)
NOT_RUN = "The call was not run: the turn ended before it began."
SHORTENED = "[output of an earlier call, left out to save room; call again if it is needed]"
LONGEST_OLD_OUTPUT = 400
"""Characters of an earlier result that stay when results are shortened."""


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """A call without a result."""

    call: ToolCall
    began: bool
    """Whether it began to run, so that it must not be run again."""


class History(msgspec.Struct, kw_only=True):
    """A session as it stands: what is left of its events after every way back."""

    events: list[Stored]
    messages: list[Message]
    unanswered: list[Unanswered]
    """The calls of the last answer that have no result yet, in order."""
    turn: int = 0
    is_open: bool = False
    """Whether the last turn began and did not end."""
    partial: str = ""
    """What had come of an answer that never came whole."""


def read_history(stored: Iterable[Stored]) -> History:
    """Fold events into what the session is now."""
    events = effective(stored)
    messages, unanswered = messages_of(events)
    turns = [one.event for one in events if isinstance(one.event, TurnStarted | TurnEnded)]
    partial = ""
    for one in events:
        if isinstance(one.event, PartialAnswer):
            partial = one.event.text
        elif isinstance(one.event, AnswerReceived | PromptGiven | TurnEnded):
            partial = ""
    return History(
        events=events,
        messages=messages,
        unanswered=unanswered,
        turn=turns[-1].turn if turns else 0,
        is_open=bool(turns) and isinstance(turns[-1], TurnStarted),
        partial=partial,
    )


def effective(stored: Iterable[Stored]) -> list[Stored]:
    """The events that still count: what was gone back from does not."""
    kept: list[Stored] = []
    for one in stored:
        if isinstance(one.event, Rewound):
            target = one.event.to
            kept = [earlier for earlier in kept if earlier.seq < target]
        else:
            kept.append(one)
    return kept


def messages_of(events: Sequence[Stored]) -> tuple[list[Message], list[Unanswered]]:
    """What the model reads; every call of it has a result, but those of the last answer may still be missing one."""
    messages: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    began: set[str] = set()
    answers: dict[str, CallAnswer] = {}
    summary, outputs_upto = last_shortenings(events)
    steering: list[UserMessage] = []

    def close_answer() -> None:
        """The results of the last answer become one message; those that never came are told as that."""
        if open_calls:
            told = tuple(answers.get(id) or missing(call, began=id in began) for id, call in open_calls.items())
            messages.append(ToolMessage(answers=told))
            open_calls.clear()
        messages.extend(steering)
        steering.clear()

    for one in events:
        if summary and one.seq <= summary.upto:
            continue
        if summary and not messages and not open_calls:
            messages.append(SummaryMessage(text=summary.summary))
        match one.event:
            case PromptGiven(message=message):
                if open_calls and not answers.keys() >= open_calls.keys():
                    steering.append(message)  # said while calls run: it comes after their results
                else:
                    close_answer()
                    messages.append(message)
            case AnswerReceived(message=message):
                close_answer()
                messages.append(message)
                open_calls = {call.id: call for call in message.calls}
                answers.clear()
                began.clear()
            case CallBegan(call=call):
                began.add(call.id)
            case CallAnswered(answer=answer):
                answers[answer.call_id] = shortened(answer) if one.seq <= outputs_upto else answer
            case TurnEnded():
                close_answer()
            case _:
                pass
    unanswered = [Unanswered(call=call, began=id in began) for id, call in open_calls.items() if id not in answers]
    if not unanswered:
        close_answer()
    if summary and not messages:
        messages.append(SummaryMessage(text=summary.summary))
    return messages, unanswered


def last_shortenings(events: Sequence[Stored]) -> tuple[ContextShortened | None, int]:
    """The summary that stands for what was before, and up to where results are shortened."""
    summary, outputs = None, 0
    for one in events:
        if isinstance(one.event, ContextShortened):
            if one.event.what == "summary":
                summary = one.event
            else:
                outputs = one.event.upto
    return summary, outputs


def missing(call: ToolCall, *, began: bool) -> CallAnswer:
    text = INTERRUPTED if began else NOT_RUN
    return CallAnswer(call_id=call.id, name=call.name, text=text, is_error=True)


def shortened(answer: CallAnswer) -> CallAnswer:
    """A result of which the model needs no more than that there was one."""
    if len(answer.text) <= LONGEST_OLD_OUTPUT and not answer.attachments:
        return answer
    text = f"{answer.text[:LONGEST_OLD_OUTPUT]}\n{SHORTENED}"
    return msgspec.structs.replace(answer, text=text, attachments=())


def turn_starts(history: History) -> list[tuple[int, int]]:
    """For each turn its number and the event at which it begins: what was said, if that is why it began."""
    starts: list[tuple[int, int]] = []
    prompt: int | None = None
    for one in history.events:
        if isinstance(one.event, PromptGiven) and not one.event.during_turn and prompt is None:
            prompt = one.seq
        elif isinstance(one.event, TurnStarted):
            starts.append((one.event.turn, prompt if prompt is not None else one.seq))
            prompt = None
    return starts


def last_answer(messages: Sequence[Message]) -> AssistantMessage | None:
    return next((one for one in reversed(messages) if isinstance(one, AssistantMessage)), None)
