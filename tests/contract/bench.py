"""Writes a tool of a kind, and calls it along the whole path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from contract.kinds import Behaviour, Kind, Written
from support import PATIENCE
from toolyard.app import AgentApplication
from toolyard.core.events import CallFinished
from toolyard.core.tool import ToolCall, ToolResult
from yard import Yard

LIMITS = (2, 4, 8, 16, 32)
"""Seconds after which a tool that hangs is ended; a loaded machine may need more than a few to start its processes."""


class Bench:
    """One tool of one kind in a folder of its own."""

    def __init__(self, kind: Kind, yard: Yard) -> None:
        self.kind = kind
        self.yard = yard

    @asynccontextmanager
    async def tool(
        self, behaviour: Behaviour, *, limit: float = PATIENCE, options: dict[str, Any] | None = None, **settings: Any
    ) -> AsyncIterator[Loaded]:
        """Write the tool, load it, and call it as often as is wanted."""
        written = self.kind.write(self.yard, behaviour, limit)
        settings = {**written.settings, **settings}
        config = self.yard.config(written.plugin, policy=dict(written.policy), **settings)
        async with self.yard.open(config, **{**written.options, **(options or {})}) as app:
            assert app.get_config_errors() == []
            yield Loaded(self, app, written)

    def said(self, result: ToolResult) -> str:
        return self.kind.said(result)

    def pids(self) -> list[int]:
        """The processes that a tool which hangs has told of."""
        path = self.yard.folder / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def finished(self) -> list[str]:
        """The ids of the calls whose end was told."""
        return [event.call_id for event in self.yard.events if isinstance(event, CallFinished)]


class Loaded:
    """The tool in an open application."""

    def __init__(self, bench: Bench, app: AgentApplication, written: Written) -> None:
        self.app = app
        self._bench = bench
        self.written = written

    async def __call__(self, value: str = "x", **options: Any) -> ToolResult:
        return await self.call_with(self.written.arguments(value), **options)

    async def call_with(self, arguments: Any, **options: Any) -> ToolResult:
        """Call it with whatever a model may have written."""
        watch = self._bench.yard.watch
        return await self.app.call_tool(self._bench.kind.tool, arguments, on_event=watch, **options)

    async def turn(self, values: Sequence[str], cancelled: asyncio.Event | None = None) -> dict[str, ToolResult]:
        """Call it several times in one turn of a model; the values are the ids of the calls."""
        name = self._bench.kind.tool
        calls = [ToolCall(id=value, name=name, arguments=self.written.arguments(value)) for value in values]
        return await self.app.call_tools(calls, on_event=self._bench.yard.watch, cancelled=cancelled)
