"""The schemas inside a JSON Schema, by the keywords that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json, JsonObject


OF_ONE = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties"),
    *("propertyNames", "not", "if", "then", "else", "contentSchema"),
)
OF_MANY = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
BY_NAME = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")


def parts(schema: Json, path: Pointer = ()) -> Iterator[tuple[Pointer, JsonObject]]:
    """A schema and all that lie in it, each with its path; references are not followed."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for keyword, value in schema.items():
        for below, part in parts_under(keyword, value):
            yield from parts(part, (*path, keyword, *below))


def parts_under(keyword: str, value: Json) -> Iterator[tuple[Pointer, Json]]:
    """The schemas that a keyword holds."""
    if keyword in BY_NAME and isinstance(value, Mapping):
        yield from (((name,), part) for name, part in value.items())
    elif keyword in OF_MANY and isinstance(value, list):
        yield from (((index,), part) for index, part in enumerate(value))
    elif keyword in OF_ONE:
        yield (), value


def with_parts(schema: JsonObject, change: Callable[[Json], Json]) -> dict[str, Json]:
    """A copy of a schema with each of the schemas that it holds itself put through a function."""

    def changed(keyword: str, value: Json) -> Json:
        if keyword in BY_NAME and isinstance(value, Mapping):
            return {name: change(part) if isinstance(part, Mapping) else part for name, part in value.items()}
        if keyword in OF_MANY and isinstance(value, list):
            return [change(part) if isinstance(part, Mapping) else part for part in value]
        return change(value) if keyword in OF_ONE and isinstance(value, Mapping) else value

    return {keyword: changed(keyword, value) for keyword, value in schema.items()}
