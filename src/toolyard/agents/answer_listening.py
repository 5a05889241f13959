"""Listening to an answer while it comes: told at once, kept every now and then, and whole at the end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, PartialAnswer
from toolyard.core.conversation import AssistantMessage, CallAnswer
from toolyard.core.model import Answered, TextDelta, ThinkingDelta, Waiting
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.turn_setup import Conversation, StreamFunction
    from toolyard.core.model import ModelEvent, ModelRequest
    from toolyard.core.tool import ToolCall

log = logging.getLogger("toolyard.agents")
CUT_OFF = (
    "The call was not run: the answer reached the model's limit before the call was whole. "
    "Make it again, shorter, or in several calls."
)
PARTIAL_EVERY = 0.5
"""Seconds after which what has come of an answer is kept."""


class AnswerListener:
    """Hears one answer at a time for a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._listening: asyncio.Task[AssistantMessage] | None = None
        self._text = self._thinking = ""
        """What has come so far."""
        self._cut = AssistantMessage()
        """What had come of an answer that was cut off, and asked for again."""
        self._kept, self._kept_at = 0, 0.0
        """How many characters are kept, and since when."""

    def stop(self) -> None:
        """Hear no more of the answer that comes now."""
        if self._listening:
            self._listening.cancel()

    async def hear(
        self, stream: StreamFunction, request: ModelRequest, *, aside: bool = False
    ) -> AssistantMessage | None:
        """The whole answer; None when it was stopped. What came of one that never came whole stays in the conversation.

        An answer that is heard aside is no part of the conversation.
        """
        self._listening = listening = asyncio.create_task(self._listen(stream, request, aside=aside))
        try:
            await asyncio.wait({listening})
        finally:
            self._listening = None
            if not listening.done():
                listening.cancel()
                await asyncio.wait({listening})
        if not listening.cancelled() and listening.exception() is None:
            return listening.result()
        if not aside:
            await self._keep_cut_off()
        return None if listening.cancelled() else listening.result()

    async def _listen(self, stream: StreamFunction, request: ModelRequest, *, aside: bool) -> AssistantMessage:
        self._text, self._thinking, self._cut = "", "", AssistantMessage()
        self._kept, self._kept_at = 0, time.monotonic()
        async with aclosing(told_by(stream, request)) as events:
            async for event in events:
                if isinstance(event, Answered):
                    return event.message
                if not aside or isinstance(event, Waiting):
                    await self._take(event)
        raise ProviderError("the provider ended without an answer", fault="answer")

    async def _take(self, event: ModelEvent) -> None:
        self._conversation.tell(event)
        match event:
            case TextDelta(text=text):
                self._text += text
            case ThinkingDelta(text=text):
                self._thinking += text
            case Waiting():
                self._begin_again()
            case _:
                pass
        if len(self._text) > self._kept and time.monotonic() - self._kept_at > PARTIAL_EVERY:
            self._kept, self._kept_at = len(self._text), time.monotonic()
            await self._conversation.record(PartialAnswer(text=self._text, thinking=self._thinking), durable=False)

    def _begin_again(self) -> None:
        if self._text.strip():
            self._cut = self._so_far()
        self._text, self._thinking, self._kept = "", "", 0

    async def _keep_cut_off(self) -> None:
        message = self._so_far() if self._text.strip() else self._cut
        if message.text:
            await self._conversation.record(AnswerReceived(message=message))

    def _so_far(self) -> AssistantMessage:
        return AssistantMessage(text=self._text, thinking=self._thinking, stop="paused")


async def told_by(stream: StreamFunction, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """What a provider tells; one that breaks is at fault itself, as one that gives no sense is."""
    events = stream(request)
    try:
        async for event in events:
            yield event
    except ProviderError:
        raise
    except Exception as error:
        log.info("the provider failed", exc_info=True)
        raise ProviderError(f"the provider failed: {type(error).__name__}: {error}", fault="answer") from error
    finally:
        if isinstance(events, AsyncGenerator):  # what it holds, such as a connection, must not wait to be collected
            await events.aclose()


def cut_off_call(answer: AssistantMessage) -> ToolCall | None:
    """The call in the middle of which an answer reached its limit; arguments that are a whole object are whole."""
    if answer.stop not in ("length", "window_full") or not answer.calls:
        return None
    last = answer.calls[-1]
    try:
        given = msgspec.json.decode(last.arguments) if isinstance(last.arguments, str) else None
    except msgspec.DecodeError:
        given = None
    return None if given and isinstance(given, dict) else last


def cut_off_result(answer: AssistantMessage) -> Sequence[CallAnswered]:
    """A call that did not come whole has its result at once, so that nobody ever runs what came of it."""
    call = cut_off_call(answer)
    return (
        [CallAnswered(answer=CallAnswer(call_id=call.id, name=call.name, text=CUT_OFF, is_error=True))] if call else []
    )
