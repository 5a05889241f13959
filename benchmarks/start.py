"""`toolyard --help` from a cold start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Row, compiling_environment, milliseconds

ROUNDS = 15


async def rows() -> AsyncIterator[Row]:
    """The whole process, as a person waits for it; beside it an interpreter that does nothing."""
    command = Path(sys.executable).with_name("toolyard")
    ours, floor = [], []
    timed([str(command), "--help"])  # which leaves what it compiled
    for _ in range(ROUNDS):
        ours.append(timed([str(command), "--help"]))
        floor.append(timed([sys.executable, "-c", "pass"]))
    mine, python = statistics.median(ours), statistics.median(floor)
    yield Row(
        what="toolyard --help",
        ours=milliseconds(mine),
        floor=f"{milliseconds(python)} (python -c pass)",
        figure=milliseconds(mine),
        promise="≤ 150 ms",
        kept=mine <= 0.15,
    )


def timed(argv: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, env=compiling_environment(), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started
