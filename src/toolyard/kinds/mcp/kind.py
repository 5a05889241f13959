"""The kind of MCP servers: what the rest of the application knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.mcp.settings import McpSettings
from toolyard.plugins.kind import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.config.document import Place
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.mcp.author import McpAuthoring
    from toolyard.kinds.mcp.reference import McpAddress, McpProgram
    from toolyard.kinds.mcp.source import McpSource
    from toolyard.plugins.host import Host
    from toolyard.plugins.kind import Named


class McpServers(Kind):
    """The tools, resources and prompts of MCP servers."""

    name = "mcp"
    spellings = (
        "mcp:NAME",
        '{"mcp": {"command": [PROGRAM, …]}}',
        '{"mcp": {"url": URL}}',
        '{"mcp": {"file": FILE}}',
        '{"mcpServers": {NAME: …}}',
    )
    settings = McpSettings

    def read(self, entry: Json, at: Place) -> Named | None:
        match entry:
            case str() if entry.startswith("mcp:"):
                from toolyard.kinds.mcp.reference import read_name

                return read_name(entry.removeprefix("mcp:"), at)
            case {"mcp": options}:
                from toolyard.kinds.mcp.reference import read_options

                return read_options(options, at)
            case {"mcpServers": block}:
                from toolyard.kinds.mcp.reference import read_block

                return read_block(block, at)
        return None

    def whole_file(self, value: JsonObject, path: Path) -> JsonObject | None:
        """Another client's file by itself stands for a configuration that loads its servers."""
        if not isinstance(value.get("mcpServers"), dict) or "plugins" in value:
            return None
        return {"plugins": [{"mcp": {"file": str(path)}}]}

    def source(self, reference: McpProgram | McpAddress, host: Host) -> McpSource:
        from toolyard.kinds.mcp.source import McpSource

        return McpSource(reference, host)

    @property
    def author(self) -> McpAuthoring:
        from toolyard.kinds.mcp.author import McpAuthoring

        return McpAuthoring()
