"""JSON values: read strictly from text, looked up by a path, and written briefly enough for a sentence."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.core.tool import Json


Pointer: TypeAlias = "tuple[str | int, ...]"
"""The way from the root to a value: keys and indices."""
ABSENT = object()
"""Stands for a value that is not there, since None is a value."""


class NotJsonError(ValueError):
    """A text is not strict JSON; the message says why."""


def parse_json(text: str) -> Json:
    """The value of a text; blank text is an empty object."""
    try:
        return STRICT_JSON.decode(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise NotJsonError(f"not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None


def refuse_constant(name: str) -> NoReturn:
    """The `parse_constant` of a JSON decoder that does not take Python's NaN and Infinity."""
    raise ValueError(f"{name} is not a JSON value")


def value_at(value: Json, path: Iterable[str | int]) -> Json:
    """What lies at a path of keys and indices below a value, or `ABSENT`."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step, ABSENT)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return ABSENT
    return value


def brief(value: Json, most: int = 80) -> str:
    """A value as JSON of at most so many characters."""
    if isinstance(value, str):
        value = value[: most + 1]
    text = cut(json.dumps(value, ensure_ascii=False), most)
    # Half of a surrogate pair is legal in JSON, but a message that holds one cannot be sent.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise NotJsonError(f"the key {brief(twice)} is given more than once")
    return unique


def no_constant(name: str) -> NoReturn:
    raise NotJsonError(f"not valid JSON: {name} is not a JSON number")


def finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJsonError(f"the number {digits:.20} is too large")
    return number


def whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise NotJsonError(f"the number {digits[:20]}… has too many digits") from None


STRICT_JSON = json.JSONDecoder(
    object_pairs_hook=unique_keys, parse_constant=no_constant, parse_float=finite, parse_int=whole
)
