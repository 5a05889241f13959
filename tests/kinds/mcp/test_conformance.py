"""The client half of the official conformance suite: all that is required of clients, signing in included."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from conformance import SUITE, newer_node
from support import PATIENCE
from yard import Yard

pytestmark = pytest.mark.anyio
CLIENT = Path(__file__).parents[2] / "mcp_servers" / "suite_client.py"
REVISIONS = ("2025-11-25", "2026-07-28")


def required(revision: str) -> list[str]:
    """The scenarios that the suite requires of clients; none where it is not installed."""
    file = SUITE.parents[1] / "requirements" / f"{revision}.yaml"
    text = file.read_text() if file.exists() else "client:\n  - none\n"
    block = re.search(r"^client:\n((?:[ #].*\n|\n)*)", text, re.MULTILINE)
    return re.findall(r"^  - (\S+)$", block[1] if block else "", re.MULTILINE)


@pytest.mark.parametrize(
    ("revision", "scenario"), [(revision, name) for revision in REVISIONS for name in required(revision)]
)
async def test_our_client_conforms(yard: Yard, revision: str, scenario: str):
    suite = await asyncio.create_subprocess_exec(
        *(newer_node(), SUITE, "client", "--command", shlex.join([sys.executable, str(CLIENT)])),
        *("--scenario", scenario, "--spec-version", revision, "--timeout", str(PATIENCE * 1000)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        cwd=yard.folder,
    )
    async with asyncio.timeout(PATIENCE + 30):
        out, _ = await suite.communicate()
    assert suite.returncode == 0, out.decode()[-6000:]
