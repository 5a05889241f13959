"""Toolyard as the client that the conformance suite looks at: it loads a server, signs in, and calls every tool."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import httpx2

from toolyard import AgentApplication
from toolyard.permissions.verdict import Answer

SAMPLES = {"string": "x", "number": 3, "integer": 3, "boolean": True, "array": [], "object": {}}


def sample(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that fit a plain schema."""
    properties = schema.get("properties") or {}
    return {name: part.get("default", SAMPLES.get(part.get("type"), "x")) for name, part in properties.items()}


async def sign_in(app: AgentApplication) -> None:
    """What a person would do in their browser."""
    (source,) = await app.servers()
    visits: list[asyncio.Future[Any]] = []

    def visit(address: str) -> None:
        loop = asyncio.get_running_loop()
        visits.append(loop.run_in_executor(None, lambda: httpx2.get(address, follow_redirects=True)))

    if problem := await source.login(visit):
        sys.exit(str(problem))


async def main(url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    oauth = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    config = {"plugins": [{"mcp": {"url": url, "name": "server", **({"oauth": oauth} if oauth else {})}}]}
    yes = Answer(allowed=True, reason="as it is")
    async with AgentApplication(config, "sessions", approver=lambda _: yes) as app:
        (server,) = await app.servers()
        await server.status(start=True)  # many such clients run at once, so that it may take a while
        await app.refresh()
        if any("sign in" in problem.message for problem in app.problems()):
            await sign_in(app)
            await app.refresh()
        listed = [{"name": spec.name, "arguments": sample(spec.input.schema)} for spec in app.tool_specs()]
        for call in context.get("toolCalls") or listed:
            result = await app.call_tool(call["name"], call.get("arguments") or {})
            print(call["name"], result.failure, result.text[:200], file=sys.stderr)


asyncio.run(main(sys.argv[-1]))
