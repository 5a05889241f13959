"""What the script receives is what the model sent, in all three modes, for any Unicode."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolyard.app import AgentApplication
from toolyard.core.events import Event, OutputChunk
from toolyard.core.tool import ToolCall
from yard import Yard

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
WORDS = r"""for word; do printf '%s\0' "$word"; done"""
PROPERTIES = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "many": {"type": "array", "items": {"type": "string"}},
}
ARGUMENTS = st.fixed_dictionaries(
    {}, optional={"text": TEXT, "number": NUMBERS, "flag": st.booleans(), "many": st.lists(TEXT, max_size=4)}
)
LISTS = partial(st.lists, max_size=6)
BATCHES = st.lists(ARGUMENTS, min_size=1, max_size=8)
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


class Script:
    """A tool in one mode, and the application that has it for as long as a test tries arguments."""

    def __init__(self, folder: Path) -> None:
        self._yard = Yard(folder)
        self._runner, self._stack = asyncio.Runner(), AsyncExitStack()
        self._app: AgentApplication | None = None

    def call(self, mode: str, batch: list[dict]) -> list[list[str] | str]:
        """The words, or the standard input, that it saw for each arguments."""
        texts = self._runner.run(self._call(mode, batch))
        return texts if mode == "json" else [text.split("\0")[:-1] for text in texts]

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    async def _call(self, mode: str, batch: list[dict]) -> list[str]:
        printed: dict[str, str] = defaultdict(str)  # what a model reads has no NUL in it; what is streamed is exact

        def hear(event: Event) -> None:
            if isinstance(event, OutputChunk):
                printed[event.call_id] += event.text

        app = self._app = self._app or await self._open(mode)
        calls = [ToolCall(id=str(n), name="probe", arguments=arguments) for n, arguments in enumerate(batch)]
        results = await app.call_tools(calls, on_event=hear)
        assert all(result.ok for result in results.values()), results
        return [printed[call.id] for call in calls]

    async def _open(self, mode: str) -> AgentApplication:
        places = [{"name": name} for name in PROPERTIES]
        run = "cat" if mode == "json" else WORDS
        self._yard.tool(properties=PROPERTIES, args_mode=mode, positional=places, run=run)
        return await self._stack.enter_async_context(self._yard.app("bash:probe.bash"))


def as_word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def expected_flags(arguments: dict) -> list[str]:
    words = []
    for name in PROPERTIES:
        value = arguments.get(name)
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, list):
            words += [word for item in value for word in (f"--{name}", item)]
        elif value is not None:
            words += [f"--{name}", as_word(value)]
    return words


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    script = Script(tmp_path)
    yield script
    script.close()


@SLOW
@given(batch=BATCHES)
def test_flags_arrive_exactly(script, batch):
    assert script.call("flags", batch) == [expected_flags(arguments) for arguments in batch]


@SLOW
@given(batch=BATCHES)
def test_places_arrive_exactly(script, batch):
    for seen, arguments in zip(script.call("positional", batch), batch, strict=True):
        words = ["" if arguments.get(name) is None else as_word(arguments[name]) for name in PROPERTIES]
        assert seen == words[: len(seen)]
        assert all(arguments.get(name) is None for name in list(PROPERTIES)[len(seen) :])


@SLOW
@given(
    batch=st.lists(
        st.dictionaries(
            TEXT, st.recursive(TEXT | NUMBERS | st.booleans() | st.none(), LISTS, max_leaves=8), max_size=6
        ),
        max_size=8,
    )
)
def test_json_arrives_exactly(script, batch):
    batch = [{key: value for key, value in arguments.items() if key not in PROPERTIES} for arguments in batch]
    assert [json.loads(text) for text in script.call("json", batch)] == batch
