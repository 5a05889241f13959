"""Where a value was written, after mixins and layers have moved it. Looked up only when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolyard.core.json_values import ABSENT, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import JsonObject


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the document, and the names by which what stands there came to where it is used."""

    pointer: Pointer
    chain: tuple[str, ...] = ()


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider, an agent or a mixin was made of."""

    own: JsonObject
    refs: tuple[str, ...]
    deep: bool


class Origins:
    """Who wrote what, for the nodes that mixins were merged into."""

    def __init__(self, nodes: Mapping[Pointer, Merged], expanded: Mapping[str, JsonObject]) -> None:
        self._nodes = nodes
        self._expanded = expanded

    def find(self, pointer: Pointer) -> Origin:
        """Where a value of the merged document was written, or the nearest thing around it."""
        node, rest = pointer[:2], pointer[2:]
        while node in self._nodes and rest:
            if found := next(self.writers(node, rest), None):
                return found
            rest = rest[:-1]
        return Origin(pointer=(*node, *rest))

    def writers(
        self, node: Pointer, rest: Pointer, chain: tuple[str, ...] = (), *, hidden: bool = False
    ) -> Iterator[Origin]:
        """All places that set a value below a node, the winner first; with `hidden` also those that another hides."""
        merged = self._nodes.get(node)
        if merged is None:
            return
        way = (*chain, dotted(node))
        if value_at(merged.own, rest) is not ABSENT:
            yield Origin(pointer=(*node, *rest), chain=way if chain else ())
        if hides(merged.own, rest, deep=merged.deep) and not hidden:
            return
        for ref in reversed(merged.refs):
            yield from self.writers(("mixins", ref), rest, way, hidden=hidden)
            if hides(self._expanded[ref], rest, deep=merged.deep) and not hidden:
                return


def hides(value: JsonObject, rest: Pointer, *, deep: bool) -> bool:
    """Whether a value hides whatever the layers beneath it have at a pointer."""
    if not deep:
        return rest[0] in value
    around = [value_at(value, rest[:end]) for end in range(1, len(rest))]
    return any(part is not ABSENT and not isinstance(part, dict) for part in around)


def dotted(pointer: Pointer) -> str:
    """A pointer as a person would write it: `agents.default.plugins[0]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in pointer)
    return text.removeprefix(".")
