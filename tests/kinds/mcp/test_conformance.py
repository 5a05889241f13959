"""The client half of the official conformance suite, as far as it is about what we do and not about the SDK alone."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path

import pytest

from conformance import SUITE, newer_node
from support import PATIENCE
from yard import Yard

pytestmark = pytest.mark.anyio
CLIENT = Path(__file__).parents[2] / "mcp_servers" / "suite_client.py"
SCENARIOS = [
    ("2025-11-25", "auth/pre-registration"),
    ("2025-11-25", "elicitation-sep1034-client-defaults"),
    ("2026-07-28", "sep-2322-client-request-state"),
    ("2026-07-28", "http-custom-headers"),
]


@pytest.mark.parametrize(("revision", "scenario"), SCENARIOS)
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
