"""Input schemas as a receiver takes them: what it would refuse is said in another way.

What a model reads is only its guide; a call's arguments are checked against the tool's own schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolyard.core.json_values import cut, value_at
from toolyard.core.schema_parts import with_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.tool import Json, JsonObject

LONGEST_RULE = 600
BRANCHES = ("allOf", "anyOf", "oneOf")


def written_out(schema: JsonObject) -> JsonObject:
    """A schema whose root is no reference to another part of it."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/"))
    target = value_at(schema, steps)
    rest = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return {**rest, **target} if isinstance(target, Mapping) and "$ref" not in target else schema


def with_object_root(schema: JsonObject) -> JsonObject:
    """A schema of nothing but objects, which all arguments are."""
    types = schema.get("type", "object")
    return {**schema, "type": "object"} if isinstance(types, list) and "object" in types else schema


def with_items(schema: JsonObject) -> JsonObject:
    """A schema in which every array says what it holds, be it anything."""
    inner = with_parts(schema, with_items)
    if allows_array(inner) and "items" not in inner:
        inner["items"] = {}
    return inner


def allows_array(schema: JsonObject) -> bool:
    types = schema.get("type")
    return "array" in (types if isinstance(types, list) else [types])


def without_root_keywords(schema: JsonObject, keywords: Sequence[str]) -> JsonObject:
    """A schema whose root has all properties of its alternatives, and says in words what holds between them."""
    found = {keyword: schema[keyword] for keyword in keywords if keyword in schema}
    if not found:
        return schema
    rest = {keyword: value for keyword, value in schema.items() if keyword not in found}
    properties = {name: part for branch in branches(found) for name, part in mapping(branch, "properties").items()}
    properties |= mapping(schema, "properties")
    required = [*listed(schema, "required"), *(name for part in listed(found, "allOf") for name in needed(part))]
    rule = cut(f"Arguments must also fit: {json.dumps(found, ensure_ascii=False)}", LONGEST_RULE)
    about = schema.get("description")
    return {
        **rest,
        "description": f"{about}\n{rule}" if isinstance(about, str) and about else rule,
        **({"properties": properties} if properties else {}),
        **({"required": list(dict.fromkeys(name for name in required if isinstance(name, str)))} if required else {}),
    }


def branches(keywords: Mapping[str, Json]) -> Iterator[JsonObject]:
    """The alternatives, and those in them."""
    for keyword in BRANCHES:
        for branch in listed(keywords, keyword):
            if isinstance(branch, Mapping):
                yield branch
                yield from branches(branch)


def needed(branch: Json) -> list[str]:
    return listed(branch, "required") if isinstance(branch, Mapping) else []


def mapping(schema: JsonObject, keyword: str) -> JsonObject:
    value = schema.get(keyword)
    return value if isinstance(value, Mapping) else {}


def listed(schema: JsonObject, keyword: str) -> list[Json]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []
