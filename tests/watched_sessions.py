"""A conversation whose provider and plugins are given, for tests of those that watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolyard import AgentApplication
from toolyard.agents.session import AgentSession
from toolyard.agents.sessions.events import TurnEnded

CONFIG = {"plugins": ["shell:session"], "provider": "scripted", "permissions": {"preset": "trusted"}}
BUILTIN = "path:${env:BUILTIN_PLUGINS}"
PATIENCE = 60


@asynccontextmanager
async def opened(folder: Path, *given: Any, config: dict[str, Any] | None = None) -> AsyncIterator[AgentSession]:
    async with asyncio.timeout(PATIENCE):
        merged = {**CONFIG, **(config or {})}
        async with AgentApplication(merged, folder / "sessions", tools=list(given)) as app:
            yield await app.open_session()


async def outcome(session: AgentSession, prompt: str) -> str:
    last = [update async for update in session.send(prompt)][-1]
    assert isinstance(last.event, TurnEnded)  # type: ignore[union-attr]
    return last.event.outcome  # type: ignore[union-attr]
