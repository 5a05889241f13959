"""Input schemas in the part of JSON Schema that every client and its model's API takes.

References are written out, and what some receiver refuses is said in words. A call's arguments are checked against
the tool's own schema all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolyard.core.json_values import cut, value_at
from toolyard.core.schema_parts import with_parts
from toolyard.core.wire.wire_schemas import allows_array, with_object_root, without_root_keywords, written_out

if TYPE_CHECKING:
    from toolyard.core.tool import Json, JsonObject

TAKEN = frozenset(
    (
        *("type", "properties", "required", "items", "enum", "anyOf", "description", "title", "default"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"),
    )
)
"""The keywords that no receiver was seen to refuse."""
SAYS_NOTHING = ("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "additionalProperties", "deprecated")
"""Keywords that a model needs no words for; one that sends an unknown property is told so."""
AT_ROOT = ("anyOf", "oneOf", "allOf", "enum", "const", "not", "if", "then", "else")
LOOKAROUND = re.compile(r"\(\?<?[=!]")
LONGEST_RULE = 300
MOST_PARTS = 5_000
"""How many parts a schema has when its references are written out; what is beyond may be anything."""
MOST_LEVELS = 64
"""How deep they may lie in each other then."""


def portable(schema: JsonObject) -> JsonObject:
    """A schema with an object at its root that every receiver takes."""
    whole = without_root_keywords(with_object_root(written_out(schema)), AT_ROOT)
    lowered = Lowering(schema).lower(whole)
    return {**lowered, "type": "object", "properties": lowered.get("properties") or {}}


class Lowering:
    """Takes out of one schema what some receiver refuses."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = MOST_PARTS
        self._rules: dict[int, str] = {}
        """What keywords say in words, by their values, which a reference may lead to again and again."""

    def lower(self, part: Json, followed: frozenset[str] = frozenset(), level: int = 0) -> dict[str, Json]:
        """One part, and all that lie in it; `followed` are the references that led to it, which have no end."""
        self._left -= 1
        if not isinstance(part, Mapping) or self._left < 0 or level > MOST_LEVELS:
            return {}
        target, followed = self._follow(part, followed)
        plain = plainly(target)
        taken = {keyword: value for keyword, value in plain.items() if keyword in TAKEN}
        inner = with_parts(taken, lambda below: self.lower(below, followed, level + 1))
        untold = {key: value for key, value in plain.items() if key not in TAKEN and key not in SAYS_NOTHING}
        if "pattern" in inner and LOOKAROUND.search(str(inner["pattern"])):
            untold["pattern"] = inner.pop("pattern")
        if allows_array(inner) and not isinstance(inner.get("items"), dict):
            inner["items"] = {}
        return with_words(inner, [self._rule(keyword, value) for keyword, value in untold.items()])

    def _rule(self, keyword: str, value: Json) -> str:
        if id(value) not in self._rules:
            self._rules[id(value)] = cut(json.dumps(value, ensure_ascii=False), LONGEST_RULE)
        return f"{keyword}: {self._rules[id(value)]}"

    def _follow(self, part: JsonObject, followed: frozenset[str]) -> tuple[JsonObject, frozenset[str]]:
        """A part with what it refers to in the place of the reference."""
        while isinstance(reference := part.get("$ref"), str):
            rest = {keyword: value for keyword, value in part.items() if keyword != "$ref"}
            steps = [step.replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")]
            target = value_at(self._root, steps) if reference.startswith("#/") else None
            if reference in followed or not isinstance(target, Mapping):
                return rest, followed
            part, followed = {**target, **rest}, followed | {reference}
        return part, followed


def plainly(part: JsonObject) -> dict[str, Json]:
    """A part in other keywords that mean the same."""
    plain = dict(part)
    if "oneOf" in plain and "anyOf" not in plain:
        plain["anyOf"] = plain.pop("oneOf")
    branches = plain.pop("allOf", None)
    for branch in branches if isinstance(branches, list) else ():
        plain = merged(plain, branch)
    if isinstance(plain.get("const"), str):
        plain["enum"] = [plain.pop("const")]
    if isinstance(types := plain.get("type"), list):
        plain |= one_type([kind for kind in types if kind != "null"])
    if plain.get("type") == "integer":
        for strict, bound, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            if isinstance(plain.get(strict), int) and bound not in plain:
                plain[bound] = plain.pop(strict) + step
    return without_null(plain)


def one_type(types: list[Json]) -> dict[str, Json]:
    """A list of types, of which a receiver may take only one; null is what leaving the value out means."""
    if len(types) == 1:
        return {"type": types[0]}
    return {"type": "string"} if not types else {"type": None, "anyOf": [{"type": kind} for kind in types]}


def without_null(plain: dict[str, Json]) -> dict[str, Json]:
    """The same without an alternative that is null, and without an empty type."""
    if plain.get("type", "") is None:
        del plain["type"]
    branches = plain.get("anyOf")
    if isinstance(branches, list):
        left = [one for one in branches if not (isinstance(one, Mapping) and one.get("type") == "null")]
        if len(left) == 1 and isinstance(left[0], Mapping):
            del plain["anyOf"]
            return {**left[0], **plain}
        plain["anyOf"] = left
    return plain


def merged(part: dict[str, Json], branch: Json) -> dict[str, Json]:
    """Two parts that must both fit, as one."""
    if not isinstance(branch, Mapping):
        return part
    both = {**branch, **part}
    if isinstance(branch.get("properties"), Mapping) and isinstance(part.get("properties"), Mapping):
        both["properties"] = {**branch["properties"], **part["properties"]}
    if isinstance(branch.get("required"), list) and isinstance(part.get("required"), list):
        names = [name for name in (*part["required"], *branch["required"]) if isinstance(name, str)]
        both["required"] = list(dict.fromkeys(names))
    return both


def with_words(part: dict[str, Json], rules: list[str]) -> dict[str, Json]:
    """A part whose description says what its keywords cannot."""
    if not rules:
        return part
    rule = cut(", ".join(rules), LONGEST_RULE)
    about = part.get("description")
    return {**part, "description": f"{about} ({rule})" if isinstance(about, str) and about else f"({rule})"}
