"""What git costs inside, beside the same outside, in turn."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Note, Row
from benchmarks.sandbox import alternate, row, sandbox
from toolyard.process.child import Children, ChildRequest
from toolyard.process.environment import ParentEnvironment
from toolyard.process.sandbox.policy import Backend

ROUNDS, FILES = 200, 1000
BACKENDS: tuple[Backend, ...] = ("bubblewrap", "bubblewrap-pids")
SET_UP = """git init -q . && git config user.name Ada && git config user.email ada@example.org
mkdir -p {0..9} && for n in $(seq FILES); do echo $n > $((n % 10))/$n; done && git add . && git commit -qm first"""
COMMANDS = (["status"], ["commit", "-q", "--allow-empty", "-m", "x"])


async def rows() -> AsyncIterator[Row | Note]:
    if (git := shutil.which("git")) is None:
        yield Note("git is left out: it is not installed.")
        return
    for backend in BACKENDS:
        with tempfile.TemporaryDirectory() as name:
            (workspace := Path(name) / "work").mkdir()
            subprocess.run(["bash", "-ec", SET_UP.replace("FILES", str(FILES))], cwd=workspace, check=True)
            inside, outside = Children(sandbox(backend, workspace)), Children()
            try:
                for words in COMMANDS:
                    env = ParentEnvironment().current()
                    request = ChildRequest(argv=[git, *words], cwd=workspace, env=env)
                    ours, floor = await alternate(
                        ROUNDS,
                        lambda: inside.run(request),  # noqa: B023
                        lambda: outside.run(request),  # noqa: B023
                    )
                    yield row(f"`git {words[0]}` of {FILES} files, {backend}", ours, floor, 1.1)
            finally:
                await inside.aclose()
                await outside.aclose()
