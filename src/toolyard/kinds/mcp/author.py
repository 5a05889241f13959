"""What `init` finds of other clients' servers, and what a check can say of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.mcp.other_clients.files import PROJECT_FILES, block_in, is_ours, read_client_file
from toolyard.plugins.kind import Found

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.mcp.source import McpSource
    from toolyard.plugins.kind import NewFile


class McpAuthoring:
    """Servers are written elsewhere; here they are found and checked."""

    form = "a file of an MCP client, with 'mcpServers' in it"

    def entries(self, path: Path) -> Sequence[Json]:
        """The entry for another client's file; none for anything else."""
        if path.suffix != ".json" or not path.is_file():
            return []
        value = read_client_file(str(path))
        return [{"mcp": {"file": str(path)}}] if isinstance(value, dict) and "mcpServers" in value else []

    def policy(self, timeout: float) -> JsonObject:
        return {"mcp_timeout_seconds": timeout, "mcp_start_timeout_seconds": timeout}

    async def check(self, source: McpSource, timeout: float) -> Sequence[Problem]:  # noqa: ARG002 - it has limits of its own
        """What the server itself said is told when it is loaded."""
        return list(source.problems)

    def new_files(self, name: str, mode: str | None) -> Sequence[NewFile]:  # noqa: ARG002 - the interface
        return []

    def discover(self, folder: Path, files: Sequence[str], place: str) -> Iterator[Found]:  # noqa: ARG002
        """The servers that other clients have for a project; they keep them in its top folder."""
        if place != ".":
            return
        for name in PROJECT_FILES:
            for server, value in block_in(read_client_file(str(folder / name)), str(folder)).items():
                if is_ours(server, value):
                    continue
                yield Found(what=f"MCP server '{server}'", entry={"mcp": {"file": f"./{name}", "server": server}})
