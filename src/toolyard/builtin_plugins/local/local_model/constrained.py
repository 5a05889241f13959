"""How a small model is asked and held to JSON: its prompt, the schema of its answer, and what the answer means."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import AssistantMessage, JsonInput, SummaryMessage, ToolCall, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolyard.plugins.contract import Message, ModelRequest, ToolSpec

__all__ = ["Reading", "prompt", "read", "schema_of"]

MOST_TOOLS = 12
MOST_SYSTEM = 400
MOST_CONVERSATION = 3000
"""In characters: the model reads some 70 tokens a second, and a long prompt confuses it."""
MOST_RESULT = 800
KEPT = ("type", "enum", "const", "properties", "required", "items", "anyOf", "minItems", "maxItems")
"""What of a schema is turned into a grammar."""
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
COMMANDS = (
    ("List the files here.", "ls", "a.txt\nb.txt", "There are two files: a.txt and b.txt."),
    ("What is in notes.txt?", "cat notes.txt", "buy milk", "notes.txt says: buy milk"),
    ("Which folder is this?", "pwd", "/home/ann", "This folder is /home/ann."),
    ("How many lines has log.txt?", "wc -l log.txt", "12 log.txt", "log.txt has 12 lines."),
)
"""Examples for a tool that runs commands: question, command, result, answer."""
SMALL_TALK = (("Hello!", "Hello! What can I do for you?"), ("Thank you.", "You are welcome."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an answer means."""

    text: str = ""
    call: ToolCall | None = None


def schema_of(request: ModelRequest) -> Mapping[str, Any] | None:
    """What the answer must fit; None when the model may write as it likes."""
    if request.schema is not None:
        return request.schema
    tools = offered(request)
    if not tools:
        return None
    if not request.may_call or has_result(request.messages):
        return ANSWER
    return {"anyOf": [*(call_schema(tool) for tool in tools), ANSWER]}


def prompt(request: ModelRequest) -> list[dict[str, str]]:
    """The messages: what there is to do, examples, and as much of the conversation as the model can take."""
    tools = offered(request)
    if not tools or request.schema is not None:
        system = [{"role": "system", "content": request.system[:MOST_SYSTEM]}] if request.system else []
        return [*system, *recent(spoken(request.messages))]
    about = "\n".join(described(tool) for tool in tools)
    text = f"You are an agent with tools. Reply with one JSON object: a call of a tool, or an answer.\nTools:\n{about}"
    return [{"role": "system", "content": text}, *examples(tools), *recent(spoken(request.messages))]


def read(text: str, request: ModelRequest, *, constrained: bool) -> Reading:
    """The call or the answer that a model wrote; what was cut in the middle goes on as far as it came."""
    if not constrained or request.schema is not None:
        return Reading(text=text.strip())
    try:
        value = json.loads(text)
    except ValueError:
        return Reading(text=cut_answer(text))
    if isinstance(value, dict) and isinstance(value.get("tool"), str):
        number = sum(isinstance(message, AssistantMessage) for message in request.messages) + 1
        arguments = json.dumps(value.get("arguments") or {}, ensure_ascii=False)
        return Reading(call=ToolCall(id=f"local_{number}", name=value["tool"], arguments=arguments))
    return Reading(text=str(value.get("answer", "")).strip() if isinstance(value, dict) else text.strip())


def cut_answer(text: str) -> str:
    return re.sub(r'^\s*\{\s*"answer"\s*:\s*"', "", text).replace('\\"', '"').replace("\\n", "\n").strip()


def offered(request: ModelRequest) -> Sequence[ToolSpec]:
    """The first tools, for more are too many; free text is no JSON."""
    return [tool for tool in request.tools if isinstance(tool.input, JsonInput)][:MOST_TOOLS]


def has_result(messages: Sequence[Message]) -> bool:
    """Whether the last question has led to a call already."""
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            return True
        if isinstance(message, UserMessage):
            return False
    return False


