"""What `Annotated` says beside a type: a description, bounds, lengths, a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolyard.core.tool import Json
    from toolyard.kinds.python_function.signatures.values import JsonType

BOUNDS = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
}  # fmt: skip
"""Of numbers, by the names that msgspec, annotated-types and pydantic give them."""
LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def constrained(found: JsonType, extras: Iterable[Any]) -> JsonType:
    """A type with what its annotation says of it; what is not understood says nothing."""
    schema = found.schema
    for extra in flat(extras):
        schema = with_limits(schema, extra) | told_by(extra)
    return found if schema is found.schema else replace(found, schema=schema)


def flat(extras: Iterable[Any]) -> Iterator[Any]:
    """Each by itself; a `Field` of pydantic's has a list of its own."""
    for extra in extras:
        yield extra
        inner = getattr(extra, "metadata", None)
        if isinstance(inner, list | tuple):
            yield from inner


def told_by(extra: Any) -> dict[str, Json]:
    """What a model should read."""
    if isinstance(extra, str):
        return {"description": extra}
    said = getattr(extra, "description", None) or getattr(extra, "documentation", None)
    found: dict[str, Json] = {"description": said} if isinstance(said, str) and said else {}
    if isinstance(title := getattr(extra, "title", None), str):
        found["title"] = title
    if isinstance(examples := getattr(extra, "examples", None), list):
        found["examples"] = examples
    for more in (getattr(extra, "extra_json_schema", None), getattr(extra, "json_schema_extra", None)):
        found |= more if isinstance(more, Mapping) else {}
    return found


def with_limits(schema: dict[str, Json], extra: Any) -> dict[str, Json]:
    """A schema with the limits that an annotation sets; of alternatives, each that they can be for."""
    if isinstance(extra, str):
        return schema
    if isinstance(branches := schema.get("anyOf"), list):
        return {**schema, "anyOf": [with_limits(branch, extra) for branch in branches]}
    kind = schema.get("type")
    return schema | dict(limits(extra, kind if isinstance(kind, str) else ""))


def limits(extra: Any, kind: str) -> Iterator[tuple[str, Json]]:
    for name, keyword in BOUNDS.items() if kind in ("integer", "number") else ():
        value = getattr(extra, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield keyword, value
    for name, most in (("min_length", "min"), ("max_length", "max")) if kind in LENGTHS else ():
        value = getattr(extra, name, None)
        if isinstance(value, int):
            yield most + LENGTHS[kind], value
    pattern = getattr(extra, "pattern", None)
    if kind == "string" and isinstance(pattern, str):
        yield "pattern", pattern
