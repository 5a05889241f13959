"""An answer in OpenAI's Chat form, put together while it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.providers.asking import decode
from toolyard.agents.providers.chat.request import WIRE
from toolyard.agents.providers.faults import failure, reported
from toolyard.agents.providers.prices import tokens_at
from toolyard.agents.providers.wire_tools import own_call
from toolyard.core.conversation import AssistantMessage, StopReason, Usage
from toolyard.core.model import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from toolyard.core.wire.sdk_messages import tool_calls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.agents.providers.connection import AnswerStage
    from toolyard.agents.providers.wire_tools import WireTools
    from toolyard.core.tool import Json, JsonObject

THINKING = ("reasoning_content", "reasoning")
"""What different servers call it."""
STOPS: Mapping[str, StopReason] = {
    "stop": "answer",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
    "model_length": "window_full",
}
JOINED = ("arguments", "input", "text", "summary", "data", "content", "reasoning", "reasoning_content", "refusal")
"""Texts that come in pieces; others come whole."""


class ChatChoice(msgspec.Struct):
    """The one answer of a chunk; `message` where a server does not stream."""

    delta: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    finish_reason: str | None = None


class ChatChunk(msgspec.Struct):
    """One event of a stream."""

    choices: list[ChatChoice] | None = None
    usage: dict[str, Any] | None = None
    model: str | None = None
    error: Any = None


DECODER = msgspec.json.Decoder(ChatChunk)


class ChatAnswer:
    """Collects the pieces of the one message that comes."""

    def __init__(self, model: str, tools: WireTools, service: str) -> None:
        self._model = model
        self._tools = tools
        self._service = service
        self._pieces: dict[str, list[str]] = {}
        self._item: dict[str, Json] = {"role": "assistant", "content": None}
        self._calls: list[ChatCall] = []
        self._usage = Usage()
        self._finish: str | None = None
        self.stage: AnswerStage = "coming"

    def take(self, data: bytes) -> Sequence[ModelEvent]:
        """What a chunk tells."""
        if data == b"[DONE]":
            self.stage = "over"
            return ()
        chunk: ChatChunk = decode(DECODER, data, self._service)
        if chunk.error:
            raise reported(chunk.error, service=self._service)
        if chunk.usage:
            self._usage = chat_usage(chunk.usage)
        if chunk.model:
            self._model = chunk.model
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish, self.stage = choice.finish_reason, "whole"
        if choice.message is not None:
            self.stage = "over"
        delta = choice.delta or choice.message
        return self._take(delta) if delta else ()

    def message(self) -> AssistantMessage:
        """The whole answer."""
        if self._finish == "error":
            raise failure("server", f"{self._service} broke its answer off")
        if self.stage == "coming":
            raise failure("network", f"the answer of {self._service} was cut off")
        texts = {key: "".join(pieces) for key, pieces in self._pieces.items()}
        item = {**self._item, **texts}
        calls = [call for call in self._calls if call.name]
        if calls:
            item["tool_calls"] = [call.form() for call in calls]
        refused = texts.get("refusal", "")
        return AssistantMessage(
            text=texts.get("content", "") or refused,
            thinking=next((texts[key] for key in THINKING if texts.get(key)), ""),
            calls=tuple(own_call(call, self._tools) for call in tool_calls(item, WIRE)),
            stop=self._stop(refused=bool(refused), called=bool(calls)),
            usage=self._usage,
            model=self._model,
            wire=WIRE,
            items=(item,),
        )

    def _take(self, delta: dict[str, Any]) -> Sequence[ModelEvent]:
        events: list[ModelEvent] = []
        for key, value in delta.items():
            if not value:
                continue
            if key == "content" and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
                events.append(TextDelta(text=value))
            elif key == "tool_calls" and isinstance(value, list):
                events += [event for piece in value if (event := self._take_call(piece))]
            elif key in THINKING and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
                if key == THINKING[0] or THINKING[0] not in self._pieces:
                    events.append(ThinkingDelta(text=value))
            elif key == "refusal" and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
                events.append(TextDelta(text=value))
            elif key != "role":
                self._item[key] = merged(self._item.get(key), value)
        return events

    def _take_call(self, piece: Json) -> CallDelta | None:
        if not isinstance(piece, dict):
            raise failure("answer", f"{self._service} sent a call that is none")
        call = self._call_of(piece)
        text = call.take(piece)
        return CallDelta(call_id=call.id, name=self._tools.own_name(call.name), text=text) if call.name else None

    def _call_of(self, piece: dict[str, Any]) -> ChatCall:
        """The call that a piece belongs to: by its index, unless an id says that it is another one."""
        index, id = piece.get("index"), piece.get("id")
        if index is None and not id and self._calls:
            return self._calls[-1]
        for call in reversed(self._calls):
            if (index is None and call.id == id) or (index is not None and call.index == index):
                if id and call.given_id and id != call.given_id:
                    break
                return call
        call = ChatCall(index, number=len(self._calls) + 1)
        self._calls.append(call)
        return call

    def _stop(self, *, refused: bool, called: bool) -> StopReason:
        stop = STOPS.get(self._finish or "stop", "answer")
        if refused and stop == "answer":
            return "refusal"
        # Some servers say "stop" of an answer with calls, and others the reverse.
        return ("tool_calls" if called else "answer") if stop in ("answer", "tool_calls") else stop


class ChatCall:
    """One call while its pieces come."""

    def __init__(self, index: Json, number: int) -> None:
        self.index = index
        self.id = f"call_{number}"
        self.given_id = ""
        self.name = ""
        self.type = "function"
        self._pieces: list[str] = []
        self._more: dict[str, Json] = {}

    def take(self, piece: dict[str, Any]) -> str:
        """Add a piece; the text that it adds to the arguments."""
        if id := piece.get("id"):
            self.id = self.given_id = str(id)
        self.type = piece.get("type") or self.type
        inner = piece.get("custom") or piece.get("function") or {}
        if "custom" in piece:
            self.type = "custom"
        self._more |= {key: piece[key] for key in piece if key not in ("index", "id", "type", "function", "custom")}
        if not isinstance(inner, dict):
            return ""
        self.name = str(inner.get("name") or "") or self.name
        given = inner.get("arguments") if self.type != "custom" else inner.get("input")
        # A few servers give an object where the text of one belongs.
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode() if given else ""
        self._pieces.append(text)
        return text

    def form(self) -> JsonObject:
        """The call as it goes back."""
        text = "".join(self._pieces)
        if self.type == "custom":
            return {"id": self.id, "type": "custom", "custom": {"name": self.name, "input": text}, **self._more}
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": text}, **self._more}


def merged(before: Json, piece: Json) -> Json:
    """A field that we do not read, in pieces: lists grow or are merged by index, some texts grow, the rest is new."""
    if isinstance(before, list) and isinstance(piece, list):
        return merged_list(before, piece)
    if isinstance(before, dict) and isinstance(piece, dict):
        return merged_object(before, piece)
    return piece


def merged_list(before: list[Json], pieces: list[Json]) -> list[Json]:
    found = list(before)
    for piece in pieces:
        if found and goes_on(found[-1], piece):
            found[-1] = merged_object(found[-1], piece)
        else:
            found.append(piece)
    return found


def goes_on(last: Json, piece: Json) -> bool:
    """Whether a piece belongs to the last element of a list."""
    if not isinstance(last, dict) or not isinstance(piece, dict) or "index" not in piece:
        return False
    return bool(last.get("index") == piece["index"] and last.get("type") == piece.get("type"))


def merged_object(before: dict[str, Json], piece: dict[str, Json]) -> dict[str, Json]:
    grown = dict(before)
    for key, value in piece.items():
        old = grown.get(key)
        if isinstance(old, str) and isinstance(value, str) and key in JOINED:
            grown[key] = old + value
        elif value is not None or key not in grown:
            grown[key] = merged(old, value)
    return grown


def chat_usage(given: JsonObject) -> Usage:
    """Tokens and, where a service says so, the cost."""
    cost = given.get("cost")
    return Usage(
        input=tokens_at(given, "prompt_tokens"),
        output=tokens_at(given, "completion_tokens"),
        cached=tokens_at(given, "prompt_tokens_details", "cached_tokens")
        or tokens_at(given, "prompt_cache_hit_tokens"),
        cache_written=tokens_at(given, "prompt_tokens_details", "cache_write_tokens"),
        reasoning=tokens_at(given, "completion_tokens_details", "reasoning_tokens"),
        cost=float(cost) if isinstance(cost, int | float) else None,
    )
