"""The definitions under which tools of a server were let run, kept in the user's own folder.

A server may describe a tool in another way tomorrow, and a model obeys descriptions. So a tool that was let run once is
asked about again when its definition is one that nobody has let run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING

from toolyard.core.lossless_json import decode_json
from toolyard.files.atomic import replace_file
from toolyard.files.door import Door
from toolyard.files.user_folders import user_folder
from toolyard.kinds.mcp.reference import McpProgram

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.kinds.mcp.listing import McpDefinition
    from toolyard.kinds.mcp.reference import McpAddress

LARGEST = 4 << 20
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
        known = self._read().get(definition.name)
        if not known or digest in known:
            return ""
        return (
            f"the MCP server describes '{definition.name}' in another way than when it was last allowed; "
            f"now it says: {definition.description}"
        )

    def allows(self, definition: McpDefinition) -> bool:
        """Whether the tool was let run as it is described here."""
        return definition.digest in self._read().get(definition.name, ())

    def pin(self, name: str, digest: str) -> None:
        """The tool was let run as it is described now."""
        pinned = self._read()
        known = pinned.get(name, [])
        if known[-1:] == [digest]:
            return
        pinned[name] = [*(one for one in known if one != digest), digest][-MOST_OF_A_TOOL:]
        with contextlib.suppress(OSError):  # a home that cannot be written only makes us ask again
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._file, json.dumps(pinned, indent=1).encode())

    def _read(self) -> dict[str, list[str]]:
        if self._pinned is None:
            self._pinned = read_pins(self._file)
        return self._pinned


def read_pins(file: Path) -> dict[str, list[str]]:
    """What a file holds; nothing where others may write it."""
    try:
        read = Door().read(file, largest=LARGEST)
        ours = read.facts.st_uid == os.geteuid() and not read.facts.st_mode & 0o022
        found = decode_json(read.data, dict[str, str | list[str]]) if ours else {}
        return {name: [one] if isinstance(one, str) else one for name, one in found.items()}
    except (OSError, ValueError):
        return {}


def pinned_file(server: McpProgram | McpAddress) -> Path:
    told = list(server.command) if isinstance(server, McpProgram) else [server.url]
    return user_folder("state") / "mcp" / f"{hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]}.json"
