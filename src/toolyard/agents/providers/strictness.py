"""Whether a schema is of the kind that OpenAI can hold a model to exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolyard.core.tool import Json


def is_strict(schema: Json) -> bool:
    """Whether every object in it requires all of its properties and allows no others."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        closed = schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)
        return closed and all(map(is_strict, properties.values()))
    return schema.get("type") != "object" and all(map(is_strict, schema.values()))
