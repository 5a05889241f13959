"""An answer in Anthropic's Messages form, put together while it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.agents.providers.anthropic.request import WIRE, object_of
from toolyard.agents.providers.asking import decode, named_item
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
    from toolyard.core.tool import Json, JsonObject, ToolCall

STOPS: Mapping[str, StopReason] = {
    "end_turn": "answer",
    "stop_sequence": "answer",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "pause_turn": "paused",
    "compaction": "paused",
    "refusal": "refusal",
    "model_context_window_exceeded": "window_full",
}
GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature",
           "input_json_delta": "partial_json"}  # fmt: skip


class AnthropicStart(msgspec.Struct):
    """What is known of a message when it begins."""

    model: str | None = None
    usage: dict[str, Any] | None = None


class AnthropicEvent(msgspec.Struct):
    """One event of a stream; which fields there are depends on its type."""

    type: str
    index: int = 0
    delta: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    message: AnthropicStart | None = None
    usage: dict[str, Any] | None = None
    content: list[dict[str, Any]] | None = None
    """Of a whole message, where a server does not stream."""
    stop_reason: str | None = None
    model: str | None = None
    error: Any = None


DECODER = msgspec.json.Decoder(AnthropicEvent)


class AnthropicAnswer:
    """Collects the blocks of an answer."""

    def __init__(self, model: str, tools: WireTools, service: str) -> None:
        self._model = model
        self._tools = tools
        self._service = service
        self._blocks: dict[int, AnthropicBlock] = {}
        self._usage: dict[str, Json] = {}
        self._stop: str | None = None
        self.stage: AnswerStage = "coming"

    def take(self, data: bytes) -> Sequence[ModelEvent]:
        """What an event tells."""
        event: AnthropicEvent = decode(DECODER, data, self._service)
        match event.type:
            case "content_block_delta":
                return self._delta(event)
            case "content_block_start":
                return self._begin(event)
            case "message_start" if event.message:
                self._usage |= event.message.usage or {}
                self._model = event.message.model or self._model
            case "message_delta":
                self._usage |= {key: value for key, value in (event.usage or {}).items() if value is not None}
                reason = (event.delta or {}).get("stop_reason")
                if isinstance(reason, str):
                    self._stop, self.stage = reason, "whole"
            case "message_stop":
                self.stage = "over"
            case "message":
                self._whole(event)
            case "error":
                raise reported(event.error, service=self._service)
        return ()

    def message(self) -> AssistantMessage:
        """The whole answer."""
        if self._stop is None:
            raise failure("network", f"the answer of {self._service} was cut off")
        blocks = [block for _, block in sorted(self._blocks.items()) if not block.is_blank]
        calls = tuple(block.call(self._tools) for block in blocks if block.type == "tool_use")
        stop = STOPS.get(self._stop, "answer")
        return AssistantMessage(
            text="".join(block.text for block in blocks),
            thinking="\n\n".join(block.thinking for block in blocks if block.thinking),
            calls=calls,
            stop="tool_calls" if calls and stop == "answer" else stop,
            usage=anthropic_usage(self._usage),
            model=self._model,
            wire=WIRE,
            items=tuple(block.item() for block in blocks),
        )

    def _whole(self, event: AnthropicEvent) -> None:
        for index, block in enumerate(event.content or ()):
            self._blocks[index] = AnthropicBlock(named_item(block, self._service))
        self._usage, self._stop, self.stage = event.usage or {}, event.stop_reason, "over"

    def _begin(self, event: AnthropicEvent) -> Sequence[ModelEvent]:
        start = named_item(event.content_block or {}, self._service)
        block = self._blocks[event.index] = AnthropicBlock(start)
        if block.type == "tool_use":
            return (CallDelta(call_id=block.id, name=self._tools.own_name(block.name), text=""),)
        return (TextDelta(text=block.text),) if block.text else ()

    def _delta(self, event: AnthropicEvent) -> Sequence[ModelEvent]:
        block, delta = self._blocks.get(event.index), event.delta
        if block is None or delta is None:
            raise failure("answer", f"{self._service} sent a part of a block that never began")
        kind = delta.get("type")
        text = block.grow(delta)
        if not text:
            return ()
        if kind == "text_delta":
            return (TextDelta(text=text),)
        if kind == "thinking_delta":
            return (ThinkingDelta(text=text),)
        if kind == "input_json_delta" and block.type == "tool_use":
            return (CallDelta(call_id=block.id, name=self._tools.own_name(block.name), text=text),)
        return ()


class AnthropicBlock:
    """One block while it grows."""

    def __init__(self, start: Mapping[str, Json]) -> None:
        self._start = start
        self._pieces: dict[str, list[str]] = {}
        self._citations: list[Json] = []
        self.type = str(start.get("type") or "")
        self.id = str(start.get("id") or "")
        self.name = str(start.get("name") or "")

    def grow(self, delta: Mapping[str, Json]) -> str:
        """Add a piece; the text that it adds."""
        kind = delta.get("type")
        if kind == "citations_delta":
            self._citations.append(delta.get("citation"))
        key = GROWING.get(str(kind))
        text = delta.get(key) if key else None
        if not key or not isinstance(text, str):
            return ""
        self._pieces.setdefault(key, []).append(text)
        return text

    @property
    def text(self) -> str:
        return self._grown("text") if self.type == "text" else ""

    @property
    def thinking(self) -> str:
        return self._grown("thinking") if self.type == "thinking" else ""

    @property
    def is_blank(self) -> bool:
        """Whether it is a text without words, which the API sends and does not take back."""
        return self.type == "text" and not self.text.strip()

    def item(self) -> JsonObject:
        """The block as it goes back."""
        item = {**self._start, **{key: self._grown(key) for key in self._pieces if key != "partial_json"}}
        if "partial_json" in self._pieces:
            item["input"] = object_of(self._grown("partial_json"))
        if self._citations:
            item["citations"] = [*(self._start.get("citations") or []), *self._citations]
        return item

    def call(self, tools: WireTools) -> ToolCall:
        """The call, with its arguments as the text that the model wrote."""
        (call,) = tool_calls([self.item()], WIRE)
        return own_call(replace(call, arguments=self._grown("partial_json") or call.arguments), tools)

    def _grown(self, key: str) -> str:
        start = self._start.get(key)
        return f"{start if isinstance(start, str) else ''}{''.join(self._pieces.get(key, ()))}"


def anthropic_usage(given: JsonObject) -> Usage:
    """Tokens, in our words: there, those of the cache are no part of the input."""
    read, written = tokens_at(given, "cache_read_input_tokens"), tokens_at(given, "cache_creation_input_tokens")
    return Usage(
        input=tokens_at(given, "input_tokens") + read + written,
        output=tokens_at(given, "output_tokens"),
        cached=read,
        cache_written=written,
        reasoning=tokens_at(given, "output_tokens_details", "thinking_tokens"),
    )
