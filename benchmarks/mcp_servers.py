"""The servers that `benchmarks/mcp.py` runs beside ours, each with the same tool: `KIND stdio|PORT`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any


def sdk(wire: str) -> None:
    """The low-level server of the official SDK, which is its fastest."""
    import mcp.types as types
    from mcp.server.lowlevel.server import Server

    numbers = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    schema = {"type": "object", "properties": numbers, "required": ["a", "b"]}

    async def on_list_tools(*_: Any) -> types.ListToolsResult:
        tool = types.Tool(name="add", description="Add two numbers.", input_schema=schema)
        return types.ListToolsResult(tools=[tool])

    async def on_call_tool(_: Any, params: Any) -> types.CallToolResult:
        total = params.arguments["a"] + params.arguments["b"]
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(total))])

    server = Server("peer", version="1", on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    if wire == "stdio":
        asyncio.run(over_stdio(server))
        return
    import uvicorn

    uvicorn.run(server.streamable_http_app(), port=int(wire), log_level="error")


async def over_stdio(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def sdk_tool(wire: str) -> None:
    """The server that the SDK has for Python functions: it checks what comes, as ours does."""
    from mcp.server import MCPServer

    server = MCPServer("peer", log_level="ERROR")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    if wire != "stdio":
        raise SystemExit("only over stdio")
    server.run("stdio")


def fastmcp(wire: str) -> None:
    from fastmcp import FastMCP

    server = FastMCP("peer")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    if wire == "stdio":
        server.run(show_banner=False, log_level="error")
    else:
        server.run(transport="http", port=int(wire), show_banner=False, log_level="error")


def only_answers(_: str) -> None:
    """No server at all: every line has its answer ready. What a call of it takes is the client's own time."""
    import os

    import msgspec

    kept = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    answers = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **kept},
        "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}], **kept},
        "tools/call": {"resultType": "complete", "content": [{"type": "text", "text": "3"}], "isError": False},
    }
    for line in sys.stdin.buffer:
        message = msgspec.json.decode(line)
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": answers.get(message["method"], {})}
            os.write(1, msgspec.json.encode(answer) + b"\n")


if __name__ == "__main__":
    {"sdk": sdk, "sdk-tool": sdk_tool, "fastmcp": fastmcp, "only-answers": only_answers}[sys.argv[1]](sys.argv[2])
