"""Mixins: fragments that providers, agents and other mixins build on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.config.layers import mapping, merge_deep
from toolyard.config.origins import Merged, Origins, dotted
from toolyard.core.json_values import brief
from toolyard.core.problems import Problem, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolyard.config.document import Document
    from toolyard.config.settings import MixinPolicy
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json, JsonObject


REFS, MERGE = "mixin_refs", "mixin_merge"


def expand_mixins(document: Document, policy: MixinPolicy) -> tuple[Document, list[Problem]]:
    """Merge into every provider and agent the mixins that it refers to, and drop the mixins themselves."""
    config = document.value
    if not any(REFS in node or MERGE in node for _, node in nodes_of(config)):
        if "mixins" not in config:
            return document, []
        return replace(document, value={key: value for key, value in config.items() if key != "mixins"}), []
    expansion = Expansion(document, policy)
    return expansion.run(), expansion.problems


def nodes_of(config: JsonObject) -> Iterator[tuple[Pointer, JsonObject]]:
    """The providers and agents, which mixins can be merged into."""
    for section in ("providers", "agents"):
        for name, node in mapping(config.get(section)).items():
            if isinstance(node, dict):
                yield (section, name), node


class Expansion:
    """Expands one document: each mixin in use once, after those it refers to."""

    def __init__(self, document: Document, policy: MixinPolicy) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._policy = policy
        self._mixins = {
            name: mixin for name, mixin in mapping(document.value.get("mixins")).items() if isinstance(mixin, dict)
        }
        self._chains: dict[str, tuple[str, ...]] = {}
        """For each mixin in use the names by which it was reached first, its own the last."""
        self._merged: dict[Pointer, Merged] = {}
        self._expanded: dict[str, JsonObject] = {}
        self._heights: dict[str, int] = {}
        """How many mixins the longest chain from each has."""

    def run(self) -> Document:
        config = {key: value for key, value in self._document.value.items() if key != "mixins"}
        nodes = list(nodes_of(config))
        refs = {pointer: self._known_refs(pointer, node, (dotted(pointer),)) for pointer, node in nodes}
        self._expand_all(self._follow([ref for found in refs.values() for ref in found]))
        for section in {pointer[0] for pointer, _ in nodes}:
            config[section] = dict(config[section])
        for pointer, node in nodes:
            section, name = pointer
            applied = [ref for ref in refs[pointer] if self._is_shallow_enough(ref, pointer, node)]
            config[section][name] = self._merge(pointer, node, applied)
        return replace(self._document, value=config, origins=Origins(self._merged, self._expanded))

    def _known_refs(self, pointer: Pointer, node: JsonObject, chain: tuple[str, ...]) -> list[str]:
        """The mixins that a node refers to; one that does not exist is a problem."""
        known: list[str] = []
        refs = node.get(REFS)
        for index, ref in enumerate(refs if isinstance(refs, list) else ()):
            if not isinstance(ref, str):
                continue  # said with all that is not what its key takes
            if ref in self._mixins:
                known.append(ref)
                self._chains.setdefault(ref, (*chain, ref))
            else:
                self._report(
                    "mixin_unknown",
                    f"there is no mixin '{ref}': {chain_text((*chain, ref))}",
                    self._nearest(ref),
                    (*pointer, REFS, index),
                )
        return known

    def _follow(self, refs: Sequence[str]) -> dict[str, list[str]]:
        """Every mixin in use with what it refers to; those that nobody uses complain of nothing."""
        found: dict[str, list[str]] = {}
        waiting = list(refs)
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = self._known_refs(("mixins", name), self._mixins[name], self._chains[name])
                waiting += found[name]
        return found

    def _expand_all(self, refs: dict[str, list[str]]) -> None:
        order = topological_order(refs)
        if len(order) < len(refs):
            for cycle, inner in cycles_in(refs, order):
                self._report_cycle(cycle)
                for name, ref in inner:
                    refs[name] = [other for other in refs[name] if other != ref]
            order = topological_order(refs)
        for name in order:
            self._heights[name] = 1 + max((self._heights[ref] for ref in refs[name]), default=0)
            self._expanded[name] = self._merge(("mixins", name), self._mixins[name], refs[name])

    def _merge(self, pointer: Pointer, node: JsonObject, refs: Sequence[str]) -> dict[str, Json]:
        """Merge a node over its mixins, later ones over earlier ones."""
        own = {key: value for key, value in node.items() if key not in (REFS, MERGE)}
        mode = node.get(MERGE)
        if mode not in (None, "shallow", "deep") and pointer[0] == "mixins":
            here, chain = (*pointer, MERGE), chain_text(self._chains[str(pointer[1])])
            wrong = f'\'{dotted(here)}\' must be "deep" or "shallow", not {brief(mode, 40)}'
            self._report("config_type", f"{wrong}: {chain}", "", here)
        deep = (mode if mode in ("shallow", "deep") else self._policy.default_merge) == "deep"
        self._merged[pointer] = Merged(own=own, refs=tuple(refs), deep=deep)
        merged: dict[str, Json] = {}
        for layer in (*(self._expanded[ref] for ref in refs), own):
            merged = merge_deep(merged, layer) if deep else {**merged, **layer}
        return merged

    def _is_shallow_enough(self, ref: str, pointer: Pointer, node: JsonObject) -> bool:
        if self._heights[ref] <= self._policy.max_depth:
            return True
        chain = [dotted(pointer), ref]
        while below := self._merged[("mixins", chain[-1])].refs:
            chain.append(max(below, key=self._heights.__getitem__))
        self._report(
            "mixin_depth",
            f"more than {self._policy.max_depth} mixins in a chain: {chain_text(chain)}",
            "raise mixin_policy.max_depth, or refer to fewer",
            (*pointer, REFS, node[REFS].index(ref)),
        )
        return False

    def _report_cycle(self, cycle: Sequence[str]) -> None:
        *_, last, first = cycle
        chain = (*self._chains[first][:-1], *cycle)
        place = ("mixins", last, REFS, self._mixins[last][REFS].index(first))
        self._report(
            "mixin_circle",
            f"mixins refer to each other in a circle: {chain_text(chain)}",
            "remove one of these references; until then none of them is followed",
            place,
        )

    def _nearest(self, name: str) -> str:
        known = ", ".join(f"'{mixin}'" for mixin in list(self._mixins)[:8])
        return did_you_mean(name, self._mixins, otherwise=f"known: {known}" if known else "define it under 'mixins'")

    def _report(self, code: str, message: str, hint: str, pointer: Pointer) -> None:
        where = self._document.position(pointer)
        self.problems.append(Problem(code=code, message=message, hint=hint, where=where))


def chain_text(chain: Sequence[str]) -> str:
    """A chain of names in words; of a long one only both ends."""
    return " → ".join(chain if len(chain) <= 24 else (*chain[:18], "…", *chain[-3:]))


def topological_order(refs: Mapping[str, Sequence[str]]) -> list[str]:
    """Each name after those it refers to; a name that leads into a cycle is left out."""
    waits_for = {name: len(set(found)) for name, found in refs.items()}
    users: dict[str, list[str]] = {name: [] for name in refs}
    for name, found in refs.items():
        for ref in set(found):
            users[ref].append(name)
    order = [name for name, number in waits_for.items() if number == 0]
    for name in order:  # grows while we go over it
        for user in users[name]:
            waits_for[user] -= 1
            if waits_for[user] == 0:
                order.append(user)
    return order


def cycles_in(
    refs: Mapping[str, Sequence[str]], order: Sequence[str]
) -> Iterator[tuple[Sequence[str], list[tuple[str, str]]]]:
    """For each group of names that lead to one another: a cycle in it, and every reference inside the group."""
    placed = set(order)
    left = [name for name in refs if name not in placed]
    reach = {name: reachable(name, refs, placed) for name in left}
    done: set[str] = set()
    for name in left:
        if name in reach[name] and name not in done:
            group = {other for other in reach[name] if name in reach[other]}
            done |= group
            yield shortest_cycle(name, refs, group), [(one, ref) for one in group for ref in refs[one] if ref in group]


def reachable(name: str, refs: Mapping[str, Sequence[str]], outside: set[str]) -> set[str]:
    """The names that one leads to, itself only if by a cycle."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = {ref for ref in refs[waiting.pop()] if ref not in outside} - found
        found |= new
        waiting += new
    return found


def shortest_cycle(name: str, refs: Mapping[str, Sequence[str]], group: set[str]) -> Sequence[str]:
    """The shortest way from a name back to itself, the name at both ends."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    for way in ways:  # grows while we go over it
        for ref in refs[way[-1]]:
            if ref == name:
                return (*way, name)
            if ref in group and ref not in seen:
                seen.add(ref)
                ways.append((*way, ref))
    raise ValueError(f"{name} does not lead back to itself")
