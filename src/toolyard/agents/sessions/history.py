"""From the events of a session to the messages that a model reads, in an order that every API takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    CallBegan,
    ContextShortened,
    MetadataSet,
    PartialAnswer,
    PromptGiven,
    Rewound,
    TurnEnded,
    TurnStarted,
)
from toolyard.core.conversation import AssistantMessage, CallAnswer, SummaryMessage, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.agents.sessions.events import SessionEvent, Stored
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
    """What the model reads; every call has a result, but those of the last answer may still be missing one."""
    unanswered: list[Unanswered]
    """The calls of the last answer that have no result yet, in order."""
    turn: int = 0
    is_open: bool = False
    """Whether the last turn began and did not end."""
    partial: str = ""
    """What had come of an answer that never came whole."""


def read_history(stored: Iterable[Stored]) -> History:
    """Fold events into what the session is now."""
    fold = HistoryFold()
    fold.add(*stored)
    return fold.history()


class HistoryFold:
    """Keeps up with a session: each event is looked at once, except where what was before means something else now."""

    def __init__(self) -> None:
        self._all: list[Stored] = []
        self._begin(())

    def add(self, *stored: Stored) -> None:
        self._all += stored
        if any(isinstance(one.event, Rewound | ContextShortened) for one in stored):
            self._begin(effective(self._all))
            return
        for one in stored:
            self._take(one)

    def history(self) -> History:
        """What the session is now."""
        messages, unanswered = list(self._messages), list(self._unanswered())
        if not unanswered:
            messages += self._closing()
        if self._summary and not messages:
            messages.append(SummaryMessage(text=self._summary.summary))
        return History(
            events=self._events,
            messages=messages,
            unanswered=unanswered,
            turn=self._turn,
            is_open=self._is_open,
            partial=self._partial,
        )

    def _begin(self, events: Sequence[Stored]) -> None:
        self._events: list[Stored] = []
        self._messages: list[Message] = []
        self._calls: dict[str, ToolCall] = {}
        """Of the last answer, as long as its results are no message yet."""
        self._began: set[str] = set()
        self._answers: dict[str, CallAnswer] = {}
        self._steering: list[UserMessage] = []
        """Said while calls run: it comes after their results."""
        self._turn, self._is_open, self._partial = 0, False, ""
        self._summary, self._outputs_upto = last_shortenings(events)
        for one in events:
            self._take(one)

    def _take(self, one: Stored) -> None:
        self._events.append(one)
        self._follow_turn(one.event)
        if self._summary:
            if one.seq <= self._summary.upto:
                return
            if not self._messages and not self._calls:
                self._messages.append(SummaryMessage(text=self._summary.summary))
        match one.event:
            case PromptGiven(message=message):
                if any(True for _ in self._unanswered()):
                    self._steering.append(message)
                else:
                    self._close()
                    self._messages.append(message)
            case AnswerReceived(message=message):
                self._close()
                self._messages.append(message)
                self._calls = {call.id: call for call in message.calls}
            case CallBegan(call=call):
                self._began.add(call.id)
            case CallAnswered(answer=answer):
                self._answers[answer.call_id] = shortened(answer) if one.seq <= self._outputs_upto else answer
            case TurnEnded():
                self._close()
            case _:
                pass

    def _follow_turn(self, event: SessionEvent) -> None:
        match event:
            case TurnStarted(turn=turn):
                self._turn, self._is_open = turn, True
            case TurnEnded():
                self._is_open, self._partial = False, ""
            case PartialAnswer(text=text):
                self._partial = text
            case AnswerReceived() | PromptGiven():
                self._partial = ""
            case _:
                pass

    def _unanswered(self) -> Iterator[Unanswered]:
        for id, call in self._calls.items():
            if id not in self._answers:
                yield Unanswered(call=call, began=id in self._began)

    def _closing(self) -> list[Message]:
        """The results of the last answer as one message, those that never came told as that; then what was said."""
        closing: list[Message] = list(self._steering)
        if self._calls:
            told = (self._answers.get(id) or missing(call, began=id in self._began) for id, call in self._calls.items())
            closing.insert(0, ToolMessage(answers=tuple(told)))
        return closing

    def _close(self) -> None:
        self._messages += self._closing()
        self._calls, self._steering = {}, []
        self._answers.clear()
        self._began.clear()


def effective(stored: Iterable[Stored]) -> list[Stored]:
    """The events that still count: what was gone back from does not, unless that was taken back."""
    kept: list[Stored] = []
    before: dict[int, list[Stored]] = {}
    for one in stored:
        if not isinstance(one.event, Rewound):
            kept.append(one)
        elif one.event.redoes:
            kept = [*before.get(one.event.redoes, kept)]
        else:
            before[one.seq] = kept
            kept = [earlier for earlier in kept if earlier.seq < one.event.to]
    return kept


def last_way_back(stored: Sequence[Stored]) -> Stored | None:
    """The way back that can be taken back: nothing was said or done since, but for others that were taken back."""
    redone: set[int] = set()
    for one in reversed(stored):
        match one.event:
            case MetadataSet():
                continue
            case Rewound(redoes=earlier) if earlier:
                redone.add(earlier)
            case Rewound() if one.seq not in redone:
                return one
            case Rewound():
                continue
            case _:
                break
    return None


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


def since_answer(events: Sequence[Stored]) -> Sequence[Stored]:
    """The model's last answer, and what happened since."""
    for number in range(len(events) - 1, -1, -1):
        if isinstance(events[number].event, AnswerReceived):
            return events[number:]
    return ()


def last_answer(messages: Sequence[Message]) -> AssistantMessage | None:
    return next((one for one in reversed(messages) if isinstance(one, AssistantMessage)), None)
