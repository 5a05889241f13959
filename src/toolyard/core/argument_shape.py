"""A short way for the most common schemas: an object of scalars.

What fits the shape surely fits the schema, and the validator need not be asked; what does not fit it says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from toolyard.core.tool import Json

__all__ = ["Shape", "simple_shape"]

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
WORDS = frozenset({"title", "description", "default", "examples", "deprecated"})
"""Keywords that allow everything."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Which properties there may be, and of which exact types."""

    types: Mapping[str, tuple[type, ...]]
    required: frozenset[str]

    def fits(self, value: dict[str, Json]) -> bool:
        """Whether a value surely fits; an exact look at the types tells booleans from numbers."""
        types = self.types
        for name, item in value.items():
            if type(item) not in types.get(name, ()):
                return False
        return self.required <= value.keys()


def simple_shape(schema: Mapping[str, Json]) -> Shape | None:
    """The shape of a schema that says no more than a shape can."""
    said = {key: value for key, value in schema.items() if key not in WORDS}
    properties = said.pop("properties", {})
    required = said.pop("required", [])
    # Whatever is not listed does not fit the shape, so further properties may be allowed or not.
    if said.pop("type", None) != "object" or said.keys() - {"additionalProperties"}:
        return None
    if isinstance(said.get("additionalProperties"), Mapping) or not isinstance(properties, Mapping):
        return None
    types = {name: types_of(part) for name, part in properties.items()}
    return Shape(types=types, required=frozenset(required))


def types_of(schema: Json) -> tuple[type, ...]:
    """The types a property's schema allows, none when it says more than a type."""
    if not isinstance(schema, Mapping) or schema.keys() - WORDS != {"type"}:
        return ()
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return tuple(kind for name in names for kind in TYPES.get(name, ()))
