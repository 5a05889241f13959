"""The definitions under which tools of a server were let run, kept in the user's own folder.

A server may describe a tool in another way tomorrow, and a model obeys descriptions. So a tool that was let run once is
asked about again when its definition is one that nobody has let run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING

from toolyard.files.user_folders import user_folder
from toolyard.kinds.mcp.reference import McpProgram, fitted
from toolyard.plugins.own_records import read_record, write_record

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.kinds.mcp.listing import McpDefinition
    from toolyard.kinds.mcp.reference import McpAddress

MOST_OF_A_TOOL = 8
"""How many definitions of one tool are kept, the newest last: a server may describe it by the folder it works in."""


class DefinitionChanged(Exception):
    """A server describes a tool in another way than the one that was looked at when a call was allowed."""


class PinnedDefinitions:
    """Those of one server, whatever configuration names it."""

    def __init__(self, server: McpProgram | McpAddress) -> None:
        self._file = pinned_file(server)
        self._pinned: dict[str, list[str]] | None = None

    def objection(self, definition: McpDefinition, digest: str) -> str:
        """Why somebody has to be asked about a tool again; empty when it is as it was, or was never let run."""
        known = self._known(definition.name)
        if not known or digest in known:
            return ""
        return (
            f"the MCP server describes '{definition.name}' in another way than when it was last allowed; "
            f"now it says: {definition.description}"
        )

    def allows(self, definition: McpDefinition) -> bool:
        """Whether the tool was let run as it is described here."""
        return definition.digest in self._known(definition.name)

    def pin(self, name: str, digest: str) -> None:
        """The tool was let run as it is described now."""
        pinned = self._read()
        known = self._known(name)
        if known[-1:] == [digest]:
            return
        pinned[fitted(name)] = [*(one for one in known if one != digest), digest][-MOST_OF_A_TOOL:]
        with contextlib.suppress(OSError):  # a home that cannot be written only makes us ask again
            write_record(self._file, pinned)

    def _known(self, name: str) -> list[str]:
        """Those of all tools that can be called by one name: `a.b` may take the place of `a_b`."""
        pinned = self._read()
        return pinned.get(fitted(name)) or pinned.get(name) or []

    def _read(self) -> dict[str, list[str]]:
        if self._pinned is None:
            self._pinned = read_pins(self._file)
        return self._pinned


def read_pins(file: Path) -> dict[str, list[str]]:
    found = read_record(file, dict[str, str | list[str]])
    return {name: [one] if isinstance(one, str) else one for name, one in (found or {}).items()}


def pinned_file(server: McpProgram | McpAddress) -> Path:
    return user_folder("state") / "mcp" / f"{made_of(server)[:32]}.json"


def made_of(server: McpProgram | McpAddress) -> str:
    """What a server is, whatever it is called: its command, or its address."""
    told = list(server.command) if isinstance(server, McpProgram) else [server.url]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
