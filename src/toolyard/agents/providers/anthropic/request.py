"""A request in Anthropic's Messages form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.providers.asking import with_options
from toolyard.agents.providers.ordering import GO_ON, common_id, in_order
from toolyard.core.content import TextPart, text_of
from toolyard.core.conversation import AssistantMessage, SummaryMessage, ToolMessage, UserMessage
from toolyard.core.wire.content_forms import anthropic_blocks, anthropic_result, has_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.providers.wire_tools import WireTools
    from toolyard.core.conversation import CallAnswer, Message
    from toolyard.core.model import ModelRequest
    from toolyard.core.tool import Json, JsonObject, ToolCall
    from toolyard.core.wire.sdk_messages import MessageFormat

WIRE: MessageFormat = "anthropic"
MARK = {"cache_control": {"type": "ephemeral"}}
LONGEST_ANSWER = ((re.compile(r"claude-3-5"), 8192), (re.compile(r"claude-3-(opus|sonnet|haiku)"), 4096))
"""What older models can give; the API wants a number, and refuses one that is too high."""
MOST_TOKENS = 32_000
EFFORTS = {"minimal": "low"}
NO_JSON = "INVALID_JSON"
"""The key under which arguments that are no JSON go back, for the API takes objects only."""


def anthropic_body(request: ModelRequest, tools: WireTools, *, caching: bool = True) -> JsonObject:
    """The body; with `caching`, what stays the same from turn to turn is marked."""
    mark = MARK if caching else {}
    messages = anthropic_messages(request, tools)
    if caching:
        mark_messages(messages)
    body: dict[str, Json] = {"model": request.model, "max_tokens": longest(request.model), "messages": messages}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, **mark}]
    if tools.forms:
        # The system message comes after the tools, so that its mark is for them too.
        forms = list(tools.forms)
        body["tools"] = forms if "system" in body else [*forms[:-1], {**forms[-1], **mark}]
    if request.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    with_options(body, own_options(request.options))
    if not body.get("tools"):
        body.pop("tool_choice", None)
    elif not request.may_call:
        body["tool_choice"] = {"type": "none"}
    return {**body, "stream": True}


def own_options(options: JsonObject) -> dict[str, Json]:
    """Options that other APIs have too, in the words of this one."""
    given = dict(options)
    if effort := given.pop("reasoning_effort", None):
        given["output_config"] = {"effort": EFFORTS.get(effort, effort), **given.get("output_config", {})}
    if given.pop("parallel_tool_calls", None) is False:
        given["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True, **given.get("tool_choice", {})}
    return given


def longest(model: str) -> int:
    return next((tokens for name, tokens in LONGEST_ANSWER if name.search(model)), MOST_TOKENS)


def anthropic_messages(request: ModelRequest, tools: WireTools) -> list[dict[str, Json]]:
    """Messages by turns, the first of them the user's; results come first in theirs."""
    turns: list[dict[str, Json]] = []
    ids: dict[str, str] = {}
    ordered = in_order(request.messages)
    for message in ordered:
        if isinstance(message, AssistantMessage):
            kept = message.wire == WIRE and len(message.items) > 0
            ids = {call.id: call.id if kept else common_id(call.id) for call in message.calls}
            add(turns, "assistant", message.items if kept else converted_blocks(message, tools))
        else:
            add(turns, "user", user_blocks(message, ids))
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, said(GO_ON))
    if turns[-1]["role"] == "assistant" and not is_paused(ordered[-1]):
        turns.append(said(GO_ON))
    return turns


def is_paused(message: Message) -> bool:
    """Whether the service itself wants to go on with an answer; any other at the end is refused."""
    return isinstance(message, AssistantMessage) and message.stop == "paused" and message.wire == WIRE


def said(text: str) -> dict[str, Json]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def add(turns: list[dict[str, Json]], role: str, blocks: Sequence[JsonObject]) -> None:
    if not blocks:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] = [*turns[-1]["content"], *blocks]
    else:
        turns.append({"role": role, "content": list(blocks)})


def mark_messages(turns: list[dict[str, Json]]) -> None:
    """Mark the end of the last two turns of the user's: one finds what was cached before, one caches what is new."""
    own = [turn for turn in turns if turn["role"] == "user"]
    for turn in own[-2:]:
        *before, last = turn["content"]
        turn["content"] = [*before, {**last, **MARK}]


def converted_blocks(message: AssistantMessage, tools: WireTools) -> list[JsonObject]:
    """An answer that came in another form, in the words of this one; thinking stays behind."""
    blocks: list[JsonObject] = [{"type": "text", "text": message.text}] if has_words(message.text) else []
    for call in message.calls:
        name = tools.wire_name(call.name)
        blocks.append({"type": "tool_use", "id": common_id(call.id), "name": name, "input": input_object(call)})
    return blocks


def input_object(call: ToolCall) -> JsonObject:
    return object_of(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)


def object_of(text: str) -> JsonObject:
    """The object that a model wrote; what is none goes back whole under a key of its own."""
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError):
        return {NO_JSON: text}
    return found if isinstance(found, Mapping) else {NO_JSON: text}


def user_blocks(message: Message, ids: Mapping[str, str]) -> list[JsonObject]:
    match message:
        case UserMessage():
            return list(anthropic_blocks(message.content))
        case SummaryMessage():
            return list(anthropic_blocks([TextPart(text=message.text)]))
        case ToolMessage():
            return [result_block(answer, ids.get(answer.call_id, answer.call_id)) for answer in message.answers]
    return []


def result_block(answer: CallAnswer, id: str) -> JsonObject:
    """A result; one that is an error may have text only, and must have some."""
    block = {"type": "tool_result", "tool_use_id": id}
    parts = answer.content
    if answer.is_error:
        text = text_of(parts)
        return {**block, "content": text if has_words(text) else "failed", "is_error": True}
    content = anthropic_result(parts)
    return {**block, "content": content} if content else block
