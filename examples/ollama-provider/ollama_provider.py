"""A provider in a page: models of an Ollama server, by its own API of JSON lines.

{"plugins": ["path:ollama-provider"], "provider": "ollama", "model": "qwen3"}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import (
    Answered,
    AssistantMessage,
    JsonInput,
    ProviderError,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolMessage,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from toolyard.plugins.contract import ModelEvent, ModelRequest

STOPS = {"length": "length"}


class OllamaProvider:
    """Asks `base_url`, by default the server of this machine."""

    id = "ollama"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Tell the pieces as they come, and the whole answer at the end."""
        import httpx2

        url = f"{request.config.get('base_url') or 'http://127.0.0.1:11434'}/api/chat"
        parts: list[dict[str, Any]] = []
        try:
            async with (
                httpx2.AsyncClient(timeout=300) as client,
                client.stream("POST", url, json=body_of(request)) as response,
            ):
                if response.status_code != 200:
                    said = (await response.aread()).decode(errors="replace")[:300]
                    raise ProviderError(f"Ollama answered {response.status_code}: {said}", fault="request")
                async for line in response.aiter_lines():
                    parts.append(json.loads(line))
                    message = parts[-1].get("message", {})
                    if message.get("thinking"):
                        yield ThinkingDelta(text=message["thinking"])
                    if message.get("content"):
                        yield TextDelta(text=message["content"])
        except (httpx2.HTTPError, ValueError) as error:
            raise ProviderError(f"Ollama did not answer: {error}", fault="network", hint="is it running?") from None
        if not parts or not parts[-1].get("done"):
            raise ProviderError("the answer of Ollama was cut off", fault="network", hint="try again")
        yield Answered(message=answer_of(parts, request))


def body_of(request: ModelRequest) -> dict[str, Any]:
    """The request in Ollama's form; tools with free text have no place in it."""
    tools = [tool for tool in request.tools if isinstance(tool.input, JsonInput)] if request.may_call else []
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input.schema} for tool in tools
    ]
    body = {"model": request.model, "messages": list(messages_of(request)), "options": dict(request.options)}
    return {**body, "tools": [{"type": "function", "function": function} for function in functions]}


def messages_of(request: ModelRequest) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        match message:
            case AssistantMessage():
                calls = [{"function": {"name": call.name, "arguments": arguments(call)}} for call in message.calls]
                yield {"role": "assistant", "content": message.text, "tool_calls": calls}
            case ToolMessage():
                for answer in message.answers:
                    yield {"role": "tool", "tool_name": answer.name, "content": answer.text}
            case _:
                yield {"role": "user", "content": message.text}


def arguments(call: ToolCall) -> Any:
    return json.loads(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)


def answer_of(parts: list[dict[str, Any]], request: ModelRequest) -> AssistantMessage:
    """The whole answer; Ollama gives calls no ids."""
    told = [part.get("message", {}) for part in parts]
    made = [call["function"] for message in told for call in message.get("tool_calls") or ()]
    ids = [f"call_{len(request.messages)}_{number}" for number in range(len(made))]
    return AssistantMessage(
        text="".join(message.get("content") or "" for message in told),
        thinking="".join(message.get("thinking") or "" for message in told),
        calls=tuple(
            ToolCall(id=id, name=each["name"], arguments=each.get("arguments") or {})
            for id, each in zip(ids, made, strict=True)
        ),
        stop="tool_calls" if made else STOPS.get(parts[-1].get("done_reason", ""), "answer"),
        usage=Usage(input=parts[-1].get("prompt_eval_count", 0), output=parts[-1].get("eval_count", 0), cost=0.0),
        model=request.model,
    )
