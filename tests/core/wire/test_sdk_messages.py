"""From a model's answer to calls, and from their results to what goes back: with the SDKs themselves, and raw JSON."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support import PATIENCE, ROOT
from toolyard import AgentApplication, tool
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.core.wire.sdk_messages import CallResults, tool_calls, tool_messages

pytestmark = pytest.mark.anyio


@tool
def greet(name: str) -> str:
    """Greet somebody by name."""
    return f"Hello, {name}!"


@tool(freeform=True)
def shout(text: str) -> str:
    """Say it in capitals."""
    return text.upper()


CLAUDE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "text", "text": "I will."},
        {"type": "tool_use", "id": "a", "name": "greet", "input": {"name": "Ada"}},
        {"type": "tool_use", "id": "b", "name": "shout", "input": {"input": "hey"}},
        {"type": "tool_use", "id": "c", "name": "greet", "input": {}},
    ],
}
CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "greet", "arguments": '{"name": "Ada"}'}},
                    {"id": "b", "type": "custom", "custom": {"name": "shout", "input": "hey"}},
                    {"id": "c", "type": "function", "function": {"name": "greet", "arguments": "{}"}},
                ],
            },
        }
    ],
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "greet", "arguments": '{"name": "Ada"}'},
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "b", "name": "shout", "input": "hey"},
        {"type": "function_call", "id": "fc_2", "call_id": "c", "name": "greet", "arguments": "{}"},
    ],
}
ANSWERS = {"anthropic": CLAUDE, "openai": CHAT, "responses": RESPONSE}
RESULTS = {
    "a": ToolResult(text="Hello, Ada!"),
    "b": ToolResult(text="HEY"),
    "c": ToolResult(text="name is missing", failure="invalid_arguments"),
}


def sdk_object(format: str) -> Any:
    """The answer as its SDK reads it. Importing one takes seconds, which those who only collect tests need not wait."""
    if format == "anthropic":
        from anthropic.types import Message

        return Message.model_validate(CLAUDE)
    if format == "responses":
        from openai.types.responses import Response

        return Response.model_validate(RESPONSE)
    from openai.types.chat import ChatCompletion

    return ChatCompletion.model_validate(CHAT)


def sdk_client(name: str) -> Any:
    """The class of a client, by the package and its name there."""
    package, _, kind = name.partition(".")
    return getattr(importlib.import_module(package), kind)


def as_pairs(calls: list[ToolCall]) -> list[tuple[str, str, Any]]:
    return [
        (call.id, call.name, json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments)
        for call in calls
    ]


@pytest.mark.parametrize("format", ANSWERS)
def test_calls_are_found_in_the_sdks_objects_and_in_their_json_alike(format):
    raw = ANSWERS[format]
    expected = [("a", "greet", {"name": "Ada"}), ("b", "shout", {"input": "hey"}), ("c", "greet", {})]
    answer = sdk_object(format)
    for spelling in (answer, raw, json.dumps(raw), json.dumps(raw).encode(), answer.model_dump()):
        assert as_pairs(tool_calls(spelling, format)) == expected


def test_parts_of_an_answer_do_as_well():
    chat = sdk_object("openai").choices[0].message
    expected = as_pairs(tool_calls(CHAT, "openai"))
    for part in (chat, chat.tool_calls, CHAT["choices"][0]["message"]):
        assert as_pairs(tool_calls(part, "openai")) == expected
    assert len(tool_calls(RESPONSE["output"], "responses")) == 3
    assert len(tool_calls(CLAUDE["content"], "anthropic")) == 3


@pytest.mark.parametrize(
    ("answer", "format"),
    [
        ({"role": "assistant", "content": "done"}, "openai"),
        ({"role": "assistant", "content": "done", "tool_calls": None}, "openai"),
        ({"choices": [{"message": {"role": "assistant", "content": "done"}}]}, "openai"),
        ({"role": "assistant", "content": "done"}, "anthropic"),
        ({"role": "assistant", "content": [{"type": "text", "text": "done"}]}, "anthropic"),
        ({"output": []}, "responses"),
    ],
)
def test_an_answer_without_calls_has_none(answer, format):
    assert tool_calls(answer, format) == []


@pytest.mark.parametrize(
    ("answer", "format"),
    [
        (CHAT, "anthropic"),
        (CHAT, "responses"),
        (CLAUDE["content"][0], "openai"),
        (None, "openai"),
        (3, "anthropic"),
    ],
)
def test_an_answer_of_another_format_is_a_mistake_and_not_one_without_calls(answer, format):
    with pytest.raises(TypeError, match=f"no answer of the format '{format}'"):
        tool_calls(answer, format)


@pytest.mark.parametrize(("given", "format"), [("anthropic", "openai"), ("openai", "responses")])
def test_an_object_of_another_sdk_is_a_mistake_and_not_one_without_calls(given, format):
    with pytest.raises(TypeError, match=f"no answer of the format '{format}'"):
        tool_calls(sdk_object(given), format)


def test_a_format_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="no format 'mcp' of messages"):
        tool_calls({}, "mcp")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no format 'mcp' of messages"):
        tool_messages({}, "mcp")  # type: ignore[arg-type]


def test_calls_of_a_server_that_gives_no_ids_get_some():
    call = {"type": "function", "function": {"name": "greet", "arguments": None}}
    found = tool_calls({"role": "assistant", "tool_calls": [{"id": "", **call}, call]}, "openai")
    assert [(one.id, one.arguments) for one in found] == [("call_1", "{}"), ("call_2", "{}")]


def test_results_go_back_in_the_form_of_each_api():
    answered = CallResults(RESULTS, tool_calls(RESPONSE, "responses"))
    assert tool_messages(answered, "openai") == [
        {"role": "tool", "tool_call_id": "a", "content": "Hello, Ada!"},
        {"role": "tool", "tool_call_id": "b", "content": "HEY"},
        {"role": "tool", "tool_call_id": "c", "content": "name is missing"},
    ]
    assert tool_messages(answered, "responses") == [
        {"type": "function_call_output", "call_id": "a", "output": "Hello, Ada!"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "HEY"},
        {"type": "function_call_output", "call_id": "c", "output": "name is missing"},
    ]
    (message,) = tool_messages(answered, "anthropic")
    assert message["role"] == "user"
    assert message["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "Hello, Ada!"},
        {"type": "tool_result", "tool_use_id": "b", "content": "HEY"},
        {"type": "tool_result", "tool_use_id": "c", "content": "name is missing", "is_error": True},
    ]
    assert [tool_messages({}, format) for format in ("openai", "responses", "anthropic")] == [[], [], []]
    assert tool_messages(RESULTS, "responses")[1]["type"] == "function_call_output", (
        "of a plain mapping no more is known"
    )


class ModelServer:
    """A server that asks for calls once, and then says that it is done; it keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body)
                text = json.dumps(server.answer(self.path, first=len(server.requests) == 1)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, path: str, *, first: bool) -> dict[str, Any]:
        if path.endswith("/messages"):
            return CLAUDE if first else CLAUDE | {"content": [{"type": "text", "text": "done"}]}
        if path.endswith("/chat/completions"):
            message = {"role": "assistant", "content": "done", "refusal": None}
            return CHAT if first else CHAT | {"choices": [CHAT["choices"][0] | {"message": message}]}
        text = {"type": "output_text", "text": "done", "annotations": []}
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
        return RESPONSE if first else RESPONSE | {"output": [item]}

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join(PATIENCE)
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.close()


