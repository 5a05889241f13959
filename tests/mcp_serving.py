"""The HTTP server in the process of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolyard.app import AgentApplication
from toolyard.serve.mcp.http.listening import Address, listening
from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

TOKEN = "a token of the tests"


@asynccontextmanager
async def serving(
    config: Any, folder: Path, *, kept_after_close: float = 60, address: Address | None = None, **options: Any
) -> AsyncIterator[Address]:
    approver = ClientApprover()
    async with (
        AgentApplication(config, folder / "sessions", approver=approver, **options) as app,
        listening(
            ToolServer(app, approver), address or Address(token=TOKEN), kept_after_close=kept_after_close
        ) as found,
    ):
        yield found
