"""A call of a Node tool in a host that runs, against starting Node for it, and against the bare exchange of a line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Note, Row, interleave, milliseconds
from toolyard import AgentApplication

ROUNDS = 400
SPAWNS = 15
TOOL = "export default { run: ({ value }) => value };\n"
BARE = "console.log(process.argv[1])"
ECHO = """
const read = require("readline").createInterface({ input: process.stdin });
read.on("line", (line) => {
  const { id, params } = JSON.parse(line);
  const result = { content: [{ type: "text", text: params.value }] };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
});
"""
REQUEST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"value": "hi"}}).encode() + b"\n"


async def rows() -> AsyncIterator[Row | Note]:
    """A warm call twice, with two floors, and the start of an application that knows its tools."""
    node = shutil.which("node")
    if node is None:
        yield Note("Node is not on PATH: its tools were not measured.")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "echo.mjs").write_text(TOOL)
        config = folder / "toolyard.json"
        config.write_text(json.dumps({"plugins": ["node:echo.mjs"]}))
        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:

            async def call() -> None:
                result = await app.call_tool("echo", {"value": "hi"})
                assert result.text == "hi", result

            await call()
            yield await against_a_spawn(node, call)
            async for row in against_a_line(node, call):
                yield row


async def against_a_spawn(node: str, call) -> Row:
    def bare() -> None:
        subprocess.run([node, "-e", BARE, "hi"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)

    ours, floor = await interleave(SPAWNS, call, bare)
    return Row(
        what="call of a Node tool, its host running",
        ours=milliseconds(ours),
        floor=f"{milliseconds(floor)} (node -e)",
        figure=f"{ours / floor:.3f} ×",
        promise="≤ 0.1 ×",
        kept=ours / floor <= 0.1,
    )


async def against_a_line(node: str, call) -> AsyncIterator[Row]:
    argv = [node, "-e", ECHO]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echo:
        assert echo.stdin
        assert echo.stdout
        to, back = echo.stdin.fileno(), echo.stdout.fileno()

        def exchange() -> None:
            os.write(to, REQUEST)
            assert json.loads(os.read(back, 65536))["id"] == 1

        exchange()
        ours, floor = await interleave(ROUNDS, call, exchange)
        echo.stdin.close()
    yield Row(
        what="the same call",
        ours=milliseconds(ours),
        floor=f"{milliseconds(floor)} (a line of JSON there and back)",
        figure=f"{ours / floor:.2f} ×",
        promise="-",
        kept=None,
    )
