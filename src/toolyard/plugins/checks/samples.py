"""Arguments that fit a schema, for trying a tool out, and the cases of a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.tool import Json, JsonObject


def sample_arguments(schema: JsonObject) -> dict[str, Json]:
    """A value for every required property; what a schema asks beyond the common may not be met."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: sample(properties.get(name)) for name in schema.get("required", ()) if isinstance(name, str)}


def sample(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return "text"
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return sample(schema[key][0])
    return sample_of_type(schema)


def sample_of_type(schema: dict[str, Json]) -> Json:
    kind = schema.get("type", "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "integer":
            return int(schema.get("minimum", 1))
        case "number":
            return schema.get("minimum", 1.5)
        case "boolean":
            return True
        case "null":
            return None
        case "array":
            return [sample(schema.get("items"))] * max(1, int(schema.get("minItems", 1)))
        case "object":
            return sample_arguments(schema)
    return "text".ljust(int(schema.get("minLength", 0)), "x")[: int(schema.get("maxLength", 1000))]


def greeting_cases(shown: Callable[[str], str], *, preview: str, empty_name: JsonObject) -> list[JsonObject]:
    """Test cases for a new tool, which greets: how it shows a greeting, and how it fails on an empty name."""
    return [
        {"name": "greets by name", "arguments": {"name": "Ada"}, "output": shown("Hello, Ada!"), "preview": preview},
        {"name": "shouts when asked", "arguments": {"name": "Ada", "loud": True}, "output": shown("HELLO, ADA!")},
        {
            "name": "keeps spaces and quotes",
            "arguments": {"name": 'it\'s  "me"'},
            "output": shown('Hello, it\'s  "me"!'),
        },
        {"name": "needs a name", "arguments": {}, "failure": "invalid_arguments"},
        {"name": "fails on an empty name", "arguments": {"name": ""}, **empty_name},
    ]
