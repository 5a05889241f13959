"""From a cold start: `toolyard --help`, `toolyard exec true`, and the first call of an application."""

from __future__ import annotations

import shutil
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


GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
MANY, WORKTREES = 50, 8
MANY_BELOW = f", {MANY} repositories below"


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
        bare, bash = medians(EXEC_ROUNDS, [argv["python"], argv["bash"]])
        yield row("toolyard --help", helped, f"{milliseconds(python)} (python -c pass)", 0.15)
        floors = f"{milliseconds(bare)} (python -c pass), {milliseconds(bash)} (bash -c true)"
        for where, workspace in workspaces(Path(folder)).items():
            most = (0.22, 0.1) if where != MANY_BELOW else (1.0, 1.0)
            executed = statistics.median(timed(argv["exec"], workspace) for _ in range(EXEC_ROUNDS))
            yield row(f"toolyard exec true{where}", executed, floors, most[0])
            first = statistics.median(float(printed(argv["first"], workspace)) for _ in range(EXEC_ROUNDS))
            what = f"first call of a fresh process, with its sandbox{where}"
            yield row(what, first, f"{milliseconds(bash)} (bash -c true)", most[1])


def workspaces(folder: Path) -> dict[str, Path]:
    """Where an application is started: each is a copy of what some hundred files of ours are, or less."""
    plain, repository, tree, many = (folder / name for name in ("plain", "repository", "tree", "many"))
    plain.mkdir()
    make_repository(repository, source=Path(__file__).parent.parent / "src")
    for number in range(WORKTREES):
        git(repository, "worktree", "add", "-q", str(folder / f"tree-{number}"))
    git(repository, "worktree", "add", "-q", str(tree))
    for number in range(MANY):
        make_repository(many / f"{number}")
    places = {"": plain, ", in a repository": repository, f", in one of {WORKTREES + 1} worktrees": tree}
    return places | {MANY_BELOW: many}


def make_repository(place: Path, source: Path | None = None) -> None:
    place.mkdir(parents=True)
    if source:
        shutil.copytree(source, place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "file").write_text("one\n")
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "one")


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True)


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


def timed(argv: list[str], cwd: Path | None = None) -> float:
    started = time.perf_counter()
    printed(argv, cwd)
    return time.perf_counter() - started


def printed(argv: list[str], cwd: Path | None = None) -> str:
    return subprocess.run(argv, env=compiling_environment(), capture_output=True, text=True, check=True, cwd=cwd).stdout
