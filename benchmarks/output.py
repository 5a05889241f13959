"""A gigabyte of standard output through `run`, against a plain pipe reader in Python."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Row, resident_mib, write_tools
from toolyard import AgentApplication

GIGABYTE = 1_000_000_000
ROUNDS = 3
SOURCES = {
    "without line ends": f"head -c {GIGABYTE} /dev/zero",
    "in short lines": f"yes abcdefghi | head -c {GIGABYTE}",
}
TOOL = """case $1 in
  schema) echo '{"id": "template_bash_echo", "version": "1", "args_mode": "flags",
    "tools": [{"type": "function", "function": {"name": "template_bash_echo", "parameters": {"type": "object"}}}]}' ;;
  run) %s ;;
esac
"""


async def rows() -> AsyncIterator[Row]:
    """Throughput and memory for each kind of output."""
    for what, command in SOURCES.items():
        async for row in one(what, command):
            yield row


async def one(what: str, command: str) -> AsyncIterator[Row]:
    ours, floor = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_tools(folder, 1, TOOL % command)
        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:
            await app.call_tool("nothing", {})
            before = resident_mib()
            for _ in range(ROUNDS):
                started = time.perf_counter()
                result = await app.call_tool("tool_000", {})
                ours.append(time.perf_counter() - started)
                assert result.bytes_out == GIGABYTE, result
                floor.append(read_plainly(folder / "tool_000.bash"))
            growth = resident_mib() - before
    mine, plain = (GIGABYTE / statistics.median(times) / 1e6 for times in (ours, floor))
    yield Row(
        what=f"1 GB of output {what}",
        ours=f"{mine:.0f} MB/s",
        floor=f"{plain:.0f} MB/s (os.read in a loop)",
        figure=f"{100 * mine / plain:.0f} %",
        promise="≥ 60 %",
        kept=mine >= 0.6 * plain,
    )
    yield Row(
        what=f"memory for 1 GB of output {what}",
        ours=f"{growth:.1f} MiB",
        floor="-",
        figure=f"{growth:.1f} MiB",
        promise="≤ 32 MiB",
        kept=growth <= 32,
    )


def read_plainly(file: Path) -> float:
    started = time.perf_counter()
    with subprocess.Popen(["bash", str(file), "run"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        total = 0
        while data := os.read(child.stdout.fileno(), 65536):
            total += len(data)
    assert total == GIGABYTE
    return time.perf_counter() - started
