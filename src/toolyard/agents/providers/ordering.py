"""Puts a conversation into an order that every API takes: each call is followed by its one result."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.content import TextPart
from toolyard.core.conversation import AssistantMessage, CallAnswer, SummaryMessage, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.conversation import Message
    from toolyard.core.tool import ToolCall

INTERRUPTED = "Interrupted: this call was not run to its end, and it is not known how far it came."
GO_ON = "Go on."
"""Said where an answer is the last message and should go on, which not every service takes."""
ANY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def in_order(messages: Sequence[Message]) -> list[Message]:
    """From the last summary on: results right after their calls, one for each, and nothing that is empty."""
    start = max((at for at, each in enumerate(messages) if isinstance(each, SummaryMessage)), default=0)
    ordered: list[Message] = []
    rest = list(messages[start:])
    while rest:
        message = rest.pop(0)
        match message:
            case AssistantMessage(calls=()) if says_nothing(message):
                continue
            case AssistantMessage():
                ordered.append(message)
                following = list(until_answer(rest))
                del rest[: len(following)]
                ordered += settled(message.calls, following)
            case ToolMessage():
                ordered += settled((), [message])
            case UserMessage(content=()):
                continue
            case _:
                ordered.append(message)
    return ordered


def says_nothing(message: AssistantMessage) -> bool:
    """Whether an answer is empty, or thinking alone, which no API takes back unless it wants to go on from there."""
    return not message.text.strip() and not (message.stop == "paused" and message.items)


def until_answer(messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            return
        yield message


def settled(calls: Sequence[ToolCall], following: Sequence[Message]) -> Iterator[Message]:
    """The results of calls in the order of the calls, then what else was said before the next answer."""
    answers = [answer for message in following if isinstance(message, ToolMessage) for answer in message.answers]
    known = {call.id for call in calls}
    if calls:
        yield ToolMessage(answers=tuple(answer_to(call, answers) for call in calls))
    for answer in answers:
        if answer.call_id not in known:
            said = TextPart(text=f"Result of '{answer.name}':\n{answer.text}")
            yield UserMessage(content=(said, *answer.attachments))
    for message in following:
        if not isinstance(message, ToolMessage) and not (isinstance(message, UserMessage) and not message.content):
            yield message


def answer_to(call: ToolCall, answers: Sequence[CallAnswer]) -> CallAnswer:
    for answer in answers:
        if answer.call_id == call.id:
            return replace(answer, name=call.name)
    return CallAnswer(call_id=call.id, name=call.name, text=INTERRUPTED, is_error=True)


def common_id(call_id: str) -> str:
    """An id that every API takes, the same for the same one."""
    if ANY_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode(errors='replace')).hexdigest()[:24]}"
