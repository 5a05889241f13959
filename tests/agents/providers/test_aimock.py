"""The providers against a fake of the services that others wrote: the same conversation over every API."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from aimock import aimock
from provider_bench import LIST_FILES, WIRES, Wire, bundled, told, user
from toolyard.core.conversation import CallAnswer, ToolMessage
from toolyard.core.model import ModelRequest, TextDelta, ThinkingDelta, Waiting

pytestmark = pytest.mark.anyio
each_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "input_tokens": 11, "output_tokens": 7}
CALLS = [
    {"name": "list_files", "arguments": '{"path": "src"}'},
    {"name": "list_files", "arguments": '{"path": "tests"}'},
]
LONG = "A long answer, in many pieces, which goes on for a while and then for a little longer, until it ends. " * 3
FIXTURES = [
    {"match": {"userMessage": "hello"}, "response": {"content": LONG, "reasoning": "Let me think.", "usage": USAGE}},
    {"match": {"userMessage": "list", "hasToolResult": True}, "response": {"content": "There are two."}},
    {"match": {"userMessage": "list", "hasToolResult": False}, "response": {"toolCalls": CALLS}},
    {
        "match": {"userMessage": "busy", "sequenceIndex": 0},
        "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
    },
    {"match": {"userMessage": "busy"}, "response": {"content": "Now."}},
    {"match": {"userMessage": "cut", "sequenceIndex": 0}, "response": {"content": LONG}, "truncateAfterChunks": 3},
    {"match": {"userMessage": "cut"}, "response": {"content": LONG}},
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as origin:
        yield origin


@pytest.fixture
async def ask(service, wire: Wire, request):
    """Asks with a name of the test's own, so that counts of requests are not those of others."""
    provider = bundled(wire.provider)
    headers = {"x-test-id": request.node.name}
    config = {"api_key": "k", "base_url": f"{service}{wire.base}", "headers": headers, **wire.config}

    async def asked(*messages, **rest):
        model = "claude-sonnet-4-5" if wire.name == "anthropic" else "gpt-5-mini"
        return await told(provider, ModelRequest(model=model, messages=messages, config=config, **rest))

    yield asked
    await provider.aclose()


@each_wire
async def test_words_thinking_and_usage(ask):
    events, answer = await ask(user("hello"), system="Be brief.", session="s1")
    assert answer.text == LONG
    assert len([event for event in events if isinstance(event, TextDelta)]) > 5
    assert answer.thinking == "Let me think."
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == answer.thinking
    assert (answer.usage.input, answer.usage.output) == (11, 7)
    assert answer.usage.cost is not None


@each_wire
async def test_parallel_calls_and_their_results(ask):
    _, answer = await ask(user("list"), tools=[LIST_FILES])
    assert answer.stop == "tool_calls"
    assert [json.loads(call.arguments) for call in answer.calls] == [{"path": "src"}, {"path": "tests"}]
    answers = tuple(CallAnswer(call_id=call.id, name=call.name, text="a.py") for call in answer.calls)
    _, last = await ask(user("list"), answer, ToolMessage(answers=answers), tools=[LIST_FILES])
    assert (last.text, last.stop) == ("There are two.", "answer")


@each_wire
@pytest.mark.parametrize(("word", "text"), [("busy", "Now."), ("cut", LONG)])
async def test_it_is_asked_again(ask, word, text):
    events, answer = await ask(user(word))
    (at,) = [number for number, event in enumerate(events) if isinstance(event, Waiting)]
    assert answer.text == text
    assert "".join(event.text for event in events[at:] if isinstance(event, TextDelta)) == text


def test_it_is_the_version_that_is_locked(service):
    with urllib.request.urlopen(f"{service}/__aimock/health", timeout=30) as answer:
        assert answer.status == 200
    lock = json.loads((Path(__file__).parents[2] / "npm" / "package-lock.json").read_text())
    wanted = lock["packages"]["node_modules/@copilotkit/aimock"]["version"]
    from aimock import PROGRAM

    assert json.loads((PROGRAM.parents[1] / "package.json").read_text())["version"] == wanted
