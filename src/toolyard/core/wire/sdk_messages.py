"""A model's answer becomes calls, and their results what goes back to it: for each SDK's objects, and raw JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec.structs import replace

from toolyard.core.content import text_of
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.core.wire.content_forms import anthropic_result, chat_results, responses_output

if TYPE_CHECKING:
    from toolyard.core.tool import JsonObject

MessageFormat: TypeAlias = Literal["openai", "responses", "anthropic"]
LISTS = {"openai": "tool_calls", "responses": "output", "anthropic": "content"}
"""Where an answer has what a model wants called."""


class CallResults(dict[str, ToolResult]):
    """The results of one turn by the ids of their calls, in their order; `calls` are what they answer."""

    def __init__(self, results: Mapping[str, ToolResult], calls: Iterable[ToolCall]) -> None:
        super().__init__(results)
        self.calls = tuple(calls)


def tool_calls(message: Any, format: MessageFormat) -> list[ToolCall]:
    """What a model's answer wants called, in its order. Raises `TypeError` for what is no answer of that format."""
    match format:
        case "openai":
            found = list(_chat_calls(message))
        case "responses":
            found = list(_response_calls(message))
        case "anthropic":
            found = list(_anthropic_calls(message))
        case _:
            raise ValueError(f"there is no format '{format}' of messages; there are {', '.join(LISTS)}")
    return [call if call.id else _with_id(call, number) for number, call in enumerate(found, start=1)]


def tool_messages(results: Mapping[str, ToolResult], format: MessageFormat) -> list[JsonObject]:
    """The results of a turn as the messages, or items, that follow the model's answer."""
    match format:
        case "openai":
            return chat_results((id, one.content) for id, one in results.items())
        case "responses":
            texts = {call.id for call in results.calls if call.free_text} if isinstance(results, CallResults) else ()
            return [_response_output(id, one, free_text=id in texts) for id, one in results.items()]
        case "anthropic":
            blocks = [_anthropic_result(id, one) for id, one in results.items()]
            return [{"role": "user", "content": blocks}] if blocks else []
        case _:
            raise ValueError(f"there is no format '{format}' of messages; there are {', '.join(LISTS)}")


def _chat_calls(message: Any) -> Iterator[ToolCall]:
    message = _parsed(message)
    if choices := _field(message, "choices"):
        message = _field(choices[0], "message")
    for call in _listed(message, "openai"):
        id, function, custom = _field(call, "id"), _field(call, "function"), _field(call, "custom")
        if function is not None:
            yield _call(id, _field(function, "name"), _field(function, "arguments"))
        elif custom is not None:
            yield _text_call(id, _field(custom, "name"), _field(custom, "input"))


def _response_calls(response: Any) -> Iterator[ToolCall]:
    for item in _listed(_parsed(response), "responses"):
        match _field(item, "type"):
            case "function_call":
                yield _call(_field(item, "call_id"), _field(item, "name"), _field(item, "arguments"))
            case "custom_tool_call":
                yield _text_call(_field(item, "call_id"), _field(item, "name"), _field(item, "input"))


def _anthropic_calls(message: Any) -> Iterator[ToolCall]:
    for block in _listed(_parsed(message), "anthropic"):
        if _field(block, "type") == "tool_use":
            yield _call(_field(block, "id"), _field(block, "name"), _field(block, "input"))


def _listed(message: Any, format: MessageFormat) -> Iterable[Any]:
    """The parts of an answer; a list is taken for them, and no answer at all is a mistake that must not pass."""
    if isinstance(message, list | tuple):
        return message
    key = LISTS[format]
    is_answer = key in message or "role" in message if isinstance(message, Mapping) else hasattr(message, key)
    if not is_answer:
        raise TypeError(f"{type(message).__name__} is no answer of the format '{format}': it has no '{key}'")
    found = _field(message, key)
    return () if found is None or isinstance(found, str) else found


def _parsed(message: Any) -> Any:
    return json.loads(message) if isinstance(message, str | bytes) else message


def _field(thing: Any, name: str) -> Any:
    """Of an SDK's object or of the JSON that it is made of."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _call(id: Any, name: Any, arguments: Any) -> ToolCall:
    given = arguments if isinstance(arguments, str | Mapping) else json.dumps({} if arguments is None else arguments)
    return ToolCall(id=id or "", name=name or "", arguments=given)


def _text_call(id: Any, name: Any, text: Any) -> ToolCall:
    return ToolCall(id=id or "", name=name or "", arguments={"input": text or ""}, free_text=True)


def _with_id(call: ToolCall, number: int) -> ToolCall:
    """Some servers give no ids, and each call needs one of its own."""
    return replace(call, id=f"call_{number}")


def _response_output(id: str, result: ToolResult, *, free_text: bool) -> JsonObject:
    kind = "custom_tool_call_output" if free_text else "function_call_output"
    return {"type": kind, "call_id": id, "output": responses_output(result.content)}


def _anthropic_result(id: str, result: ToolResult) -> JsonObject:
    block = {"type": "tool_result", "tool_use_id": id}
    if result.ok:
        return {**block, "content": anthropic_result(result.content)}
    return {**block, "content": text_of(result.content), "is_error": True}  # an error may have text only
