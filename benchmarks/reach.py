"""What reach costs: a call with each reach, a line of a live session that was approved, and the second sandbox."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Note, Row, milliseconds
from benchmarks.sandbox import alternate, row
from toolyard import AgentApplication
from toolyard.permissions.verdict import answer_always

CALLS, LINES, FIRSTS = 300, 60, 6
CONFIG: dict[str, Any] = {"plugins": ["shell:command", "shell:session"], "permissions": {"preset": "read-only"}}


async def rows() -> AsyncIterator[Row | Note]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name) / "work"
        workspace.mkdir()
        os.chdir(workspace)
        try:
            async with open_application(name) as app:
                async for line in measure(app):
                    yield line
            yield await first_use(name)
        finally:
            os.chdir(before)


def open_application(folder: str) -> AgentApplication:
    approver = answer_always(allowed=True, reason="measured")
    return AgentApplication(CONFIG, f"{folder}/sessions", approver=approver)


async def measure(app: AgentApplication) -> AsyncIterator[Row]:
    def shell(reach: str) -> Any:
        return lambda: app.call_tool("shell", {"command": "true", "reach": reach})

    ours, floor = await alternate(CALLS, shell("look"), shell("work"))
    yield row("one-shot `true` with `look`, beside `work`", ours, floor, 1.05)
    ours, floor = await alternate(
        LINES,
        lambda: app.call_tool("bash", {"command": "true", "reach": "work"}),
        lambda: app.call_tool("shell", {"command": "true", "reach": "work"}),
    )
    ratio = ours / floor
    yield Row(
        what="an approved line of a live session, in a shell of its own",
        ours=milliseconds(ours),
        floor=f"{milliseconds(floor)} (one-shot)",
        figure=f"{ratio:.1f} ×",
        promise="≤ 40 ms",
        kept=ours <= 0.040,
    )


async def first_use(folder: str) -> Row:
    """How much longer the first call with another reach takes than the second."""
    times = []
    for _ in range(FIRSTS):
        async with open_application(folder) as app:
            await app.call_tool("shell", {"command": "true", "reach": "look"})
            started = time.perf_counter()
            await app.call_tool("shell", {"command": "true", "reach": "work"})
            between = time.perf_counter()
            await app.call_tool("shell", {"command": "true", "reach": "work"})
            times.append((between - started, time.perf_counter() - between))
    first, second = (sorted(each)[len(each) // 2] for each in zip(*times, strict=True))
    return Row(
        what="the first call with a second reach",
        ours=milliseconds(first),
        floor=f"{milliseconds(second)} (the next one)",
        figure=f"+ {milliseconds(first - second)}",
        promise="some 50 ms",
        kept=None,
    )
