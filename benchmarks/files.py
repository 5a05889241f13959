"""File tools, as whole calls, beside the least that such work can be: reading and writing a file, and grep."""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Note, Row, interleave, milliseconds
from toolyard import AgentApplication
from toolyard.kinds.files.workers import KEPT_MEMORY

FILES = 50_000
FOLDERS = 500
LARGE = 1 << 20
ROUNDS = 40
LINE = "    value = compute(index, step={0})  # changed {0} times\n"
SEARCHES = 5
PATTERNS = {"a word": "needle_42", "an expression": r"needle_\d+ = \w+"}
WORDS = ("alpha", "beta", "gamma", "value", "index", "result", "return", "import", "class", "def", "for", "with")


async def rows() -> AsyncIterator[Row | Note]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        config = folder / "toolyard.json"
        config.write_text(json.dumps({"plugins": ["files:all"], "working_directory": str(folder / "work")}))
        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:
            async for line in editing(app, folder / "work"):
                yield line
        make_tree(folder / "work" / "tree")
        for program in ("rg", "grep"):
            async for row in searching(config, folder, program):
                yield row


async def editing(app: AgentApplication, folder: Path) -> AsyncIterator[Row | Note]:
    """An edit in the middle of a megabyte, beside what a model does without one, and beside the bare disk."""
    choose = random.Random(1)
    half = "".join("    " + " ".join(choose.choices(WORDS, k=9)) + "\n" for _ in range(LARGE // 2 // 60))
    for name in ("large.txt", "whole.txt", "bare.txt"):
        (folder / name).write_text(f"{half}{LINE.format(0)}{half}")
    assert (await app.call_tool("read", {"file_path": "large.txt", "limit": 1})).ok
    changes = [{"old_string": LINE.format(n), "new_string": LINE.format(n + 1)} for n in range(2 * ROUNDS)][::-1]
    text = (folder / "whole.txt").read_text()

    async def edit() -> None:
        result = await app.call_tool("edit", {"file_path": "large.txt", **changes.pop()})
        assert result.ok, result

    async def read_and_write() -> None:
        for tool, arguments in (("read", {}), ("write", {"content": text})):
            result = await app.call_tool(tool, {"file_path": "whole.txt", **arguments})
            assert result.ok, result

    def bare() -> None:
        (folder / "spare").write_bytes((folder / "bare.txt").read_bytes())
        (folder / "spare").rename(folder / "bare.txt")

    ours, floor = [], []
    for _ in range(ROUNDS):
        for call, times in ((edit, ours), (read_and_write, floor)):
            started = time.perf_counter()
            await call()
            times.append(time.perf_counter() - started)
    yield row("edit of a 1 MB file", statistics.median(ours), statistics.median(floor), "read and write by tools", 1.5)
    yield row("the work of an edit of 1 MB, without the call", *work_alone(folder), "read, write, move", None)
    yield row("the whole call beside the disk alone", *await interleave(ROUNDS, edit, bare), "read, write, move", None)
    yield Note(
        "An edit as a whole call is beside what a model does without one: read the file and write it whole, by the "
        "same calls. Its own work (checking the text, finding the place, counting its lines, the diff, writing) is "
        "beside reading and writing the file in the same process. The third row has a call on one side only: what that "
        "costs whatever the file is (verdict, record, a process inside the sandbox) is more than the disk takes."
    )


def work_alone(folder: Path) -> tuple[float, float]:
    """The medians of an edit's own work and of the bare disk, in a process like that of the tools."""
    for name in ("large.txt", "bare.txt"):
        (folder / "alone").mkdir(exist_ok=True)
        shutil.copy(folder / "whole.txt", folder / "alone" / name)
    memory = {os.fsdecode(name): os.fsdecode(value) for name, value in KEPT_MEMORY.items()}
    argv = [sys.executable, "-m", "benchmarks.edit_alone", str(folder / "alone"), LINE]
    told = subprocess.run(argv, env={**os.environ, **memory}, capture_output=True, check=True, text=True).stdout
    ours, floor = json.loads(told)
    return ours, floor


def make_tree(top: Path) -> None:
    choose = random.Random(2)
    for number in range(FILES):
        folder = top / f"part{number % FOLDERS % 20}" / f"d{number % FOLDERS}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(choose.choices(WORDS, k=8)) for _ in range(20))
        extra = f"\nneedle_{number} = found\n" if number % 1000 == 42 else "\n"
        (folder / f"file{number}.py").write_text(text + extra)


async def searching(config: Path, folder: Path, program: str) -> AsyncIterator[Row | Note]:
    """Our search beside a program's own, for which the other is not there."""
    path = shutil.which(program)
    if path is None:
        yield Note(f"there is no {program} here to compare with")
        return
    promise = 1.2 if program == "rg" else 3.0
    async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:
        if program != "rg":
            forget_ripgrep(await app._lifecycle.current())
        for what, pattern in PATTERNS.items():

            async def search(pattern: str = pattern) -> None:
                result = await app.call_tool("grep", {"pattern": pattern, "path": "tree"})
                assert result.ok, result
                assert "found" in result.text, result

            def alone(pattern: str = pattern) -> None:
                expression = [pattern, "."] if program == "rg" else ["-rnIP", pattern, "."]
                subprocess.run([path, *expression], cwd=folder / "work" / "tree", capture_output=True, check=True)

            ours, floor = await interleave(SEARCHES, search, alone)
            yield row(f"grep for {what} in {FILES} files", ours, floor, program, promise)


def forget_ripgrep(loaded: object) -> None:
    loaded.host._interpreters["rg"] = None  # type: ignore[attr-defined]


def row(what: str, ours: float, floor: float, against: str, promise: float | None) -> Row:
    ratio = ours / floor
    return Row(
        what=what,
        ours=milliseconds(ours),
        floor=f"{milliseconds(floor)} ({against})",
        figure=f"{ratio:.2f} ×",
        promise=f"≤ {promise} ×" if promise else "-",
        kept=ratio <= promise if promise else None,
    )
