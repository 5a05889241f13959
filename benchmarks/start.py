"""From a cold start: `toolyard --help`, `toolyard exec true`, and the first call of an application."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Row, compiling_environment, milliseconds

ROUNDS = 15
EXEC_ROUNDS = 20
FIRST_CALL = """
import asyncio, sys, time
from toolyard import AgentApplication
from toolyard.permissions.verdict import answer_always

async def main(sessions):
    approver = answer_always(allowed=True, reason="measured")
    async with AgentApplication({"plugins": ["shell:command"]}, sessions, approver=approver) as app:
        started = time.perf_counter()
        result = await app.call_tool("shell", {"command": "true"})
        print(time.perf_counter() - started)
        assert result.ok

asyncio.run(main(sys.argv[1]))
"""


async def rows() -> AsyncIterator[Row]:
    """The whole process, as a person waits for it; beside it processes that do nothing."""
    command = Path(sys.executable).with_name("toolyard")
    with tempfile.TemporaryDirectory() as folder:
        argv = {
            "help": [str(command), "--help"],
            "exec": [str(command), "--sessions", folder, "exec", "true"],
            "first": [sys.executable, "-c", FIRST_CALL, folder],
            "python": [sys.executable, "-c", "pass"],
            "bash": ["bash", "-c", "true"],
        }
        for words in argv.values():
            timed(words)  # which leaves what it compiled, and what it found out about the machine
        helped, python = medians(ROUNDS, [argv["help"], argv["python"]])
        executed, bare, bash = medians(EXEC_ROUNDS, [argv["exec"], argv["python"], argv["bash"]])
        first = statistics.median(float(printed(argv["first"])) for _ in range(EXEC_ROUNDS))
    yield row("toolyard --help", helped, f"{milliseconds(python)} (python -c pass)", 0.15)
    floors = f"{milliseconds(bare)} (python -c pass), {milliseconds(bash)} (bash -c true)"
    yield row("toolyard exec true", executed, floors, 0.22)
    yield row("first call of a fresh process, with its sandbox", first, f"{milliseconds(bash)} (bash -c true)", 0.1)


def row(what: str, seconds: float, floor: str, most: float) -> Row:
    return Row(
        what=what,
        ours=milliseconds(seconds),
        floor=floor,
        figure=milliseconds(seconds),
        promise=f"≤ {most * 1000:.0f} ms",
        kept=seconds <= most,
    )


def medians(rounds: int, commands: list[list[str]]) -> list[float]:
    """Of each, done in turn."""
    times = [[timed(argv) for argv in commands] for _ in range(rounds)]
    return [statistics.median(each) for each in zip(*times, strict=True)]


def timed(argv: list[str]) -> float:
    started = time.perf_counter()
    printed(argv)
    return time.perf_counter() - started


def printed(argv: list[str]) -> str:
    return subprocess.run(argv, env=compiling_environment(), capture_output=True, text=True, check=True).stdout
