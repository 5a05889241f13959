"""What the audit log adds to a call: the same calls with it and without it, in turn."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, milliseconds, write_tools
from toolyard import AgentApplication

ROUNDS = 600


class NoLog:
    """Records nothing."""

    def write(self, record: dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


async def rows() -> AsyncIterator[Row]:
    """A bash tool, for which the promise is made, and a builtin in a live session, the least that a call can be."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_tools(folder, 1)
        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:
            yield await one(app, "two audit lines of a bash tool's call", "tool_000", {"value": "hi"}, 1.05)
        config.write_text('{"plugins": ["shell:session"]}')
        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:
            yield await one(app, "two audit lines of `true` in a session", "bash", {"command": "true"}, None)


async def one(app: AgentApplication, what: str, tool: str, arguments: dict[str, str], promise: float | None) -> Row:
    """The lines' own time beside the whole call's, since a difference of medians is smaller than their noise."""
    loaded = (await app._lifecycle.current()).agent()
    log = loaded.calls._services.audit
    spent: list[float] = []

    class Timed:
        def write(self, record: dict[str, Any]) -> None:
            started = time.perf_counter()
            log.write(record)
            spent.append(time.perf_counter() - started)

        def close(self) -> None:
            log.close()

    with_log, without = [], []
    for _ in range(ROUNDS):
        for audit, times in ((Timed(), with_log), (NoLog(), without)):
            loaded.calls._services.audit = audit
            started = time.perf_counter()
            result = await app.call_tool(tool, arguments)
            times.append(time.perf_counter() - started)
            assert result.ok, result
    loaded.calls._services.audit = log
    ours, floor = 2 * statistics.median(spent), statistics.median(without)
    ratio = (floor + ours) / floor
    return Row(
        what=what,
        ours=milliseconds(statistics.median(with_log)),
        floor=f"{milliseconds(floor)} (no log)",
        figure=f"{ours * 1e6:.0f} µs, {ratio:.3f} ×",
        promise=f"≤ {promise} ×" if promise else "-",
        kept=ratio <= promise if promise else None,
    )
