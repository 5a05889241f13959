"""What the script receives is what the model sent, in all three modes, for any Unicode."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
BATCHES = st.lists(ARGUMENTS, min_size=1, max_size=8)
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def call_batch(folder: Path, mode: str, batch: list[dict]) -> list[list[str] | str]:
    """The words, or the standard input, that a script saw for each arguments."""

    printed: dict[str, str] = defaultdict(str)  # what a model reads has no NUL in it; what is streamed is exact

    def hear(event: Event) -> None:
        if isinstance(event, OutputChunk):
            printed[event.call_id] += event.text

    async def run() -> list[str]:
        yard = Yard(folder)
        places = [{"name": name} for name in PROPERTIES]
        yard.tool(properties=PROPERTIES, args_mode=mode, positional=places, run="cat" if mode == "json" else WORDS)
        async with yard.app("bash:probe.bash") as app:
            calls = [ToolCall(id=str(n), name="probe", arguments=arguments) for n, arguments in enumerate(batch)]
            results = await app.call_tools(calls, on_event=hear)
        assert all(result.ok for result in results.values()), results
        return [printed[call.id] for call in calls]

    texts = asyncio.run(run())
    return texts if mode == "json" else [text.split("\0")[:-1] for text in texts]


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passing")


@SLOW
@given(batch=BATCHES)
def test_flags_arrive_exactly(folder, batch):
    assert call_batch(folder, "flags", batch) == [expected_flags(arguments) for arguments in batch]


@SLOW
@given(batch=BATCHES)
def test_places_arrive_exactly(folder, batch):
    for seen, arguments in zip(call_batch(folder, "positional", batch), batch, strict=True):
        words = ["" if arguments.get(name) is None else as_word(arguments[name]) for name in PROPERTIES]
        assert seen == words[: len(seen)]
        assert all(arguments.get(name) is None for name in list(PROPERTIES)[len(seen) :])


@SLOW
@given(
    batch=st.lists(
        st.dictionaries(TEXT, st.recursive(TEXT | NUMBERS | st.booleans() | st.none(), st.lists)), max_size=8
    )
)
def test_json_arrives_exactly(folder, batch):
    batch = [{key: value for key, value in arguments.items() if key not in PROPERTIES} for arguments in batch]
    assert [json.loads(text) for text in call_batch(folder, "json", batch)] == batch
