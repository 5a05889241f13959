"""Holds a provider to its promises by asking it as an agent does."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec.structs import replace

from toolyard.agents.providers.ordering import in_order
from toolyard.core.content import TextPart
from toolyard.core.conversation import AssistantMessage, CallAnswer, StopReason, ToolMessage, UserMessage
from toolyard.core.model import Answered, CallDelta, ModelEvent, TextDelta, ThinkingDelta, Waiting
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.conversation import Message
    from toolyard.core.model import ModelRequest

PATIENCE = 120.0
"""Seconds that an answer may take."""


class ProviderCheck:
    """One provider, and the promises that it broke."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._broken: list[str] = []

    async def run(self, request: ModelRequest) -> list[str]:
        """All promises that are broken, each as a sentence."""
        if not isinstance(getattr(self._provider, "id", None), str):
            self._broken.append("a provider has an id")
        answer = await self._ask(request)
        if answer is None or self._broken:
            return self._broken
        stored = stored_again(answer)
        if stored != answer:
            return ["an answer is the same after it was stored"]
        for messages in (going_on(request.messages, stored), interrupted(request.messages, stored)):
            await self._ask(replace(request, messages=messages))
        await self._leave(request)
        return list(dict.fromkeys(self._broken))

    async def _ask(self, request: ModelRequest) -> AssistantMessage | None:
        """One answer; None when there was none, which is told."""
        events: list[ModelEvent] = []
        try:
            async with asyncio.timeout(PATIENCE), aclosing(self._provider.stream(request)) as stream:
                events.extend([event async for event in stream])
        except ProviderError:
            raise
        except Exception as error:
            self._broken.append(f"a provider that cannot answer raises ProviderError, not {type(error).__name__}")
            return None
        self._broken += broken_by(events)
        last = events[-1] if events else None
        return last.message if isinstance(last, Answered) else None

    async def _leave(self, request: ModelRequest) -> None:
        """Leave after the first event, as one does who is interrupted, and ask again."""
        async with asyncio.timeout(PATIENCE), aclosing(self._provider.stream(request)) as stream:
            await anext(stream)
        before, self._broken = self._broken, []
        if await self._ask(request) is None or self._broken:
            before.append("a provider that was left in the middle of an answer can be asked again")
        self._broken = before


def broken_by(events: Sequence[ModelEvent]) -> Iterator[str]:
    """Which promises the events of one answer break."""
    if not events or not isinstance(events[-1], Answered):
        yield "the last event is Answered"
        return
    if any(not isinstance(event, get_args(ModelEvent)) for event in events):
        yield "every event is one of ModelEvent"
    if sum(isinstance(event, Answered) for event in events) > 1:
        yield "Answered is told once"
    message = events[-1].message
    told = events[max((at for at, event in enumerate(events) if isinstance(event, Waiting)), default=-1) + 1 :]
    # A provider need not tell pieces, but those that it tells are those of the answer.
    for kind, whole in ((TextDelta, message.text), (ThinkingDelta, message.thinking)):
        pieces = "".join(event.text for event in told if isinstance(event, kind))
        if pieces and pieces.strip() != whole.strip():
            yield f"the pieces of {kind.__name__} are those of the answer"
    ids = [call.id for call in message.calls]
    if len(set(ids)) != len(ids) or not all(ids):
        yield "every call of an answer has an id of its own"
    if {event.call_id for event in told if isinstance(event, CallDelta)} - set(ids):
        yield "every piece of a call belongs to a call of the answer"
    if message.stop not in get_args(StopReason):
        yield "the reason to stop is one of StopReason"
    if (message.stop == "tool_calls") != bool(ids) and message.stop in ("tool_calls", "answer"):
        yield "an answer with calls stops for them, and no other does"
    if min(message.usage.input, message.usage.output) < 0:
        yield "usage is not negative"


def stored_again(answer: AssistantMessage) -> AssistantMessage:
    try:
        return msgspec.json.decode(msgspec.json.encode(answer), type=AssistantMessage)
    except (TypeError, UnicodeEncodeError, msgspec.ValidationError):
        return AssistantMessage()


def going_on(messages: Sequence[Message], answer: AssistantMessage) -> list[Message]:
    """A conversation after an answer, with results or a further question."""
    answers = tuple(CallAnswer(call_id=call.id, name=call.name, text="done") for call in answer.calls)
    further = ToolMessage(answers=answers) if answers else UserMessage(content=(TextPart(text="And then?"),))
    return in_order([*messages, answer, further])


def interrupted(messages: Sequence[Message], answer: AssistantMessage) -> list[Message]:
    """A conversation in which a person spoke before there were results."""
    return in_order([*messages, answer, UserMessage(content=(TextPart(text="Never mind."),))])
