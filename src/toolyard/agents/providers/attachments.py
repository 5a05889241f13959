"""Which pictures, sound and files of a conversation are sent: the latest, as much as a request can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.content import AudioPart, FilePart, ImagePart, TextPart, in_words
from toolyard.core.conversation import ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.content import Part
    from toolyard.core.conversation import CallAnswer, Message
    from toolyard.core.model import ModelRequest

MOST_SENT = 18 << 20
"""In bytes, which base64 makes more; the least that an API takes in one request is 32 MB."""


def sendable(request: ModelRequest, *, images: bool) -> ModelRequest:
    """A request whose older parts are words where there are too many; all of them where the model sees none."""
    first = first_sent([size_of(message) for message in request.messages], MOST_SENT if images else 0)
    if not first:
        return request
    messages = [in_text(message) for message in request.messages[:first]]
    return replace(request, messages=[*messages, *request.messages[first:]])


def first_sent(sizes: Sequence[int], most: int) -> int:
    """The first message that is sent whole. Where it has to move, it moves far, so that a cache is seldom lost."""
    first = together = 0
    for at, size in enumerate(sizes):
        together += size
        if together > most:
            while together > most // 2 and first < at:
                together -= sizes[first]
                first += 1
        if together > most:
            first, together = at + 1, 0
    return first


def size_of(message: Message) -> int:
    match message:
        case UserMessage():
            return bytes_in(message.content)
        case ToolMessage():
            return sum(bytes_in(answer.attachments) for answer in message.answers)
    return 0


def bytes_in(parts: Sequence[Part]) -> int:
    return sum(len(part.data) for part in parts if isinstance(part, ImagePart | AudioPart | FilePart))


def in_text(message: Message) -> Message:
    """The same for a reader who can only read."""
    match message:
        case UserMessage():
            return replace(message, content=tuple(TextPart(text=in_words(part)) for part in message.content))
        case ToolMessage():
            return replace(message, answers=tuple(map(answer_in_text, message.answers)))
    return message


def answer_in_text(answer: CallAnswer) -> CallAnswer:
    return replace(answer, text=answer.words, attachments=())
