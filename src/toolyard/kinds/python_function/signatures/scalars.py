"""Types of single values: numbers, texts, dates, choices."""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import enum
import uuid
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.arguments.plain_schema import TYPE_NAMES
from toolyard.kinds.python_function.signatures.values import (
    EXACT,
    ROUNDED,
    TEXT,
    TEXT_LIKE,
    JsonType,
    Misfit,
    NoJsonForm,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.core.tool import Json

JSON_SCALARS = (bool, int, float, str, type(None))
FORMATS: dict[type, dict[str, Json]] = {
    datetime.datetime: {"format": "date-time"},
    datetime.date: {"format": "date"},
    datetime.time: {"format": "time"},
    datetime.timedelta: {"format": "duration"},
    uuid.UUID: {"format": "uuid"},
}
"""Texts that spell a value of a type of Python's own, which msgspec reads."""


def scalar_type(kind: type) -> JsonType | None:
    """The type of a single value; of a class of an author's, the one that it extends."""
    if issubclass(kind, enum.Enum):
        return None
    if kind in FORMATS:
        return JsonType(schema={"type": "string", **FORMATS[kind]}, convert=by_msgspec(kind), rank=EXACT)
    if kind is decimal.Decimal:
        # Both, since a number in JSON may be rounded on its way.
        schema = {"type": ["string", "number"], "format": "decimal"}
        return JsonType(schema=schema, convert=by_msgspec(kind), rank=TEXT_LIKE)
    if kind in (bytes, bytearray):
        schema = {"type": "string", "contentEncoding": "base64"}
        return JsonType(schema=schema, convert=lambda value: kind(from_base64(value)), rank=TEXT_LIKE)
    if issubclass(kind, PurePath):
        return JsonType(schema={"type": "string"}, convert=lambda value: kind(exact(str, value)), rank=TEXT_LIKE)
    for base, rank in ((bool, EXACT), (int, EXACT), (float, ROUNDED), (str, TEXT), (type(None), EXACT)):
        if issubclass(kind, base):
            return JsonType(schema={"type": TYPE_NAMES[base][0]}, convert=extending(kind, base), rank=rank)
    return None


def extending(kind: type, base: type) -> Callable[[Json], Any]:
    """How a value becomes one of a plain type, or of a class that extends it."""
    if kind is float:
        return as_float
    if kind is base:
        return lambda value: exact(base, value)
    return lambda value: kind(as_float(value) if base is float else exact(base, value))


def exact(kind: type, value: Json) -> Any:
    """A boolean is no number."""
    if type(value) is kind or (kind is str and isinstance(value, str)):
        return value
    raise Misfit(f"expected {TYPE_NAMES[kind][0]}, got {TYPE_NAMES.get(type(value), ('something else',))[0]}")


def as_float(value: Json) -> float:
    if type(value) is float:
        return value
    try:
        return float(exact(int, value))
    except OverflowError:
        raise Misfit("too large for a number with a fraction") from None


def by_msgspec(kind: type) -> Callable[[Json], Any]:
    def convert(value: Json) -> Any:
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, ValueError) as error:
            raise Misfit(str(error).replace("`", "")) from None

    return convert


def from_base64(value: Json) -> bytes:
    try:
        return base64.b64decode(exact(str, value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Misfit(f"expected base64: {error}") from None


def enum_type(kind: type) -> JsonType | None:
    """The members in the order of the class: by their values, or by their names where those are none of JSON's."""
    if not issubclass(kind, enum.Enum):
        return None
    members = list(kind)
    if not members:
        raise NoJsonForm(kind, "it has no members")
    by_value = all(type(plain(member.value)) in JSON_SCALARS for member in members)
    return choices([(plain(member.value) if by_value else member.name, member) for member in members])


def choice_type(values: Sequence[Any]) -> JsonType:
    """One of the values of a `Literal`."""
    pairs = [(plain(value.value) if isinstance(value, enum.Enum) else value, value) for value in values]
    for value, _ in pairs:
        if type(value) not in JSON_SCALARS:
            raise NoJsonForm(repr(value))
    return choices(pairs)


def plain(value: Any) -> Any:
    """The value of a member of `IntEnum`, `StrEnum` and the like, without its class."""
    base = next((base for base in (str, int, float) if isinstance(value, base) and not isinstance(value, bool)), None)
    return base(value) if base and type(value) is not base else value


def choices(pairs: Sequence[tuple[Json, Any]]) -> JsonType:
    kinds = {TYPE_NAMES[type(value)][0] for value, _ in pairs}
    typed = {"type": kinds.pop()} if len(kinds) == 1 else {}  # some APIs want a type beside the choices

    def convert(value: Json) -> Any:
        for choice, meant in pairs:
            if choice == value and isinstance(choice, bool) == isinstance(value, bool):
                return meant
        raise Misfit(f"expected one of {', '.join(repr(choice) for choice, _ in pairs)}")

    return JsonType(schema={**typed, "enum": [value for value, _ in pairs]}, convert=convert, rank=EXACT)
