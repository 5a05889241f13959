"""Toolyard as the client that the conformance suite looks at: it loads a server, signs in, and calls every tool."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from typing import Any

import httpx2

from toolyard import AgentApplication
from toolyard.permissions.verdict import Answer

DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""Which the suite takes for a document about us."""
MOST_TRIES = 3
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


def run() -> None:
    """Many run at once in the same folder: each has one of its own in it, with all that it keeps."""
    os.chdir(tempfile.mkdtemp(dir=os.curdir))
    os.environ |= dict.fromkeys(("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), os.getcwd())
    asyncio.run(main(sys.argv[-1]))


async def main(url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    oauth = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    oauth = oauth or {"client_metadata_url": DOCUMENT}
    for _ in range(MOST_TRIES):
        advice = await use(url, oauth, context.get("toolCalls"))
        if not advice:
            return
        if wanted := re.search(r'"scope": "([^"]*)"', advice):
            oauth["scope"] = " ".join(dict.fromkeys(f"{oauth.get('scope', '')} {wanted[1]}".split()))


async def use(url: str, oauth: dict[str, str], calls: list[dict[str, Any]] | None) -> str:
    """Call every tool; what a person is told to do, if that is what it takes."""
    config = {"plugins": [{"mcp": {"url": url, "name": "server", "oauth": oauth}}]}
    yes = Answer(allowed=True, reason="as it is")
    async with AgentApplication(config, "sessions", approver=lambda _: yes) as app:
        (server,) = await app.servers()
        await server.status(start=True)  # many such clients run at once, so that it may take a while
        await app.refresh()
        if any("sign in" in problem.message or "further rights" in problem.message for problem in app.problems()):
            await sign_in(app)
            await app.refresh()
        listed = [{"name": spec.name, "arguments": sample(spec.input.schema)} for spec in app.tool_specs()]
        for call in calls or listed:
            result = await app.call_tool(call["name"], call.get("arguments") or {})
            print(call["name"], result.failure, result.text[:400], file=sys.stderr)
            if "toolyard plugins login" in result.text:
                server.logout()
                return result.text
    return ""
