"""Two hundred calls at once and ten thousand in a row: nothing is left over."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.calls import MINIMAL
from benchmarks.measure import Row, resident_mib, write_tools
from toolyard import AgentApplication

AT_ONCE = 200
IN_A_ROW = 10_000
WARM_UP = 500


async def rows() -> AsyncIterator[Row]:
    """Counts before and after; memory after a warm-up, in which caches fill."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_tools(folder, 1, MINIMAL)
        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:

            async def call() -> None:
                assert (await app.call_tool("tool_000", {"value": "hi"})).text == "hi"

            for _ in range(WARM_UP):
                await call()
            before = counts()
            await asyncio.gather(*(call() for _ in range(AT_ONCE)))
            yield row(f"{AT_ONCE} calls at once", before, counts())
            before = counts()
            for _ in range(IN_A_ROW):
                await call()
            yield row(f"{IN_A_ROW} calls in a row", before, counts())


def counts() -> dict[str, float]:
    """What could be left over."""
    gc.collect()
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    below = [Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in children]
    return {
        "descriptors": len(os.listdir("/proc/self/fd")) + sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in children),
        "tasks": len(asyncio.all_tasks()),
        "processes": len(children) + sum(map(len, below)),
        "MiB": resident_mib() + sum(resident_mib(pid) for pid in children),
    }


def row(what: str, before: dict[str, float], after: dict[str, float]) -> Row:
    left = {name: after[name] - before[name] for name in before}
    kept = left["descriptors"] <= 0 and left["tasks"] <= 0 and left["processes"] <= 0 and left["MiB"] <= 4
    text = ", ".join(f"{round(value, 1):g} {name}" for name, value in left.items())
    return Row(what=what, ours=text, floor="-", figure=text, promise="nothing left", kept=kept)
