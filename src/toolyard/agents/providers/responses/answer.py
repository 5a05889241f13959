"""An answer in OpenAI's Responses form, put together while it comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.providers.asking import decode, named_item
from toolyard.agents.providers.faults import failure, reported
from toolyard.agents.providers.prices import tokens_at
from toolyard.agents.providers.responses.request import WIRE
from toolyard.agents.providers.wire_tools import own_call
from toolyard.core.conversation import AssistantMessage, StopReason, Usage
from toolyard.core.model import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from toolyard.core.tool import JsonObject, ToolCall
from toolyard.core.wire.sdk_messages import tool_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.agents.providers.connection import AnswerStage
    from toolyard.agents.providers.wire_tools import WireTools
    from toolyard.core.tool import Json

ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
STOPS: Mapping[str, StopReason] = {"max_output_tokens": "length", "content_filter": "refusal"}
NATIVE = {"shell_call": ("shell", "action"), "local_shell_call": ("local_shell", "action"),
          "apply_patch_call": ("apply_patch", "operation")}  # fmt: skip
"""Calls of native tools: the type of the tool, and the field that has the arguments."""


class ResponsesEvent(msgspec.Struct):
    """One event of a stream; which fields there are depends on its type."""

    type: str = ""
    output_index: int = 0
    delta: Any = None
    item: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    error: Any = None
    code: Any = None
    message: Any = None


DECODER = msgspec.json.Decoder(ResponsesEvent)


class ResponsesAnswer:
    """Collects the items of an answer."""

    def __init__(self, model: str, tools: WireTools, service: str) -> None:
        self._model = model
        self._tools = tools
        self._service = service
        self._items: dict[int, JsonObject] = {}
        self._begun: dict[int, tuple[str, str]] = {}
        """The id and our name of the tool, of calls that have begun."""
        self._response: JsonObject | None = None
        self._end = ""
        self._thought = False

    @property
    def stage(self) -> AnswerStage:
        """How far the answer is; the last event has all that the others told."""
        return "over" if self._end else "coming"

    def take(self, data: bytes) -> Sequence[ModelEvent]:
        """What an event tells."""
        if data == b"[DONE]":
            return ()
        event: ResponsesEvent = decode(DECODER, data, self._service)
        if not event.type:
            return self._whole(data)
        known = TAKES.get(event.type)
        if known:
            return known(self, event)
        if event.type in ENDS:
            self._end, self._response = event.type, event.response or {}
        elif event.type == "error":
            error = event.error or {"code": event.code, "message": event.message}
            raise reported(error, service=self._service)
        return ()

    def message(self) -> AssistantMessage:
        """The whole answer."""
        response = self._response
        if response is None:
            raise failure("network", f"the answer of {self._service} was cut off")
        if self._end in ("response.failed", "response.cancelled"):
            raise reported(response.get("error") or {}, service=self._service)
        items = tuple(item for _, item in sorted(self._items.items()))
        items = items or tuple(named_item(item, self._service) for item in objects(response.get("output")))
        texts, refused = text_parts(items)
        calls = tuple(call for item in items if (call := call_of(item, self._tools)))
        return AssistantMessage(
            text="".join(texts) or refused,
            thinking="\n\n".join(thoughts(items)),
            calls=calls,
            stop=self._stop(response, refused=bool(refused and not texts), called=bool(calls)),
            usage=responses_usage(response.get("usage")),
            model=str(response.get("model") or self._model),
            wire=WIRE,
            items=items,
        )

    def _whole(self, data: bytes) -> Sequence[ModelEvent]:
        """A response of a server that does not stream."""
        response = msgspec.json.decode(data)
        if response.get("error") or response.get("object") != "response":
            raise reported(response.get("error") or {"message": "no response"}, service=self._service)
        self._end, self._response = f"response.{response.get('status')}", response
        return ()

    def _stop(self, response: JsonObject, *, refused: bool, called: bool) -> StopReason:
        if self._end == "response.incomplete":
            details = response.get("incomplete_details")
            return STOPS.get(str(details.get("reason")) if isinstance(details, Mapping) else "", "length")
        return "tool_calls" if called else "refusal" if refused else "answer"

    def _text(self, event: ResponsesEvent) -> Sequence[ModelEvent]:
        return (TextDelta(text=str(event.delta)),) if event.delta else ()

    def _thinking(self, event: ResponsesEvent) -> Sequence[ModelEvent]:
        self._thought = True
        return (ThinkingDelta(text=str(event.delta)),) if event.delta else ()

    def _next_thought(self, _event: ResponsesEvent) -> Sequence[ModelEvent]:
        return (ThinkingDelta(text="\n\n"),) if self._thought else ()

    def _arguments(self, event: ResponsesEvent) -> Sequence[ModelEvent]:
        call_id, name = self._begun.get(event.output_index, ("", ""))
        return (CallDelta(call_id=call_id, name=name, text=str(event.delta)),) if call_id and event.delta else ()

    def _begin(self, event: ResponsesEvent) -> Sequence[ModelEvent]:
        call = call_of(named_item(event.item or {}, self._service), self._tools)
        if call is None:
            return ()
        self._begun[event.output_index] = (call.id, call.name)
        return (CallDelta(call_id=call.id, name=call.name, text=""),)

    def _done(self, event: ResponsesEvent) -> Sequence[ModelEvent]:
        # Only here an item is complete; what came when it began may lack a part of the encrypted reasoning.
        if event.item is not None:
            self._items[event.output_index] = named_item(event.item, self._service)
        return ()


TAKES: Mapping[str, Callable[[ResponsesAnswer, ResponsesEvent], Sequence[ModelEvent]]] = {
    "response.output_text.delta": ResponsesAnswer._text,
    "response.refusal.delta": ResponsesAnswer._text,
    "response.reasoning_summary_text.delta": ResponsesAnswer._thinking,
    "response.reasoning_text.delta": ResponsesAnswer._thinking,
    "response.reasoning_summary_part.added": ResponsesAnswer._next_thought,
    "response.function_call_arguments.delta": ResponsesAnswer._arguments,
    "response.custom_tool_call_input.delta": ResponsesAnswer._arguments,
    "response.shell_call_command.delta": ResponsesAnswer._arguments,
    "response.apply_patch_call_operation_diff.delta": ResponsesAnswer._arguments,
    "response.output_item.added": ResponsesAnswer._begin,
    "response.output_item.done": ResponsesAnswer._done,
}


def call_of(item: JsonObject, tools: WireTools) -> ToolCall | None:
    """The call that an item is; None for any other item, and for calls that the service itself runs."""
    for call in tool_calls([item], WIRE):
        return own_call(call, tools)
    if item.get("type") not in NATIVE or in_container(item):
        return None
    form, field = NATIVE[item["type"]]
    id, given = str(item.get("call_id") or item.get("id") or ""), item.get(field)
    return ToolCall(id=id, name=tools.of_type(form), arguments=given if isinstance(given, Mapping) else {})


def in_container(item: JsonObject) -> bool:
    """Whether the service runs a shell call itself."""
    environment = item.get("environment")
    return isinstance(environment, Mapping) and environment.get("type") not in (None, "local")


def text_parts(items: Sequence[JsonObject]) -> tuple[list[str], str]:
    """The words of all messages, and of a refusal."""
    parts = [part for item in items if item.get("type") == "message" for part in objects(item.get("content"))]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "output_text"]
    return texts, "".join(str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal")


def thoughts(items: Sequence[JsonObject]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "reasoning":
            parts = [*objects(item.get("summary"))] or [*objects(item.get("content"))]
            yield from (str(part["text"]) for part in parts if part.get("text"))


def objects(given: Json) -> Iterator[JsonObject]:
    return (each for each in given if isinstance(each, Mapping)) if isinstance(given, list) else iter(())


def responses_usage(given: Json) -> Usage:
    """Tokens, in our words."""
    return Usage(
        input=tokens_at(given, "input_tokens"),
        output=tokens_at(given, "output_tokens"),
        cached=tokens_at(given, "input_tokens_details", "cached_tokens"),
        cache_written=tokens_at(given, "input_tokens_details", "cache_write_tokens"),
        reasoning=tokens_at(given, "output_tokens_details", "reasoning_tokens"),
    )