def call_schema(tool: ToolSpec) -> Mapping[str, Any]:
    properties = {"tool": {"const": tool.name}, "arguments": simplified(tool_schema(tool)) or {"type": "object"}}
    return {
        "type": "object",
        "properties": properties,
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def simplified(schema: Any) -> dict[str, Any]:
    """What the engine can hold a model to: types, choices, and only those properties that must be there."""
    if not isinstance(schema, dict):
        return {}
    kept = {key: schema[key] for key in KEPT if key in schema}
    if isinstance(kept.get("properties"), dict):
        required = [name for name in schema.get("required", ()) if name in kept["properties"]]
        # A tool that requires nothing is still called with something, and its first property is the likeliest.
        names = required or list(kept["properties"])[:1]
        kept["properties"] = {name: simplified(kept["properties"][name]) for name in names}
        kept |= {"type": "object", "required": names, "additionalProperties": False}
    if isinstance(kept.get("items"), dict):
        kept["items"] = simplified(kept["items"])
    if isinstance(kept.get("anyOf"), list):
        kept["anyOf"] = [simplified(each) for each in kept["anyOf"]]
    return kept


def described(tool: ToolSpec) -> str:
    names = simplified(tool_schema(tool)).get("required", ())
    return f"- {tool.name}({', '.join(names)}): {first_sentence(tool)}"


def first_sentence(tool: ToolSpec) -> str:
    return re.split(r"(?<=[.!?])\s", tool.description.strip(), maxsplit=1)[0]


def examples(tools: Sequence[ToolSpec]) -> Iterator[dict[str, str]]:
    """A short conversation that shows the form, with commands where a tool runs such."""
    for greeting, answer in SMALL_TALK:
        yield {"role": "user", "content": greeting}
        yield said({"answer": answer})
    runs = next((tool for tool in tools if "command" in simplified(tool_schema(tool)).get("properties", {})), None)
    if runs is None:
        yield {"role": "user", "content": first_sentence(tools[0])}
        yield said({"tool": tools[0].name, "arguments": sample(simplified(tool_schema(tools[0])))})
        return
    for question, command, result, answer in COMMANDS:
        yield {"role": "user", "content": question}
        yield said({"tool": runs.name, "arguments": {"command": command}})
        yield {"role": "user", "content": f"Result: {result}"}
        yield said({"answer": answer})


def sample(schema: Any) -> Any:
    """Some value that fits a schema, for an example."""
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        return {name: sample(part) for name, part in schema["properties"].items()}
    return {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}.get(str(schema.get("type")), "a")


def tool_schema(tool: ToolSpec) -> Any:
    return tool.input.schema if isinstance(tool.input, JsonInput) else {}


def said(value: Mapping[str, Any]) -> dict[str, str]:
    return {"role": "assistant", "content": json.dumps(value)}


def spoken(messages: Sequence[Message]) -> Iterator[dict[str, str]]:
    """A conversation in the form of the examples."""
    for message in messages:
        match message:
            case UserMessage():
                yield {"role": "user", "content": message.text}
            case SummaryMessage():
                yield {"role": "user", "content": message.text}
            case AssistantMessage():
                for call in message.calls:
                    yield said({"tool": call.name, "arguments": arguments_of(call)})
                if message.text and not message.calls:
                    yield said({"answer": message.text})
            case ToolMessage():
                for answer in message.answers:
                    yield {"role": "user", "content": f"Result: {answer.words[:MOST_RESULT]}"}


def arguments_of(call: ToolCall) -> Any:
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def recent(messages: Iterator[dict[str, str]]) -> list[dict[str, str]]:
    """The end of a conversation that is short enough; the last message is always there."""
    kept: list[dict[str, str]] = []
    room = MOST_CONVERSATION
    for message in reversed(list(messages)):
        room -= len(message["content"])
        if room < 0 and kept:
            break
        kept.insert(0, {**message, "content": message["content"][-MOST_CONVERSATION:]})
    return kept
