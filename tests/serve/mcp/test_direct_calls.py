"""Plain calls over HTTP are answered directly; whatever is unusual about a request takes the SDK's way, and agrees."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx2
import pytest

from mcp_serving import TOKEN, serving
from support import PATIENCE
from toolyard import tool
from toolyard.serve.mcp.http import direct_calls, guard

pytestmark = pytest.mark.anyio
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "add",
}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    time.sleep(0.1 if a < 0 else 0)
    return a + b


def body(**params: Any) -> dict[str, Any]:
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": ENVELOPE, **params}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def without_server(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "_meta"}


def message_of(answer: httpx2.Response) -> dict[str, Any]:
    """The one that ends a response, which may be a stream of events."""
    return json.loads(answer.text.strip().rpartition("data: ")[2])


@pytest.fixture
def directly(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request was answered directly."""
    found: list[bool] = []

    def looked_at(*request: Any) -> Any:
        message = direct_calls.plain_call(*request)
        found.append(message is not None)
        return message

    monkeypatch.setattr(guard, "plain_call", looked_at)
    return found


@pytest.mark.parametrize(
    ("headers", "meta", "direct", "status"),
    [
        ({}, {}, True, 200),
        ({"Content-Type": "application/json; charset=utf-8"}, {}, False, 200),
        ({}, {"progressToken": 1}, False, 200),
        ({"Mcp-Name": "other"}, {}, False, 400),
        ({"Mcp-Method": "tools/list"}, {}, False, 400),
        ({}, {"io.modelcontextprotocol/protocolVersion": "2026-01-01"}, False, 400),
        ({}, {"io.modelcontextprotocol/clientCapabilities": 1}, False, 400),
        ({"Accept": "application/json"}, {}, False, 406),
    ],
)
async def test_both_ways_have_the_same_answer(yard, directly, headers, meta, direct, status):
    async with (
        serving(yard.config(), yard.folder, tools=[add]) as address,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):
        sent = {**HEADERS, **headers}
        answer = await http.post(address.url, json=body(_meta={**ENVELOPE, **meta}), headers=sent)
    assert (directly, answer.status_code) == ([direct], status)
    if status == 200:
        found = message_of(answer)
        result = found["result"]
        content = [{"type": "text", "text": "3"}]
        assert without_server(result) == {"resultType": "complete", "content": content, "isError": False}
        assert found["id"] == 7


async def test_what_has_not_the_form_of_a_call_is_refused(yard, directly):
    async with (
        serving(yard.config(), yard.folder, tools=[add]) as address,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):
        answer = await http.post(address.url, json=body(arguments=[1]), headers=HEADERS)
        unknown = await http.post(address.url, json=body(requestState="x"), headers=HEADERS)
    assert directly == [True, True]
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert "not open any more" in unknown.json()["error"]["message"]


async def test_a_call_that_takes_long_shows_that_it_goes_on(yard, monkeypatch):
    monkeypatch.setattr(direct_calls, "WATCHED_AFTER", 0)
    monkeypatch.setattr(direct_calls, "SIGN_OF_LIFE", 0.01)
    async with (
        serving(yard.config(), yard.folder, tools=[add]) as address,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):
        answer = await http.post(address.url, json=body(arguments={"a": -1, "b": 2}), headers=HEADERS)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text.startswith(": ping\r\n\r\n")
    assert message_of(answer)["result"]["content"] == [{"type": "text", "text": "1"}]
