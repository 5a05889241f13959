"""A call of an MCP server's tool through the application, against the same call by the SDK's own client."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from mcp import Client, StdioServerParameters

from benchmarks.measure import Row, milliseconds
from toolyard import AgentApplication

ROUNDS = 400
MOST_ADDED = 0.001
SERVER = """
import json, sys
TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"value": {"type": "string"}}}}
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    match message["method"]:
        case "initialize":
            answer = {"result": ABOUT}
        case "tools/list":
            answer = {"result": {"tools": [TOOL]}}
        case "tools/call":
            answer = {"result": {"content": [{"type": "text", "text": message["params"]["arguments"]["value"]}]}}
        case _:
            answer = {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


async def rows() -> AsyncIterator[Row]:
    """A warm call by its streams, in turn with the SDK's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = folder / "server.py"
        server.write_text(SERVER)
        config = folder / "toolyard.json"
        config.write_text(json.dumps({"plugins": [{"mcp": {"command": [sys.executable, str(server)]}}]}))
        theirs = StdioServerParameters(command=sys.executable, args=[str(server)])
        async with (
            AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app,
            Client(theirs, mode="legacy") as client,
        ):
            ours, floor = await in_turn(app, client)
    yield Row(
        what="call of an MCP server's tool, its program running",
        ours=milliseconds(ours),
        floor=f"{milliseconds(floor)} (the SDK's client)",
        figure=f"+ {milliseconds(ours - floor)}",
        promise=f"≤ + {milliseconds(MOST_ADDED)}",
        kept=ours - floor <= MOST_ADDED,
    )


async def in_turn(app: AgentApplication, client: Client) -> tuple[float, float]:
    """The medians of both, in seconds."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        assert (await app.call_tool("echo", {"value": "hi"})).text == "hi"
        between = time.perf_counter()
        await client.call_tool("echo", {"value": "hi"})
        ours.append(between - started)
        theirs.append(time.perf_counter() - between)
    return statistics.median(ours), statistics.median(theirs)
