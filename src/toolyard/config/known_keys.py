"""Keys that nobody knows, with the nearest one that somebody does."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.layers import mapping
from toolyard.config.settings import FileSettings, NodeSettings
from toolyard.core.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.config.document import Document
    from toolyard.config.settings import Settings
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import JsonObject


TOP = frozenset(FileSettings.__struct_encode_fields__)
NODE = frozenset(NodeSettings.__struct_encode_fields__)
CLOSENESS = 0.8
"""How alike a key must be to a known one to be taken for a slip; any other is a value that some tool may ask for."""


class UnknownKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that does nothing, as far as the configuration itself can tell."""

    key: str
    problem: Problem


def unknown_keys(document: Document, settings: Settings) -> Iterator[UnknownKey]:
    config = document.value
    yield from in_layer(config, (), TOP, NODE, document, settings)
    for section in ("mixins", "providers", "agents"):
        for name, node in mapping(config.get(section)).items():
            yield from in_layer(mapping(node), (section, name), NODE, TOP, document, settings)


def in_layer(
    layer: JsonObject,
    pointer: Pointer,
    known: frozenset[str],
    elsewhere: frozenset[str],
    document: Document,
    settings: Settings,
) -> Iterator[UnknownKey]:
    """A layer is open: tools ask for values of any name. A slip of a known name is no such value."""
    for key in layer.keys() - known:
        if key in elsewhere:
            place = "at the top level" if key in TOP else "in a provider, an agent or a mixin"
            yield unknown(key, f"'{key}' does nothing here", f"its place is {place}", pointer, document)
        elif near := nearest(key, known):
            yield unknown(key, f"unknown key '{key}'", f"did you mean '{near}'?", pointer, document)
    for name, kind in settings.sections.items():
        is_strict = kind.__struct_config__.forbid_unknown_fields  # then an unknown key is an error, told elsewhere
        if name in layer and name in known and not is_strict:
            yield from in_section(mapping(layer[name]), (*pointer, name), kind.__struct_encode_fields__, document)


def in_section(
    section: JsonObject, pointer: Pointer, known: tuple[str, ...], document: Document
) -> Iterator[UnknownKey]:
    """A section is closed: whatever is not known does nothing."""
    for key in section.keys() - set(known):
        near = nearest(key, known, closeness=0.6)
        hint = f"did you mean '{near}'?" if near else f"it takes {', '.join(known)}"
        yield unknown("", f"unknown key '{pointer[-1]}.{key}'", hint, (*pointer, key), document)


def unknown(key: str, message: str, hint: str, pointer: Pointer, document: Document) -> UnknownKey:
    where = document.position((*pointer, key) if key else pointer, of_key=True)
    problem = Problem(code="config_unknown_key", message=message, hint=hint, where=where, severity="warning")
    return UnknownKey(key=key, problem=problem)


@lru_cache(maxsize=1024)
def nearest(key: str, known: tuple[str, ...] | frozenset[str], closeness: float = CLOSENESS) -> str | None:
    import difflib

    close = difflib.get_close_matches(key, sorted(known), n=1, cutoff=closeness)
    return close[0] if close and not key.startswith(f"{close[0]}_") else None
