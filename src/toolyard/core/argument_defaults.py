"""Defaults of properties, also of nested ones and behind references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.argument_parts import SchemaPart, facets_of

if TYPE_CHECKING:
    from toolyard.core.argument_values import ValuePath
    from toolyard.core.tool import Json

__all__ = ["Defaults", "all_defaults"]


class Defaults(msgspec.Struct):
    """The defaults of an object's properties and of all below it; a recursive schema makes a ring of these."""

    own: dict[str, Json] = msgspec.field(default_factory=dict)
    below: dict[str, list[Defaults]] = msgspec.field(default_factory=dict)
    items: list[Defaults] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, part: SchemaPart, known: dict[int, Defaults]) -> Defaults:
        """Collect what a schema has, also behind references."""
        if (found := known.get(id(part.schema))) is not None:
            return found
        defaults = known[id(part.schema)] = cls()
        for facet in facets_of(part):
            for name, schema in facet.schema.get("properties", {}).items():
                defaults._add(name, facet.into(schema), known)
            if isinstance(items := facet.schema.get("items"), Mapping):
                defaults.items.append(cls.of(facet.into(items), known))
        return defaults

    def _add(self, name: str, part: SchemaPart, known: dict[int, Defaults]) -> None:
        for facet in facets_of(part):
            if "default" in facet.schema:
                self.own.setdefault(name, facet.schema["default"])
        self.below.setdefault(name, []).append(Defaults.of(part, known))

    def fill(self, value: Json, path: ValuePath, taken: set[ValuePath]) -> Json:
        """A copy with the defaults that are missing; each is offered once and stays as its author wrote it."""
        if path in taken:
            return value
        if isinstance(value, dict):
            return {**value, **self._missing(value, path, taken), **self._filled_below(value, path, taken)}
        if isinstance(value, list):
            for node in self.items:
                value = [node.fill(item, (*path, index), taken) for index, item in enumerate(value)]
        return value

    def _missing(self, value: dict[str, Json], path: ValuePath, taken: set[ValuePath]) -> dict[str, Json]:
        names = [name for name in self.own if name not in value and (*path, name) not in taken]
        taken.update((*path, name) for name in names)
        return {name: copied(self.own[name]) for name in names}

    def _filled_below(self, value: dict[str, Json], path: ValuePath, taken: set[ValuePath]) -> dict[str, Json]:
        filled: dict[str, Json] = {}
        for name, nodes in self.below.items():
            if isinstance(value.get(name), dict | list):
                for node in nodes:
                    filled[name] = node.fill(filled.get(name, value[name]), (*path, name), taken)
        return filled


def all_defaults(root: SchemaPart, extra: Mapping[str, Json]) -> Defaults:
    known: dict[int, Defaults] = {}
    found = Defaults.of(root, known)
    if not any(each.own for each in known.values()):
        # Most schemas have none, and then a call's arguments need no walk.
        return Defaults(own=dict(extra))
    # A copy, because a reference back to the root must not bring the extra ones along.
    return Defaults(own={**found.own, **extra}, below=found.below, items=found.items)


def copied(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: copied(each) for name, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value
