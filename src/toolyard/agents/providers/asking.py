"""One question to a service, from the request to the whole answer."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import replace

from toolyard.agents.providers.connection import Sent
from toolyard.agents.providers.faults import TryAgain, failure, without_secret
from toolyard.agents.providers.prices import price_of, with_cost
from toolyard.agents.providers.retries import with_retries
from toolyard.core.model import Answered
from toolyard.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from toolyard.agents.providers.connection import AnswerStage, Connection
    from toolyard.agents.providers.settings import ProviderSettings
    from toolyard.core.conversation import AssistantMessage
    from toolyard.core.model import ModelEvent
    from toolyard.core.tool import Json, JsonObject


NAMING = ("type", "id", "call_id", "name")


class AnswerReader(Protocol):
    """Puts an answer together while it comes."""

    @property
    def stage(self) -> AnswerStage:
        """How far the answer is."""

    def take(self, data: bytes) -> Sequence[ModelEvent]:
        """What one event tells. Raises `TryAgain` or `ProviderError`."""

    def message(self) -> AssistantMessage:
        """The whole answer. Raises `TryAgain` when it is not whole."""


async def ask(
    connection: Connection,
    path: str,
    body: JsonObject,
    *,
    headers: Mapping[str, str],
    settings: ProviderSettings,
    reader: Callable[[], AnswerReader],
) -> AsyncGenerator[ModelEvent, None]:
    """Send a request, again if need be, and tell what comes; `reader` makes a new one for each attempt."""
    sent = Sent(
        url=f"{(settings.base_url or '').rstrip('/')}{path}",
        body=encoded(body),
        headers={"content-type": "application/json", "accept": "text/event-stream", **headers, **settings.headers},
        service=settings.host,
        first_byte_seconds=settings.response_timeout_seconds,
        idle_seconds=settings.idle_timeout_seconds,
    )

    async def attempt() -> AsyncGenerator[ModelEvent, None]:
        answer = reader()
        try:
            async with aclosing(connection.events(sent, lambda: answer.stage)) as batches:
                async for batch in batches:
                    for data in batch:
                        for event in answer.take(data):
                            yield event
            yield Answered(message=priced(answer.message(), str(body.get("model")), settings))
        except (TryAgain, ProviderError) as error:
            raise cleaned(error, settings.api_key) from None

    async with aclosing(with_retries(attempt, most=settings.max_retries)) as events:
        async for event in events:
            yield event


def encoded(body: JsonObject) -> bytes:
    """The body as JSON; half a character, as some programs print, must not make a conversation unusable for good."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return json.dumps(body, ensure_ascii=False).encode(errors="replace")
    except (TypeError, RecursionError) as error:
        raise failure("request", f"the request cannot be written as JSON: {error}") from None


def decode(decoder: msgspec.json.Decoder[Json], data: bytes, service: str) -> Json:
    """One event; what is none makes the whole answer worthless."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise failure("answer", f"{service} sent what makes no sense: {error}") from None


def named_item(item: Mapping[str, Json], service: str) -> Mapping[str, Json]:
    """A part of an answer, if the fields that tell what it is are texts."""
    if all(isinstance(item.get(key, ""), str | None) for key in NAMING):
        return item
    raise failure("answer", f"{service} sent a part of an answer that does not say what it is")


def priced(message: AssistantMessage, asked: str, settings: ProviderSettings) -> AssistantMessage:
    """The answer with its cost, by the name under which the model was asked or the one under which it answered."""
    return replace(message, usage=with_cost(message.usage, price_of((asked, message.model), settings.prices)))


def cleaned(error: TryAgain | ProviderError, secret: str | None) -> Exception:
    """The same error, with no key in its text."""
    inner = error.error if isinstance(error, TryAgain) else error
    clean = ProviderError(without_secret(str(inner), secret), fault=inner.fault, hint=inner.hint, status=inner.status)
    return TryAgain(clean, after=error.after) if isinstance(error, TryAgain) else clean


def with_options(body: dict[str, Json], options: JsonObject) -> dict[str, Json]:
    """A request with a configuration's options laid over it: objects are merged, lists added to, null takes out."""
    for key, value in options.items():
        before = body.get(key)
        if value is None:
            body.pop(key, None)
        elif isinstance(before, dict) and isinstance(value, dict):
            body[key] = {**before, **value}
        elif isinstance(before, list) and isinstance(value, list):
            body[key] = [*before, *value]
        else:
            body[key] = value
    return body


def renamed(options: JsonObject, names: Mapping[str, str]) -> dict[str, Json]:
    """Options under the names that an API has for them; what is given under both keeps the API's own."""
    given = {key: value for key, value in options.items() if key not in names}
    for ours, theirs in names.items():
        if ours in options:
            given.setdefault(theirs, options[ours])
    return given
