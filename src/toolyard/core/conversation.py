"""A conversation as it is kept: who said what, in words of our own and in those that the model's API used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from toolyard.core.content import Part, TextPart, text_of
from toolyard.core.text import whole_characters
from toolyard.core.tool import JsonObject, ToolCall, WireFormat

StopReason = Literal["answer", "tool_calls", "length", "refusal", "paused", "window_full"]
"""Why a model stopped. `length`: the answer is cut off; `paused`: it wants to go on, ask it again."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request took; tokens of the input that came from a cache, or went into one, are part of the input."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cost: float | None = None
    """In dollars; None when the price is not known."""

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cache_written=self.cache_written + other.cache_written,
            reasoning=self.reasoning + other.reasoning,
            cost=sum(costs) if costs else None,
        )


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, tag="user"):
    """What a person, or whoever drives the agent, said."""

    content: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All of it in words."""
        return text_of(self.content)


class AssistantMessage(msgspec.Struct, frozen=True, kw_only=True, tag="assistant"):
    """One answer of a model, whole."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason = "answer"
    usage: Usage = Usage()
    model: str = ""
    wire: WireFormat | str = ""
    """The form of `items`; only a provider of the same form can send them back."""
    items: tuple[JsonObject, ...] = ()
    """What the API sent, verbatim: it goes back unchanged, with signatures and whatever else we do not read."""


class CallAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one call, as the model reads it."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    attachments: tuple[Part, ...] = ()
    exit_code: int | None = None
    timed_out: bool = False
    outputs: tuple[JsonObject, ...] = ()
    """What each of several commands gave, for an API whose own shell tool is answered so."""

    @property
    def content(self) -> tuple[Part, ...]:
        """The whole result in parts: its text, if there is any, and what is attached."""
        return (TextPart(text=self.text), *self.attachments) if self.text else self.attachments

    @property
    def words(self) -> str:
        """All of it, for a model that only reads."""
        return text_of(self.content)


class ToolMessage(msgspec.Struct, frozen=True, kw_only=True, tag="tool"):
    """The results of all calls of one answer, in the order of the calls."""

    answers: tuple[CallAnswer, ...]


class SummaryMessage(msgspec.Struct, frozen=True, kw_only=True, tag="summary"):
    """Stands for everything before it."""

    text: str


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage | SummaryMessage


def message_of(prompt: str | Sequence[Part]) -> UserMessage:
    """What a person says, in words or in parts; bytes of another encoding, as a pipe may hold, become U+FFFD."""
    parts = (TextPart(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
    whole = (TextPart(text=whole_characters(one.text)) if isinstance(one, TextPart) else one for one in parts)
    return UserMessage(content=tuple(whole))
