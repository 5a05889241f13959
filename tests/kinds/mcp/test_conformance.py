"""The client half of the official conformance suite: all that is required of clients, signing in included."""

from __future__ import annotations

import asyncio
import os
import re
import shlex

import pytest

from conformance import SUITE, newer_node
from forked_commands import PACKAGE, forked_program, modules_of
from yard import Yard

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
PATIENCE = 200
"""Seconds for all clients of one revision, which run at once."""
CLIENT = "mcp_servers.suite_client"
USED = (
    *("anyio._backends._asyncio", "httpcore2", "mcp.client.auth", "mcp.client.streamable_http", "tree_sitter"),
    *("toolyard.kinds.mcp.login", "toolyard.kinds.mcp.source", "toolyard.kinds.mcp.streams"),
)
"""What a client imports late: dozens of them run, and all this takes more than a second each time."""


def required(revision: str) -> list[str]:
    """The scenarios that the suite requires of clients."""
    text = (SUITE.parents[1] / "requirements" / f"{revision}.yaml").read_text()
    block = re.search(r"^client:\n((?:[ #].*\n|\n)*)", text, re.MULTILINE)
    return re.findall(r"^  - (\S+)$", block[1] if block else "", re.MULTILINE)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_our_client_conforms(yard: Yard, revision: str):
    """For each scenario the suite starts our client anew, against a server of its own."""
    node = newer_node()
    with forked_program(CLIENT, yard.folder, imported=[*USED, *modules_of(PACKAGE)]) as client:
        suite = await asyncio.create_subprocess_exec(
            *(node, SUITE, "client", "--command", shlex.join(client)),
            *("--requirements", revision, "--timeout", str(PATIENCE * 1000)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            cwd=yard.folder,
        )
        async with asyncio.timeout(PATIENCE):
            out, _ = await suite.communicate()
    told = out.decode()
    assert suite.returncode == 0, told[-6000:]
    assert set(required(revision)) <= set(re.findall(r"^✓ (\S+): [1-9]\d* passed, 0 failed", told, re.MULTILINE))
