"""Whose tool each name was last, so that a name stays where it is, and nobody else gets it unseen.

What an MCP server calls its tools is its own affair: it may list one tomorrow that has the name of another's. A model
that calls that name, and a rule for it, mean the tool that had it until then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING

from toolyard.files.user_folders import user_folder
from toolyard.plugins.own_records import read_record, write_record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolyard.plugins.plugin import Plugin

OWNERS = ""
"""The holder of names that no server chose: the owner loads those tools, and says in which order."""
MOST_NAMES = 2000
"""Of one holder, the newest last: nobody pushes out what is known of others by listing more."""


class NameHolders:
    """For the names of one agent's tools who had each last, as `PLUGIN#MADE_OF`; kept in the user's own folder."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, str] | None = None

    def of(self, name: str) -> str | None:
        """Who has it; None for a name that was never given."""
        return self._names.get(name)

    def note(self, given: Mapping[str, str]) -> None:
        """These have these names now."""
        new = {name: holder for name, holder in given.items() if self._names.get(name) != holder}
        if not new:
            return
        kept = self._read()  # with what another application noted meanwhile
        for name, holder in new.items():
            kept.pop(name, None)
            kept[name] = holder
        self._known = bounded(kept)
        with contextlib.suppress(OSError):  # what cannot be kept holds as long as we run
            write_record(self._file, self._known)

    @property
    def _names(self) -> dict[str, str]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> dict[str, str]:
        return (self._known or {}) | (read_record(self._file, dict[str, str]) or {})


class ToolNames:
    """What all catalogues of an application know of names, over every reload."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], NameHolders] = {}

    def holders(self, configuration: Path, agent: str) -> NameHolders:
        """Those of an agent of a configuration: another has other plugins, and names of its own."""
        key = (str(configuration), agent)
        if key not in self._holders:
            told = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
            self._holders[key] = NameHolders(user_folder("state") / "tool-names" / f"{told}.json")
        return self._holders[key]


def bounded(names: dict[str, str]) -> dict[str, str]:
    """The names without the oldest of whoever has too many."""
    left: dict[str, int] = {}
    kept = {}
    for name, holder in reversed(names.items()):
        left[holder] = left.get(holder, MOST_NAMES) - 1
        if left[holder] >= 0:
            kept[name] = holder
    return dict(reversed(kept.items()))


def holder_of(plugin: Plugin) -> str:
    return f"{plugin.id}#{plugin.made_of}" if plugin.other_name else OWNERS


def is_same(one: str, other: str) -> bool:
    """Whether two holders are one server, which the owner may call otherwise, or start by another command."""
    (id, _, made_of), (other_id, _, other_made_of) = one.partition("#"), other.partition("#")
    return id == other_id or bool(made_of and made_of == other_made_of)


def takeover(name: str, before: str, now: str, description: str) -> str:
    """Why somebody has to be asked about a tool that took over a name."""
    said = f"; now it says: {description}" if description else ""
    return f"the name '{name}' was that of a tool of {shown(before)}, and a tool of {shown(now)} has it now{said}"


def shown(holder: str) -> str:
    return f"the server '{holder.partition('#')[0]}'" if holder else "your own plugins"
