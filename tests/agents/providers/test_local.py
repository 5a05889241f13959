"""A genuine model, small as it is, answers and calls tools on this machine."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from contextlib import aclosing

import pytest

from provider_bench import bundled, told, user
from support import PATIENCE
from toolyard.core.conversation import CallAnswer, ToolMessage
from toolyard.core.model import ModelRequest, TextDelta
from toolyard.core.tool import JsonInput, ToolSpec
from toolyard.errors import ProviderError

pytestmark = pytest.mark.anyio
BASH = ToolSpec(
    name="bash",
    description="Run a command in a live bash session. Variables stay.",
    input=JsonInput(
        schema={
            "type": "object",
            "properties": {"command": {"type": "string"}, "restart": {"type": "boolean"}},
            "required": ["command"],
        }
    ),
)
COUNT = ToolSpec(
    name="count_words",
    description="Count the words of a text.",
    input=JsonInput(schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
)


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def model():
    provider = bundled("local")
    yield provider
    await provider.aclose()


def request(*messages, **rest):
    return ModelRequest(
        model="local", messages=[user(each) if isinstance(each, str) else each for each in messages], **rest
    )


async def test_asked_for_files_it_lists_them(model):
    _, answer = await told(model, request("List the files in the current directory.", tools=[BASH, COUNT]))
    assert answer.stop == "tool_calls"
    (call,) = answer.calls
    assert call.name == "bash"
    assert "ls" in json.loads(call.arguments)["command"]
    assert answer.usage.output > 0
    assert answer.usage.cost == 0
    result = ToolMessage(answers=(CallAnswer(call_id=call.id, name="bash", text="hello.py\nmain.py"),))
    _, last = await told(model, request("List the files in the current directory.", answer, result, tools=[BASH]))
    assert (last.stop, last.calls) == ("answer", ())
    assert last.text


async def test_without_tools_it_writes_as_it_likes_while_one_watches(model):
    events, answer = await told(model, request("Tell me a story.", options={"max_tokens": 20}))
    assert len([event for event in events if isinstance(event, TextDelta)]) > 3
    assert answer.stop == "length"


async def test_it_is_held_to_a_schema(model):
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    _, answer = await told(model, request("What is 2 + 2?", schema=schema, tools=[BASH]))
    assert isinstance(json.loads(answer.text)["number"], int)


async def test_it_can_be_told_to_answer_without_tools(model):
    _, answer = await told(model, request("List the files here.", tools=[BASH], may_call=False))
    assert answer.calls == ()


async def test_it_stops_when_it_is_left_and_is_ready_for_the_next(model):
    async with asyncio.timeout(PATIENCE):
        async with aclosing(model.stream(request("Tell me a long story.", options={"max_tokens": 100000}))) as events:
            await anext(events)
        _, answer = await told(model, request("Hello!", options={"max_tokens": 5}))
        assert answer.usage.output <= 5


async def test_a_long_conversation_is_cut_to_what_it_can_read(model):
    _, answer = await told(model, request("word " * 20000, "Hello!", tools=[BASH], options={"max_tokens": 5}))
    assert answer.usage.input < 2000


async def test_a_file_that_is_no_model_is_said(model, tmp_path):
    (tmp_path / "no.gguf").write_text("no model")
    for name, says in (("missing.gguf", "names no file"), ("no.gguf", "cannot be loaded")):
        with pytest.raises(ProviderError, match=says) as raised:
            await told(model, request("Hi", config={"model_file": str(tmp_path / name)}))
        assert raised.value.fault == "setup"


async def test_the_port_of_the_engine_answers_nobody_else(model):
    await told(model, request("Hello!", options={"max_tokens": 2}))
    address = model._engine.listening_address
    assert address.startswith("http://127.0.0.1:")
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()
    for path in ("/v1/chat/completions", "/completion", "/v1/messages"):
        asked = urllib.request.Request(f"{address}{path}", data=body, headers={"content-type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as raised:
            await asyncio.to_thread(urllib.request.urlopen, asked, timeout=30)
        assert raised.value.code == 401
        raised.value.close()
