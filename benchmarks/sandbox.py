"""What a sandbox costs: sessions and commands inside, beside the same outside, in turn."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from benchmarks.measure import Note, Row, milliseconds
from toolyard.bash.session.session import BashSession
from toolyard.process.child import Children, ChildRequest
from toolyard.process.environment import ParentEnvironment
from toolyard.process.sandbox.layout import SandboxPaths
from toolyard.process.sandbox.policy import BACKENDS, Backend, SandboxPolicy
from toolyard.process.sandbox.sandbox import Sandbox

STARTS, FIRST_STARTS, CALLS = 60, 8, 400
COMMANDS = ("true", "echo hi", "/bin/true", "f() { echo x | cat; }; f")


async def rows() -> AsyncIterator[Row | Note]:
    """Each backend that there is."""
    for backend in BACKENDS:
        with tempfile.TemporaryDirectory() as name:
            workspace = Path(name) / "work"
            workspace.mkdir()
            inside, outside = Children(sandbox(backend, workspace)), Children()
            try:
                if sandbox(backend, workspace).choose().backend is None:
                    yield Note(f"{backend} is left out: {sandbox(backend, workspace).choose().passed_over}.")
                    continue
                async for row in measure(backend, workspace, inside, outside):
                    yield row
            finally:
                await inside.aclose()
                await outside.aclose()


async def measure(backend: Backend, workspace: Path, inside: Children, outside: Children) -> AsyncIterator[Row]:
    ours, floor = await alternate(
        FIRST_STARTS, lambda: first_session(backend, workspace), lambda: first_session(None, workspace)
    )
    yield row(f"start of the first session of a process, {backend}", ours, floor, 10)
    ours, floor = await alternate(STARTS, lambda: start(workspace, inside), lambda: start(workspace, outside))
    yield row(f"start of a session, {backend}", ours, floor, 10)
    for command in COMMANDS:
        async with (
            BashSession(workspace, children=inside) as in_there,
            BashSession(workspace, children=outside) as here,
        ):
            ours, floor = await alternate(CALLS, lambda: in_there.run(command), lambda: here.run(command))  # noqa: B023
        yield row(f"`{command}` in a session, {backend}", ours, floor, 1.1)
    request = ChildRequest(argv=["/bin/bash", "-c", "true"], cwd=workspace, env=ParentEnvironment().current())
    ours, floor = await alternate(CALLS, lambda: inside.run(request), lambda: outside.run(request))
    yield row(f"one-shot `bash -c true`, {backend}", ours, floor, 1.1)


def sandbox(backend: Backend, workspace: Path) -> Sandbox:
    places = SandboxPaths(home=os.path.expanduser("~"), workspace=[str(workspace)])
    return Sandbox(SandboxPolicy(backends=(backend,)), places)


async def start(workspace: Path, children: Children) -> None:
    """A session as an application has it, whose keeper runs already."""
    session = BashSession(workspace, children=children)
    await session.start()
    await session.aclose()


async def first_session(backend: Backend | None, workspace: Path) -> None:
    """The keeper, the sandbox and the shell; and all of it gone again."""
    children = Children(sandbox(backend, workspace) if backend else None)
    await start(workspace, children)
    await children.aclose()


async def alternate(
    rounds: int, ours: Callable[[], Awaitable[object]], floor: Callable[[], Awaitable[object]]
) -> tuple[float, float]:
    """The medians of two things done in turn, after a first round that counts for nothing."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):
        for kept, act in zip(times, (ours, floor), strict=True):
            started = time.perf_counter()
            await act()
            kept.append(time.perf_counter() - started)
    return statistics.median(times[0][1:]), statistics.median(times[1][1:])


def row(what: str, ours: float, floor: float, promise: float) -> Row:
    ratio = ours / floor
    return Row(
        what=what,
        ours=milliseconds(ours) if ours > 0.001 else f"{ours * 1e6:.0f} µs",
        floor=f"{milliseconds(floor) if floor > 0.001 else f'{floor * 1e6:.0f} µs'} (outside)",
        figure=f"{ratio:.2f} ×",
        promise=f"≤ {promise} ×",
        kept=ratio <= promise,
    )
