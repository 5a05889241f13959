"""One suite over every provider, and over some that break a promise, which it must notice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fake_model_server import Reply, Said, fake_model_server
from provider_bench import LIST_FILES, WIRES, bundled, own_connections, provider_bench, user
from support import ROOT
from toolyard.core.conversation import AssistantMessage, Usage
from toolyard.core.model import Answered, CallDelta, ModelRequest, TextDelta, Waiting
from toolyard.core.tool import ToolCall
from toolyard.plugins.author_code.import_space import ImportSpace
from toolyard.testing import check_provider

pytestmark = pytest.mark.anyio
WORDS = Said(text="Here you are.", thinking="Let me see.")
CALLS = Said(text="I look.", calls=(("c1", "list_files", '{"path": "."}'), ("c2", "list_files", '{"path": "/"}')))


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    own_connections(monkeypatch)


def ollama_reply(said: Said) -> Reply:
    calls = [{"function": {"name": name, "arguments": json.loads(text)}} for _, name, text in said.calls]
    lines = [
        {"message": {"role": "assistant", "content": "", "thinking": said.thinking}, "done": False},
        {"message": {"role": "assistant", "content": said.text, "tool_calls": calls}, "done": False},
        {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "eval_count": 3},
    ]
    body = tuple(json.dumps(line).encode() + b"\n" for line in lines)
    return Reply(events=body, content_type="application/x-ndjson")


@asynccontextmanager
async def over_the_wire(name: str, said: Said, _: Path) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    async with provider_bench(WIRES[name], WIRES[name].reply(said)) as bench:
        yield bench.provider, bench.config


@asynccontextmanager
async def example(_: str, said: Said, __: Path) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    space = ImportSpace([str(ROOT / "examples" / "ollama-provider")], ["ollama_provider.OllamaProvider"])
    async with fake_model_server(ollama_reply(said)) as server:
        yield space.load("ollama_provider").OllamaProvider(), {"base_url": server.origin}


@asynccontextmanager
async def replay(_: str, said: Said, folder: Path) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    calls = [{"id": id, "name": name, "arguments": text} for id, name, text in said.calls]
    stop = "tool_calls" if calls else "answer"
    line = json.dumps({"text": said.text, "thinking": said.thinking, "calls": calls, "stop": stop})
    (folder / "answers.jsonl").write_text(f"{line}\n" * 5)
    yield bundled("replay"), {"replay": str(folder / "answers.jsonl")}


@asynccontextmanager
async def local(_: str, __: Said, ___: Path) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    provider = bundled("local")
    yield provider, {}
    await provider.aclose()


PROVIDERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(WIRES, over_the_wire),
    "ollama-provider": example,
    "replay": replay,
    "local": local,
}


@pytest.mark.parametrize("said", [WORDS, CALLS], ids=["words", "calls"])
@pytest.mark.parametrize(("name", "opened"), PROVIDERS.items(), ids=PROVIDERS)
async def test_every_provider_keeps_its_promises(name, opened, said, tmp_path):
    async with opened(name, said, tmp_path) as (provider, config):
        request = ModelRequest(model="m", messages=[user("List the files here.")], tools=[LIST_FILES], config=config)
        assert await check_provider(provider, request) == []


GOOD = AssistantMessage(text="Yes.", stop="answer")
CALL = ToolCall(id="c1", name="list_files", arguments="{}")
BROKEN: dict[str, list[Any]] = {
    "the last event is Answered": [TextDelta(text="Yes.")],
    "Answered is told once": [Answered(message=GOOD), Answered(message=GOOD)],
    "the pieces of TextDelta are those of the answer": [TextDelta(text="No."), Answered(message=GOOD)],
    "every call of an answer has an id of its own": [
        Answered(message=AssistantMessage(calls=(CALL, CALL), stop="tool_calls"))
    ],
    "every piece of a call belongs to a call of the answer": [
        CallDelta(call_id="c9", name="x", text=""),
        Answered(message=GOOD),
    ],
    "the reason to stop is one of StopReason": [Answered(message=AssistantMessage(text="x", stop="because"))],
    "an answer with calls stops for them, and no other does": [
        Answered(message=AssistantMessage(text="x", calls=(CALL,)))
    ],
    "usage is not negative": [Answered(message=AssistantMessage(text="x", usage=Usage(input=-1)))],
    "an answer is the same after it was stored": [
        Answered(message=AssistantMessage(text="x", items=({"odd": {1, 2}},)))
    ],
    "every event is one of ModelEvent": ["hello", Answered(message=GOOD)],
    "a provider that cannot answer raises ProviderError, not KeyError": [KeyError("x")],
}


class Broken:
    """Tells what a test says."""

    id = "broken"

    def __init__(self, events: list[Any]) -> None:
        self._events = events

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            yield event


@pytest.mark.parametrize(("promise", "events"), BROKEN.items(), ids=BROKEN)
async def test_a_broken_promise_is_noticed(promise, events):
    assert await check_provider(Broken(events), ModelRequest(model="m", messages=[user("Hi")])) == [promise]


async def test_what_was_told_before_a_wait_does_not_count():
    events = [TextDelta(text="No."), Waiting(reason="x", seconds=0, attempt=1), Answered(message=GOOD)]
    assert await check_provider(Broken(events), ModelRequest(model="m", messages=[user("Hi")])) == []


async def test_a_provider_that_cannot_be_left_is_noticed():
    class Sulking(Broken):
        left = False

        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            if self.left:
                return
            try:
                yield TextDelta(text="Yes.")
                yield Answered(message=GOOD)
            except GeneratorExit:
                self.left = True
                raise

    broken = await check_provider(Sulking([]), ModelRequest(model="m", messages=[user("Hi")]))
    assert broken == ["a provider that was left in the middle of an answer can be asked again"]
