"""Every plugin of an agent: on or off, why, and where that was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.config.document import Document
    from toolyard.core.problems import Position
    from toolyard.core.tool import Tool
    from toolyard.plugins.catalog import Catalog, Registration, Shadowed


class PluginStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of a plugin, or a plugin that has none."""

    plugin: str
    kind: str
    tool: Tool | None
    on: bool
    reason: str
    where: Position | None
    """What in the configuration decided it."""
    origin: str
    """The file it comes from."""


def plugin_statuses(catalog: Catalog, document: Document) -> Iterator[PluginStatus]:
    """Every plugin with its tools, in the order of the configuration; then those that an earlier one hides."""
    taken = {(id(lost.loser), lost.name): lost for lost in catalog.shadowed if lost.what == "tool"}
    for plugin, found in catalog.plugins.items():
        decision = catalog.decisions[plugin]
        for tool in tools_of(catalog, found):
            if tool and (lost := taken.get((id(found), tool.spec.name))):
                yield of_shadowed(lost, tool, document)
            else:
                where = place(decision.pointer or found.pointer, document)
                yield status(found, tool, decision.on, decision.reason, where)
    for lost in catalog.shadowed:
        if lost.what == "plugin":
            for tool in tools_of(catalog, lost.loser):
                yield of_shadowed(lost, tool, document)


def tools_of(catalog: Catalog, found: Registration) -> tuple[Tool | None, ...]:
    return tuple(catalog.tools_of(found)) or (None,)


def of_shadowed(lost: Shadowed, tool: Tool | None, document: Document) -> PluginStatus:
    what = "a plugin with this id" if lost.what == "plugin" else f"a tool '{lost.name}'"
    reason = f"{what} comes from {lost.winner.source.file} already"
    return status(lost.loser, tool, False, reason, place(lost.winner.pointer, document))


def status(found: Registration, tool: Tool | None, on: bool, reason: str, where: Position | None) -> PluginStatus:
    plugin = found.plugin
    return PluginStatus(
        plugin=plugin.id,
        kind=tool.kind if tool else plugin.kind,
        tool=tool,
        on=on,
        reason=reason,
        where=where,
        origin=str(found.source.file),
    )


def place(pointer: tuple[str | int, ...] | None, document: Document) -> Position | None:
    return document.position(pointer) if pointer else None
