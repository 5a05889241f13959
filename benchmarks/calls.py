"""One call of a bash tool through the whole path, against the bare spawn of the same file."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Row, interleave, milliseconds, write_tools
from toolyard import AgentApplication

ROUNDS = 400
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
