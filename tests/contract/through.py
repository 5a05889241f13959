"""The ways by which a call reaches a tool: directly, and through our own server by each of its wires."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from mcp_peer import connected_to
from support import PATIENCE
from toolyard.app import AgentApplication
from toolyard.serve.mcp.http.listening import Address, listening
from toolyard.serve.mcp.messages import CAPABILITIES_KEY, STATELESS_VERSION, VERSION_KEY
from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
TOKEN = "a token of the tests"
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": STATELESS_VERSION,
    "Mcp-Method": "tools/call",
}


@asynccontextmanager
async def over_lines(app: AgentApplication, approver: ClientApprover) -> AsyncIterator[Call]:
    """`serve --mcp stdio`, for a client of the older era."""
    async with connected_to(ToolServer(app, approver), "the session of lines", capabilities={}) as peer:

        async def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return await peer.request("tools/call", {"name": name, "arguments": arguments})

        yield call


@asynccontextmanager
async def over_http(app: AgentApplication, approver: ClientApprover) -> AsyncIterator[Call]:
    """`serve --mcp http`, for a client of the newer era."""
    async with (
        listening(ToolServer(app, approver), Address(token=TOKEN)) as address,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):

        async def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            meta = {VERSION_KEY: STATELESS_VERSION, CAPABILITIES_KEY: {}}
            params = {"name": name, "arguments": arguments, "_meta": meta}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await http.post(address.url, json=body, headers={**HEADERS, "Mcp-Name": name})
            return answer.json()["result"]

        yield call


WIRES = {"lines": over_lines, "http": over_http}
