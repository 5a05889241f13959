"""The official conformance suite against the server over HTTP, for the requirements of both protocol eras."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from conformance import SUITE, newer_node
from mcp_serving import serving
from toolyard.serve.mcp.http.listening import Address

pytestmark = pytest.mark.anyio
SOURCE = Path(__file__).parents[2] / "mcp_servers" / "suite_server.py"


@pytest.mark.parametrize(("revision", "era"), [("2025-11-25", "handshake"), ("2026-07-28", "stateless")])
async def test_all_that_is_offered_conforms(yard, revision, era):
    """What the suite looks for comes from an MCP server of the same era, behind ours."""
    node = newer_node()
    config = {"plugins": [{"mcp": {"command": [sys.executable, str(SOURCE), era], "name": "suite"}}]}
    async with serving(config, yard.folder, address=Address()) as address:
        suite = await asyncio.create_subprocess_exec(
            *(node, SUITE, "server", "--url", address.url, "--requirements", revision),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=yard.folder,
        )
        async with asyncio.timeout(110):
            out, _ = await suite.communicate()
    assert suite.returncode == 0, out.decode()[-6000:]
    assert "✓ tools-list" in out.decode()
