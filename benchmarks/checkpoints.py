"""Keeping the state of a workspace of 50,000 files, beside `git status` of the same one."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Note, Row, milliseconds
from toolyard.agents.checkpoints.store import CheckpointStore

FILES, FOLDERS, ROUNDS = 50_000, 1_000, 9


async def rows() -> AsyncIterator[Row | Note]:
    """Nothing changed, and one file in a hundred."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        workspace = make_workspace(top / "work")
        store = CheckpointStore(top / "kept", workspace, home=top / "home")
        started = time.perf_counter()
        await asyncio.to_thread(store.keep)
        first = time.perf_counter() - started
        await asyncio.to_thread(store.keep)  # files that were written a moment ago are read a second time, once
        for what, share, promise in (("unchanged", 0.0, 2.0), ("1 % changed", 0.01, 2.5)):
            yield await beside_git(store, workspace, what, share, promise)
        megabytes = store.size() >> 20
        text = f"The first state of {FILES:,} files took {first:.1f} s; {ROUNDS * 2 + 2} states take {megabytes} MiB."
        yield Note(text)


async def beside_git(store: CheckpointStore, workspace: Path, what: str, share: float, promise: float) -> Row:
    chance, ours, floor = random.Random(what), [], []
    files = list(workspace.glob("d*/e*/*.txt")) if share else []
    for number in range(ROUNDS):
        for file in chance.sample(files, int(len(files) * share)):
            file.write_text(f"changed {number} {chance.random()}\n" * 50)
        await asyncio.sleep(0.05)
        ours.append(timed(store.keep))
        floor.append(timed(lambda: subprocess.run(["git", "status", "--short"], cwd=workspace, capture_output=True)))
    mine, theirs = statistics.median(ours), statistics.median(floor)
    return Row(
        what=f"a state of {FILES:,} files, {what}, beside `git status`",
        ours=milliseconds(mine),
        floor=milliseconds(theirs),
        figure=f"{mine / theirs:.2f} ×",
        promise=f"≤ {promise} ×",
        kept=mine <= promise * theirs,
    )


def timed(action: object) -> float:
    started = time.perf_counter()
    assert callable(action)
    action()
    return time.perf_counter() - started


def make_workspace(folder: Path) -> Path:
    chance = random.Random(1)
    for number in range(FILES):
        below = folder / f"d{number % FOLDERS // 30}" / f"e{number % FOLDERS}"
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{number}.txt").write_text(f"{number} {chance.random()}\n" * chance.randrange(1, 200))
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    for words in (
        ["init", "-q"],
        ["config", "gc.auto", "0"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "all"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, env=environment)
    return folder