def loops() -> Any:
    spec = importlib.util.spec_from_file_location("example_loops", ROOT / "examples" / "loops.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("loop", "client", "base"),
    [
        ("ask_claude", "anthropic.AsyncAnthropic", ""),
        ("ask_chat", "openai.AsyncOpenAI", "/v1"),
        ("ask_responses", "openai.AsyncOpenAI", "/v1"),
    ],
)
async def test_the_loop_of_each_sdk_calls_tools_and_tells_the_model(
    server: ModelServer, tmp_path: Path, loop, client, base
):
    async with (
        AgentApplication({}, tmp_path / "sessions", tools=[greet, shout]) as app,
        sdk_client(client)(api_key="none", base_url=server.url + base, max_retries=0) as model,
        asyncio.timeout(PATIENCE),
    ):
        assert await getattr(loops(), loop)(app, model, "m", "Greet Ada.") == "done"
    first, second = server.requests
    assert "greet" in json.dumps(first["tools"])
    sent = json.dumps(second)
    assert "Hello, Ada!" in sent
    assert "HEY" in sent
    assert "required property is missing" in sent
    if loop == "ask_responses":
        kinds = [item["type"] for item in second["input"]]
        assert kinds == ["function_call_output", "custom_tool_call_output", "function_call_output"]
