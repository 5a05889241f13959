"""One call through the whole path: of a bash tool against the bare spawn of its file, of a session against bash."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from benchmarks.measure import Row, interleave, milliseconds, write_tools
from benchmarks.shell_sessions import Floor
from toolyard import AgentApplication

ROUNDS = 400
SESSION_ROUNDS = 5
MINIMAL = """case $1 in
  schema) echo '{"id": "template_bash_echo", "version": "1", "args_mode": "positional",
    "positional": [{"name": "value"}],
    "tools": [{"type": "function", "function": {"name": "template_bash_echo", "parameters": {"type": "object",
    "properties": {"value": {"type": "string"}}}}}]}' ;;
  run) printf '%s' "$2" ;;
esac
"""


async def rows() -> AsyncIterator[Row]:
    """The template that comes with Toolyard, and the smallest script there can be."""
    yield await one("call of the template tool", None, ["hi", "false"])
    yield await one("call of a minimal tool", MINIMAL, ["hi"])
    yield await in_a_session()


async def in_a_session() -> Row:
    """`true` in a warm session, with verdict, sandbox and audit, against a bash over two pipes."""
    floor = Floor()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "toolyard.json"
        config.write_text('{"plugins": ["shell:session"]}')
        await floor.open()
        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:

            async def call() -> None:
                result = await app.call_tool("bash", {"command": "true"})
                assert result.ok, result

            async def bare() -> None:
                await floor.run("true")

            ours, least = min([await in_turn(call, bare) for _ in range(SESSION_ROUNDS)])
        await floor.close()
    ratio = ours / least
    return Row(
        what="call of `true` in a warm session",
        ours=milliseconds(ours),
        floor=f"{milliseconds(least)} (bash over two pipes)",
        figure=f"{ratio:.2f} ×",
        promise="≤ 4 ×",
        kept=ratio <= 4,
    )


async def in_turn(*actions: Callable[[], Awaitable[None]]) -> tuple[float, ...]:
    """The median of each over many calls one after the other, as a model's turn makes them."""
    medians = []
    for action in actions:
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            await action()
            times.append(time.perf_counter() - started)
        medians.append(statistics.median(times))
    return tuple(medians)


async def one(what: str, body: str | None, words: list[str]) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_tools(folder, 1, body)
        argv = ["bash", str(folder / "tool_000.bash"), "run", *words]

        def bare() -> None:
            output = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
            assert output == b"hi"

        async with AgentApplication(config, folder / "sessions", cache_dir=folder / "cache") as app:

            async def call() -> None:
                result = await app.call_tool("tool_000", {"value": "hi"})
                assert result.text == "hi", result

            await call()
            ours, floor = await interleave(ROUNDS, call, bare)
    ratio = ours / floor
    return Row(
        what=what,
        ours=milliseconds(ours),
        floor=f"{milliseconds(floor)} (subprocess.run)",
        figure=f"{ratio:.2f} ×",
        promise="≤ 1.3 ×",
        kept=ratio <= 1.3,
    )
