"""A request in OpenAI's Chat form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolyard.agents.providers.asking import renamed, with_options
from toolyard.agents.providers.ordering import GO_ON, common_id, in_order
from toolyard.agents.providers.strictness import is_strict
from toolyard.core.content import TextPart, text_of
from toolyard.core.conversation import AssistantMessage, SummaryMessage, ToolMessage, UserMessage
from toolyard.core.wire.content_forms import chat_form, chat_results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.agents.providers.wire_tools import WireTools
    from toolyard.core.content import Part
    from toolyard.core.conversation import Message
    from toolyard.core.model import ModelRequest
    from toolyard.core.tool import Json, JsonObject, ToolCall
    from toolyard.core.wire.sdk_messages import MessageFormat

WIRE: MessageFormat = "openai"
MARK = {"cache_control": {"type": "ephemeral"}}


def chat_body(request: ModelRequest, tools: WireTools, *, openai: bool = False, marks: bool = False) -> JsonObject:
    """The body. `openai` says that the service is OpenAI itself, `marks` that it takes Anthropic's cache marks."""
    body: dict[str, Json] = {
        "model": request.model,
        "messages": list(chat_messages(request, tools, marks=marks)),
        "stream_options": {"include_usage": True},
    }
    if tools.forms:
        body["tools"] = list(tools.forms)
    if request.schema is not None:
        form = {"name": "answer", "schema": request.schema, "strict": is_strict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if openai and request.session:
        body["prompt_cache_key"] = common_id(request.session)
    # OpenAI's newer models refuse the old name, and other servers do not know the new one.
    with_options(body, renamed(request.options, {"max_tokens": "max_completion_tokens"} if openai else {}))
    if not body.get("tools"):
        body.pop("parallel_tool_calls", None)
    elif not request.may_call:
        body["tool_choice"] = "none"
    return {**body, "stream": True}


def chat_messages(request: ModelRequest, tools: WireTools, *, marks: bool) -> Iterator[JsonObject]:
    """All messages, in an order that the API takes."""
    if request.system:
        text = {"type": "text", "text": request.system, **MARK}
        yield {"role": "system", "content": [text] if marks else request.system}
    ordered = in_order(request.messages)
    ids: dict[str, str] = {}
    for at, message in enumerate(ordered):
        if isinstance(message, AssistantMessage):
            kept = message.wire == WIRE and len(message.items) > 0
            ids = {call.id: call.id if kept else common_id(call.id) for call in message.calls}
            yield from message.items if kept else (assistant(message, tools),)
        else:
            yield from other(message, ids, marked=marks and at == len(ordered) - 1)
    if not ordered or isinstance(ordered[-1], AssistantMessage):
        yield {"role": "user", "content": GO_ON}


def other(message: Message, ids: dict[str, str], *, marked: bool) -> Iterator[JsonObject]:
    match message:
        case UserMessage():
            yield {"role": "user", "content": content(message.content, marked=marked)}
        case SummaryMessage():
            yield {"role": "user", "content": message.text}
        case ToolMessage():
            found = chat_results((ids.get(one.call_id, one.call_id), one.content) for one in message.answers)
            last = len(message.answers) - 1  # what holds a picture comes after it, and cannot have a mark
            yield from (with_mark(one) if marked and at == last else one for at, one in enumerate(found))


def with_mark(message: JsonObject) -> JsonObject:
    """A result with a mark behind its text, if it has some."""
    text = message["content"]
    return {**message, "content": [{"type": "text", "text": text, **MARK}]} if text else message


def assistant(message: AssistantMessage, tools: WireTools) -> JsonObject:
    """An answer that came in another form, in the words of this one; thinking stays behind."""
    calls = [call_form(call, tools) for call in message.calls]
    return {"role": "assistant", "content": message.text or None, **({"tool_calls": calls} if calls else {})}


def call_form(call: ToolCall, tools: WireTools) -> JsonObject:
    function = {"name": tools.wire_name(call.name), "arguments": arguments_text(call)}
    return {"id": common_id(call.id), "type": "function", "function": function}


def arguments_text(call: ToolCall) -> str:
    """The arguments as a model writes them."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments), ensure_ascii=False)


def content(parts: Sequence[Part], *, marked: bool) -> str | list[JsonObject]:
    """Plain text where that is all there is, for not every server knows more."""
    if not marked and all(isinstance(part, TextPart) for part in parts):
        return text_of(parts)
    forms = [chat_form(part) for part in parts]
    return [*forms[:-1], {**forms[-1], **MARK}] if marked and forms[-1]["type"] == "text" else forms
