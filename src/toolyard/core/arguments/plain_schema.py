"""Plain JSON Schemas, which most are: recognised and checked against in microseconds, without the schema library."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.tool import Json


TYPE_NAMES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    dict: ("object",),
    float: ("number",),
    int: ("integer", "number"),
    list: ("array",),
    str: ("string",),
    type(None): ("null",),
}
"""The schema's names for each type that JSON becomes in Python."""
SCALAR_TYPES = {
    name: tuple(kind for kind, names in TYPE_NAMES.items() if name in names)
    for name in ("boolean", "integer", "null", "number", "string")
}


class PropertyTypes(msgspec.Struct, frozen=True, kw_only=True):
    """The exact types that the properties of an object may have, and what else is asked of their values."""

    types: Mapping[str, tuple[type, ...]]
    checks: Mapping[str, Sequence[Callable[[Json], bool]]]
    required: frozenset[str]

    def fit(self, value: dict[str, Json]) -> bool:
        """Whether a value surely fits; exact types tell booleans from numbers."""
        types, checks = self.types, self.checks
        for name, item in value.items():
            if type(item) not in types.get(name, ()) or (
                name in checks and not all(is_so(item) for is_so in checks[name])
            ):
                return False
        return self.required <= value.keys()


def property_types(schema: Mapping[str, Json]) -> PropertyTypes | None:
    """The types of all properties, if a valid schema says nothing else of the values.

    `additionalProperties` may say anything: a property that is not listed never fits here.
    """
    if schema.get("type") != "object" or schema.keys() - ANNOTATIONS.keys() - OF_OBJECTS:
        return None
    properties = schema.get("properties", {})
    types = {name: types_of(part) for name, part in properties.items()}
    checks = {name: list(checks_of(part)) for name, part in properties.items() if types[name]}
    return PropertyTypes(
        types=types,
        checks={name: found for name, found in checks.items() if found},
        required=frozenset(schema.get("required", ())),
    )


def plain_defaults(schema: Mapping[str, Json]) -> dict[str, Json] | None:
    """The defaults of an object's properties, if no schema of them leads elsewhere, where there could be more."""
    properties = schema.get("properties", {})
    if not are_plain(properties):
        return None
    return {name: part["default"] for name, part in properties.items() if "default" in part}


def types_of(schema: Json) -> tuple[type, ...]:
    """The types that a property may have; none when its schema says more than can be told here."""
    if not isinstance(schema, Mapping) or "type" not in schema:
        return ()
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    told = {"type", *LIMITS, *(("enum",) if names == ["string"] else ())}
    return () if schema.keys() - ANNOTATIONS.keys() - told else tuple(kind_types(names))


def kind_types(names: list[str]) -> Iterator[type]:
    for name in names:
        yield from SCALAR_TYPES.get(name, ())


def checks_of(schema: Mapping[str, Json]) -> Iterator[Callable[[Json], bool]]:
    """What a value must be beside its type."""
    for keyword, limit in schema.items():
        if keyword in LIMITS:
            yield partial(is_within, LIMITS[keyword], limit)
        elif keyword == "enum":
            yield frozenset(word for word in limit if isinstance(word, str)).__contains__


def is_within(compare: Callable[[Json, Json], bool], limit: Json, value: Json) -> bool:
    """Limits are for numbers only."""
    return not is_number(value) or compare(value, limit)


def is_plain(schema: Json) -> bool:
    """Whether a schema uses only common keywords, each with a value that is valid for it."""
    return isinstance(schema, dict) and all(key in KEYWORDS and KEYWORDS[key](value) for key, value in schema.items())


def of_type(*kinds: type) -> Callable[[Json], bool]:
    """Exactly one of these: a boolean is no number."""
    return lambda value: type(value) in kinds


is_text, is_flag, is_number, is_list = of_type(str), of_type(bool), of_type(int, float), of_type(list)


def is_count(value: Json) -> bool:
    return type(value) is int and value >= 0


def is_name_list(value: Json) -> bool:
    return is_list(value) and all(map(is_text, value)) and len(set(value)) == len(value)


def is_types(value: Json) -> bool:
    return value in NAMES if isinstance(value, str) else is_name_list(value) and bool(value) and NAMES.issuperset(value)


def are_plain(value: Json) -> bool:
    return isinstance(value, dict) and all(map(is_plain, value.values()))


LIMITS: dict[str, Callable[[Json, Json], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
NAMES = frozenset(name for names in TYPE_NAMES.values() for name in names)
OF_OBJECTS = frozenset({"type", "properties", "required", "additionalProperties"})
ANNOTATIONS: dict[str, Callable[[Json], bool]] = {
    **dict.fromkeys(("title", "description"), is_text),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), is_flag),
    "default": lambda _: True,
    "examples": is_list,
}
"""Keywords that allow every value, each with what its own value must be."""
KEYWORDS: dict[str, Callable[[Json], bool]] = {
    **ANNOTATIONS,
    **dict.fromkeys(LIMITS, is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), is_count),
    "additionalProperties": lambda value: is_flag(value) or is_plain(value),
    "enum": is_list,
    "format": is_text,
    "items": is_plain,
    "properties": are_plain,
    "required": is_name_list,
    "type": is_types,
    "uniqueItems": is_flag,
}
