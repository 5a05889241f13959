"""Plays recorded answers instead of asking a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.plugins.contract import (
    Answered,
    AssistantMessage,
    CallDelta,
    ProviderError,
    SummaryMessage,
    TextDelta,
    ThinkingDelta,
    read_file,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from toolyard.plugins.contract import ModelEvent, ModelRequest

__all__ = ["ReplayProvider"]

KEY = "replay"
LARGEST = 1 << 28
KIND, EVENT = "assistant", "answer"
"""The types of an answer, and of the event that a session keeps it as."""
PIECE = 24
"""Characters in a piece of text, so that those who watch see it come."""


class ReplayProvider:
    """`replay` names a file of JSON lines: answers of a model, among other lines, which are passed over.

    The first request of a conversation gets the first answer, the next the second, also after a restart: what counts
    is how many answers the conversation has.
    """

    id = "replay"
    default_model = "recorded"
    config_keys = (KEY,)

    def __init__(self) -> None:
        self._played: dict[str, int] = {}
        """How many answers a session had, for a summary hides those before it."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next recorded answer, in pieces as a model would give it."""
        recorded = read_answers(request.config.get(KEY))
        number = self._number(request)
        if number >= len(recorded):
            message = f"the recording has {len(recorded)} answers, and number {number + 1} is asked for"
            raise ProviderError(message, fault="setup", hint="record more, or begin a new session")
        self._played[request.session] = number + 1
        answer = recorded[number]
        for event in told(answer):
            yield event
        yield Answered(message=answer)

    def _number(self, request: ModelRequest) -> int:
        if any(isinstance(message, SummaryMessage) for message in request.messages):
            return self._played.get(request.session, 0)
        return sum(isinstance(message, AssistantMessage) for message in request.messages)


def read_answers(name: Any) -> Sequence[AssistantMessage]:
    """The answers of a file, in their order."""
    if not isinstance(name, str) or not name:
        hint = f'"{KEY}": "${{env:CONFIG_DIR}}/answers.jsonl"'
        raise ProviderError(f"'{KEY}' must name a file of recorded answers", fault="setup", hint=hint)
    path = Path(name).expanduser()
    try:
        lines = read_file(path, largest=LARGEST).splitlines()
    except OSError as error:
        hint = "relative paths start at the working folder"
        raise ProviderError(f"{path} cannot be read: {error.strerror}", fault="setup", hint=hint) from None
    return [answer for at, line in enumerate(lines, start=1) if (answer := read_line(line, f"{path}:{at}"))]


def read_line(line: bytes, where: str) -> AssistantMessage | None:
    """The answer of a line, which may be an event of a session; None for a line of another kind."""
    try:
        value = msgspec.json.decode(line) if line.strip() else {}
        if isinstance(value, dict) and value.get("type") == EVENT:
            value = value.get("message")
        if not isinstance(value, dict) or not value or value.get("type", KIND) != KIND:
            return None
        return msgspec.convert({**value, "type": KIND}, AssistantMessage)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = 'a line is such as {"text": "Done."} or {"calls": [{"id": "1", "name": "bash", "arguments": {…}}]}'
        raise ProviderError(f"{where}: {error}", fault="setup", hint=hint) from None


def told(answer: AssistantMessage) -> Iterator[ModelEvent]:
    """The pieces of an answer."""
    for piece in pieces(answer.thinking):
        yield ThinkingDelta(text=piece)
    for piece in pieces(answer.text):
        yield TextDelta(text=piece)
    for call in answer.calls:
        arguments = call.arguments
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        for piece in pieces(text):
            yield CallDelta(call_id=call.id, name=call.name, text=piece)


def pieces(text: str) -> Iterator[str]:
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))
