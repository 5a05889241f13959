"""What `plugin_policy` says of MCP servers. Annotations are evaluated here, since that makes start-up faster."""

from typing import Annotated

import msgspec
from msgspec import Meta

from toolyard.config.settings import Seconds


class McpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long MCP servers may take."""

    mcp_timeout_seconds: Annotated[
        Seconds, Meta(description="Limit for each call of an MCP server's tool, without waits for a person.")
    ] = 60
    mcp_start_timeout_seconds: Annotated[
        Seconds, Meta(description="Limit for an MCP server to start, to connect and to list its tools.")
    ] = 30
