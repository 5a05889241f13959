"""Values of arguments: strict JSON out of text, and copies with other values in some places."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from toolyard.core.arguments.faults import ABSENT, brief

if TYPE_CHECKING:
    from toolyard.core.tool import Json


ValuePath: TypeAlias = "tuple[str | int, ...]"
Changes: TypeAlias = "dict[ValuePath, Json]"


MOST_LEVELS = 64
"""How deep arguments may be nested. The validator needs about ten frames for a level, and out of stack its part in
Rust may panic, which no `except Exception` stops."""


class NotJsonError(ValueError):
    """A text is not strict JSON; the message says why."""


def parse_json(text: str) -> Json:
    try:
        return STRICT_JSON.decode(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise NotJsonError(f"not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None


def unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise NotJsonError(f"the key {brief(twice)} is given more than once")
    return unique


def refuse_constant(name: str) -> Json:
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
    object_pairs_hook=unique_keys, parse_constant=refuse_constant, parse_float=finite, parse_int=whole
)


def is_deeper(value: Json, levels: int) -> bool:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(is_deeper(child, levels - 1) for child in children if isinstance(child, dict | list))


def changed(value: Json, changes: Changes) -> Json:
    """A copy with other values at some paths; all that does not change is shared."""
    if () in changes:
        return changes[()]
    below: dict[str | int, Changes] = {}
    for (head, *rest), new in changes.items():
        below.setdefault(head, {})[tuple(rest)] = new
    copy = value.copy()
    for head, deeper in below.items():
        copy[head] = changed(value[head], deeper)
        if copy[head] is ABSENT:
            del copy[head]
    return copy
