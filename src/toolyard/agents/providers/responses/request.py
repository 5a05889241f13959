"""A request in OpenAI's Responses form."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolyard.agents.providers.asking import renamed, with_options
from toolyard.agents.providers.chat.request import arguments_text
from toolyard.agents.providers.ordering import common_id, in_order
from toolyard.agents.providers.strictness import is_strict
from toolyard.core.content import text_of
from toolyard.core.conversation import AssistantMessage, SummaryMessage, ToolMessage, UserMessage
from toolyard.core.wire.content_forms import responses_form, responses_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolyard.agents.providers.wire_tools import WireTools
    from toolyard.core.conversation import CallAnswer, Message
    from toolyard.core.model import ModelRequest
    from toolyard.core.tool import Json, JsonObject
    from toolyard.core.wire.sdk_messages import MessageFormat

WIRE: MessageFormat = "responses"
WITHOUT_REASONING = re.compile(r"(.*/)?(gpt-4|gpt-3|chatgpt)")


def responses_body(request: ModelRequest, tools: WireTools, *, caching: bool = True) -> JsonObject:
    """The body. Nothing is kept at the service: the whole conversation goes out, reasoning encrypted."""
    body: dict[str, Json] = {
        "model": request.model,
        "input": list(input_items(request, tools)),
        "store": False,
    }
    if not WITHOUT_REASONING.match(request.model):
        body["include"] = ["reasoning.encrypted_content"]
    if request.system:
        body["instructions"] = request.system
    if tools.forms:
        body["tools"] = list(tools.forms)
    if request.schema is not None:
        form = {"name": "answer", "schema": request.schema, "strict": is_strict(request.schema)}
        body["text"] = {"format": {"type": "json_schema", **form}}
    if caching and request.session:
        body["prompt_cache_key"] = common_id(request.session)
    options = renamed(request.options, {"max_tokens": "max_output_tokens"})
    if effort := options.pop("reasoning_effort", None):
        body["reasoning"] = {"effort": effort}
    with_options(body, options)
    if not body.get("tools"):
        body.pop("parallel_tool_calls", None)
    elif not request.may_call:
        body["tool_choice"] = "none"
    return {**body, "stream": True}


def input_items(request: ModelRequest, tools: WireTools) -> Iterator[JsonObject]:
    """All items, in an order that the API takes."""
    calls: dict[str, JsonObject] = {}
    for message in in_order(request.messages):
        if isinstance(message, AssistantMessage):
            items = list(message.items if message.wire == WIRE and message.items else converted_items(message, tools))
            calls = calls_by_own_id(message, items)
            yield from items
        else:
            yield from other_items(message, calls)


def calls_by_own_id(message: AssistantMessage, items: list[JsonObject]) -> dict[str, JsonObject]:
    """The items of calls, by the ids that their results have with us."""
    by_wire_id = {str(item.get("call_id")): item for item in items}
    return {call.id: by_wire_id.get(call.id) or by_wire_id.get(common_id(call.id)) or {} for call in message.calls}


def converted_items(message: AssistantMessage, tools: WireTools) -> Iterator[JsonObject]:
    """An answer that came in another form, in the words of this one; thinking stays behind."""
    if message.text:
        yield {"role": "assistant", "content": message.text}
    for call in message.calls:
        name, text = tools.wire_name(call.name), arguments_text(call)
        yield {"type": "function_call", "call_id": common_id(call.id), "name": name, "arguments": text}


def other_items(message: Message, calls: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    match message:
        case UserMessage():
            yield {"type": "message", "role": "user", "content": [responses_form(part) for part in message.content]}
        case SummaryMessage():
            yield {"type": "message", "role": "user", "content": [{"type": "input_text", "text": message.text}]}
        case ToolMessage():
            for answer in message.answers:
                yield output_item(answer, calls.get(answer.call_id) or {})


def output_item(answer: CallAnswer, call: JsonObject) -> JsonObject:
    """A result in the form that the call's own form wants."""
    id = call.get("call_id", answer.call_id)
    match call.get("type"):
        case "custom_tool_call":
            return {"type": "custom_tool_call_output", "call_id": id, "output": responses_output(answer.content)}
        case "shell_call":
            asked = call.get("action", {}).get("max_output_length")
            most = {} if asked is None else {"max_output_length": asked}
            return {"type": "shell_call_output", "call_id": id, "output": shell_output(answer), **most}
        case "apply_patch_call":
            status = "failed" if answer.is_error else "completed"
            return {"type": "apply_patch_call_output", "call_id": id, "status": status, "output": plain(answer)}
        case "local_shell_call":
            return {"type": "local_shell_call_output", "id": id, "output": json.dumps({"output": plain(answer)})}
    return {"type": "function_call_output", "call_id": id, "output": responses_output(answer.content)}


def shell_output(answer: CallAnswer) -> list[JsonObject]:
    """What a tool gave for each command where it did so, else its text as that of one."""
    if answer.outputs:
        return list(answer.outputs)
    exited = {"type": "exit", "exit_code": int(answer.is_error) if answer.exit_code is None else answer.exit_code}
    outcome = {"type": "timeout"} if answer.timed_out else exited
    return [{"stdout": plain(answer), "stderr": "", "outcome": outcome}]


def plain(answer: CallAnswer) -> str:
    return text_of(answer.content)
