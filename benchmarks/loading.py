"""Loading a hundred bash tools: the first time, and unchanged the second time."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.measure import Row, milliseconds, write_tools
from toolyard import AgentApplication

TOOLS = 100
ROUNDS = 5


async def rows() -> AsyncIterator[Row]:
    """First against two workers that only run the schemas; second against the first."""
    first, second, floor = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_tools(folder, TOOLS)
        for round in range(ROUNDS):
            cache = folder / f"cache-{round}"
            first.append(await load(config, folder, cache))
            second.append(await load(config, folder, cache))
            floor.append(run_schemas(folder))
    cold, warm, bare = map(statistics.median, (first, second, floor))
    yield Row(
        what=f"loading {TOOLS} tools, first time",
        ours=milliseconds(cold),
        floor=f"{milliseconds(bare)} (2 workers running `schema`)",
        figure=f"{cold / bare:.2f} ×",
        promise="≤ 1 ×",
        kept=cold <= bare,
    )
    yield Row(
        what=f"loading {TOOLS} tools, unchanged",
        ours=milliseconds(warm),
        floor=f"{milliseconds(cold)} (the first time)",
        figure=f"{100 * warm / cold:.1f} %",
        promise="≤ 3 %",
        kept=warm <= 0.03 * cold,
    )


async def load(config: Path, folder: Path, cache: Path) -> float:
    started = time.perf_counter()
    app = AgentApplication(config, folder / "sessions", cache_dir=cache)
    await app.__aenter__()
    elapsed = time.perf_counter() - started
    assert len(app.tool_specs()) == TOOLS
    await app.__aexit__(None, None, None)
    return elapsed


def run_schemas(folder: Path) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run_schema, sorted(folder.glob("*.bash"))))
    return time.perf_counter() - started


def run_schema(file: Path) -> bytes:
    return subprocess.run(["bash", str(file), "schema"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
