"""What a provider is asked, and what it tells while a model answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from toolyard.core.conversation import AssistantMessage, Message
from toolyard.core.tool import JsonObject, ToolSpec

ProviderFault = Literal["setup", "request", "too_long", "rate_limit", "overloaded", "network", "server", "answer"]
"""Who is at fault: the configuration (`setup`), what we sent (`request`), the conversation's length (`too_long`), a
limit of the account (`rate_limit`), the service (`overloaded`, `server`), the way there (`network`), or what came back
and makes no sense (`answer`)."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model. The messages are in an order that every API takes."""

    model: str
    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    search: bool = False
    """Whether the service itself lets the model look for tools, instead of showing it all of them."""
    may_call: bool = True
    """Whether the model may call tools; False when only a last answer is wanted."""
    options: JsonObject = msgspec.field(default_factory=dict)
    """Such as a temperature; they go into the request as they are."""
    config: JsonObject = msgspec.field(default_factory=dict)
    """The agent's configuration: `api_key`, `base_url` and what else a provider reads."""
    session: str = ""
    """The same for all requests of a conversation, for those who cache by it."""
    schema: JsonObject | None = None
    """A JSON Schema that the whole answer must fit; None for plain words."""


class TextDelta(msgspec.Struct, frozen=True, kw_only=True, tag="text_delta"):
    """More of the answer's words."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, kw_only=True, tag="thinking_delta"):
    """More of what the model thinks, where it lets that be seen."""

    text: str


class CallDelta(msgspec.Struct, frozen=True, kw_only=True, tag="call_delta"):
    """More of a call's arguments, as the text that the model writes."""

    call_id: str
    name: str
    text: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True, tag="waiting"):
    """The request failed and will be sent again; what was told of its answer so far does not count."""

    reason: str
    seconds: float
    attempt: int


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """The whole answer; always the last thing that is told."""

    message: AssistantMessage


ModelEvent: TypeAlias = TextDelta | ThinkingDelta | CallDelta | Waiting | Answered
