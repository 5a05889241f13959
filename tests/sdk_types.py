"""Requests held against the types of the vendors' own packages: nothing wrong, and nothing that they do not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter


@cache
def request_type(wire: str) -> TypeAdapter[Any]:
    """The type of a whole request. Importing the packages takes seconds, so it is not done before it is needed."""
    if wire == "anthropic":
        from anthropic.types.message_create_params import MessageCreateParamsStreaming as Anthropic

        return TypeAdapter(Anthropic)
    if wire == "responses":
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as Responses

        return TypeAdapter(Responses)
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as Chat

    return TypeAdapter(Chat)


def assert_official(wire: str, body: Mapping[str, Any]) -> None:
    """Fail unless a request is exactly of the official type; what the type does not know is lost on the way."""
    taken = whole(request_type(wire).validate_python(dict(body), strict=False))
    assert dict(differences(body, taken)) == {}


def whole(value: Any) -> Any:
    """A value with all that pydantic checks only when it is looked at."""
    if isinstance(value, Mapping):
        return {key: whole(each) for key, each in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [whole(each) for each in value]


def differences(given: Any, taken: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(given, Mapping) and isinstance(taken, Mapping):
        for key, value in given.items():
            yield from differences(value, taken[key], f"{at}.{key}") if key in taken else [(f"{at}.{key}", value)]
    elif isinstance(given, list) and isinstance(taken, list) and len(given) == len(taken):
        for number, (one, other) in enumerate(zip(given, taken, strict=True)):
            yield from differences(one, other, f"{at}[{number}]")
    elif given != taken:
        yield at, (given, taken)
