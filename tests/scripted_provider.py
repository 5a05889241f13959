"""A provider whose answers a test writes down, each by what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from toolyard.core.conversation import AssistantMessage, Usage
from toolyard.core.model import Answered, ModelEvent, ModelRequest, TextDelta
from toolyard.core.tool import ToolCall
from toolyard.errors import ProviderError

Step = str | AssistantMessage | ProviderError | Callable[[ModelRequest], Any]


class ScriptedProvider:
    """Gives one answer after the other; the last one again and again."""

    id = "scripted"
    default_model = "test-model"

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.requests: list[ModelRequest] = []
        self.streaming = asyncio.Event()
        """Set when an answer that never ends has begun."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        step = self.steps[min(len(self.requests), len(self.steps)) - 1]
        made = step(request) if callable(step) else step
        if isinstance(made, ProviderError):
            raise made
        if made is ENDLESS:
            yield TextDelta(text="so far")
            self.streaming.set()
            await asyncio.Event().wait()
        answer = AssistantMessage(text=made, usage=Usage(input=10, output=2)) if isinstance(made, str) else made
        assert isinstance(answer, AssistantMessage)
        if answer.text:
            yield TextDelta(text=answer.text)
        yield Answered(message=answer)


ENDLESS = object()


def endless(_: ModelRequest) -> object:
    return ENDLESS


def calls(*made: tuple[str, dict[str, Any]], text: str = "", usage: Usage | None = None) -> AssistantMessage:
    """An answer that calls tools."""
    return AssistantMessage(
        text=text,
        calls=tuple(
            ToolCall(id=f"call_{n}", name=name, arguments=arguments) for n, (name, arguments) in enumerate(made)
        ),
        stop="tool_calls",
        usage=usage or Usage(input=10, output=5),
    )


def bash(command: str, **more: Any) -> AssistantMessage:
    return calls(("bash", {"command": command, **more}))


def texts_of(request: ModelRequest) -> Sequence[str]:
    """What a request's messages say, in short."""
    from toolyard.core.content import text_of
    from toolyard.core.conversation import SummaryMessage, ToolMessage, UserMessage

    told = []
    for message in request.messages:
        match message:
            case UserMessage():
                told.append(f"user: {text_of(message.content)}")
            case AssistantMessage():
                told.append(f"assistant: {message.text}{[call.name for call in message.calls] or ''}")
            case ToolMessage():
                told += [f"tool: {answer.text.strip()}" for answer in message.answers]
            case SummaryMessage():
                told.append(f"summary: {message.text}")
    return told
