"""A yard for Node tools: modules and packages on disk, and what a test needs to know of their processes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from support import PATIENCE, is_alive, need
from toolyard.app import AgentApplication
from toolyard.core.tool import ToolResult
from yard import Yard

PROBE = {"type": "object", "properties": {"value": {"type": "string"}}}
IGNORANT = "await new Promise(() => setInterval(() => {}, 1000));"
"""Waits for ever, whatever the signal says."""


class NodeYard(Yard):
    """Writes modules and packages."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        need("node")

    def module(self, run: str, *, name: str = "probe", more: str = "", top: str = "") -> Path:
        """A module of one tool whose `run` has this body, in an async function of `args` and `context`."""
        text = f"{top}\nexport default {{ description: 'A probe.', parameters: {json.dumps(PROBE)}, {more}\n"
        return self.file(f"{name}.mjs", f"{text} async run(args, context) {{ {run}\n }} }};\n")

    def package(self, files: dict[str, str], *tools: dict[str, Any], folder: str = "pkg", **fields: Any) -> Path:
        """A package with these files, and these tools in its package.json."""
        value = {"name": "probes", "version": "1.0.0", "agent": {"tools": list(tools)}, **fields}
        for name, text in files.items():
            self.file(f"{folder}/{name}", text)
        return self.file(f"{folder}/package.json", json.dumps(value, indent=2)).parent

    def probe(self, run: str, *, policy: dict[str, Any] | None = None, more: str = "", **rest: Any) -> AgentApplication:
        """An application with one module."""
        self.module(run, more=more)
        return self.app("node:probe.mjs", policy=policy, **rest)

    async def until(self, claim: Any) -> Any:
        """Wait for something that another process brings about; what it is."""
        async with asyncio.timeout(PATIENCE):
            while not (found := claim()):
                await asyncio.sleep(0.01)
        return found

    async def until_logged(self, count: int = 1) -> list[str]:
        """What tools wrote to the file `log`, as soon as it has so many lines."""
        await self.until(lambda: len(self.log()) >= count)
        return self.log()

    async def until_gone(self, *pids: int | str) -> None:
        await self.until(lambda: not any(is_alive(int(pid)) for pid in pids))


def codes(app: AgentApplication) -> list[str]:
    return [str(problem["type"]) for problem in app.get_config_errors()]


async def call(app: AgentApplication, name: str = "probe", arguments: dict[str, Any] | None = None, **rest: Any) -> str:
    """The text of a call that must succeed."""
    result: ToolResult = await app.call_tool(name, arguments or {}, **rest)
    assert result.failure is None, result.text
    return result.text
