"""Everything that happens in a conversation and is kept: what a session is made of when it is read again."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from toolyard.core.conversation import AssistantMessage, CallAnswer, Usage, UserMessage
from toolyard.core.reach import Reach
from toolyard.core.tool import JsonObject, ToolCall

Outcome = Literal["answered", "budget", "refused", "interrupted", "stuck", "error"]
"""How a turn ended: by an answer, a budget, a refusal of the model's, a person, the same calls over and over, or an
error."""


class PromptGiven(msgspec.Struct, frozen=True, kw_only=True, tag="prompt"):
    """Somebody said something to the agent."""

    message: UserMessage
    during_turn: bool = False
    """Whether it was said while the agent worked, to steer it."""


class TurnStarted(msgspec.Struct, frozen=True, kw_only=True, tag="turn_started"):
    """The agent begins to work on what was said."""

    turn: int


class PartialAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="partial"):
    """What has come of an answer so far; the whole one replaces it, if it comes."""

    text: str
    thinking: str = ""


class AnswerReceived(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """A model answered, with words, calls or both."""

    message: AssistantMessage


class CallBegan(msgspec.Struct, frozen=True, kw_only=True, tag="call_began"):
    """A call was permitted and runs from now on; if no result follows, nobody knows how far it came."""

    call: ToolCall
    reach: Reach = "work"
    checkpoint: str | None = None
    """The state of the workspace that was kept before it."""


class QuestionAsked(msgspec.Struct, frozen=True, kw_only=True, tag="question"):
    """A call waits for a person."""

    call_id: str
    question: JsonObject


class QuestionAnswered(msgspec.Struct, frozen=True, kw_only=True, tag="question_answered"):
    """A person, or a rule, answered."""

    call_id: str
    allowed: bool
    reason: str


class CallAnswered(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """A call has its one result."""

    answer: CallAnswer
    seconds: float = 0.0
    steps: int = 0
    """Of a subagent's call: how many answers its model gave."""
    usage: Usage = Usage()
    """And what they took."""


class TurnWaits(msgspec.Struct, frozen=True, kw_only=True, tag="turn_waits"):
    """Nobody was there to answer: the turn is open, and goes on when its questions are answered."""

    turn: int
    questions: tuple[str, ...]
    """The ids of the calls that wait."""


class ContextShortened(msgspec.Struct, frozen=True, kw_only=True, tag="shortened"):
    """From now on the model sees less of what was before; the store keeps all of it."""

    what: Literal["outputs", "summary"]
    upto: int
    """The last event that it is about."""
    summary: str = ""
    tokens_before: int = 0


class Noticed(msgspec.Struct, frozen=True, kw_only=True, tag="notice"):
    """Something that a person should know: a retry, a loop, a budget that is nearly spent."""

    text: str


class TurnEnded(msgspec.Struct, frozen=True, kw_only=True, tag="turn_ended"):
    """The agent stopped, and why."""

    turn: int
    outcome: Outcome
    reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    hint: str = ""
    fault: str = ""
    """Of an error, who is at fault; one of `toolyard.core.model.ProviderFault`."""
    checkpoint: str | None = None
    """The state of the workspace after it, if one was kept before it."""


class Rewound(msgspec.Struct, frozen=True, kw_only=True, tag="rewound"):
    """The conversation goes on from before an event, as if it and all after it had not been."""

    to: int
    files: str | None = None
    """The state that the workspace went back to, if it did."""
    safety: str | None = None
    """The state that it had before, for going forward again."""
    paths: tuple[str, ...] = ()
    """Which files went back, if not all."""
    redoes: int = 0
    """The number of an earlier way back that this one takes back: what that one left out counts again."""


class MetadataSet(msgspec.Struct, frozen=True, kw_only=True, tag="metadata"):
    """Something about the session was changed: its title, its plugins, a control."""

    values: JsonObject


SessionEvent: TypeAlias = (
    PromptGiven
    | TurnStarted
    | PartialAnswer
    | AnswerReceived
    | CallBegan
    | QuestionAsked
    | QuestionAnswered
    | CallAnswered
    | TurnWaits
    | ContextShortened
    | Noticed
    | TurnEnded
    | Rewound
    | MetadataSet
)


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its place in its session."""

    seq: int
    time: float
    event: SessionEvent
