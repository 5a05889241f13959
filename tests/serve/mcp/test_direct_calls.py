"""Plain calls over HTTP are answered directly; whatever is unusual about a request takes the long way, and agrees."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import httpx2
import pytest

from mcp_serving import TOKEN, serving
from support import PATIENCE
from toolyard import tool
from toolyard.serve.mcp.http import connections, direct_calls
from toolyard.serve.mcp.http.plain_requests import plain_head

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

    class SeenCall(direct_calls.DirectCall):
        def begin(self, *given: Any) -> None:
            found.append(True)
            super().begin(*given)

    leave = connections.BoundedConnection.leave_to_h11

    def left(connection: Any, data: bytes) -> None:
        if data.startswith(b"POST"):
            found.append(False)
        leave(connection, data)

    monkeypatch.setattr(connections, "DirectCall", SeenCall)
    monkeypatch.setattr(connections.BoundedConnection, "leave_to_h11", left)
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
        ({"Connection": "keep-alive"}, {}, True, 200),
        ({"Connection": "close"}, {}, False, 200),
        ({"Authorization": "Bearer wrong"}, {}, False, 401),
        ({"Host": "evil.example"}, {}, False, 421),
        ({"Origin": "https://evil.example"}, {}, False, 403),
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
    monkeypatch.setattr(direct_calls, "SIGN_OF_LIFE", 0.01)
    async with (
        serving(yard.config(), yard.folder, tools=[add]) as address,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):
        answer = await http.post(address.url, json=body(arguments={"a": -1, "b": 2}), headers=HEADERS)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text.startswith(": ping\r\n\r\n")
    assert message_of(answer)["result"]["content"] == [{"type": "text", "text": "1"}]


HEAD = {**HEADERS, "Host": "localhost", "Content-Length": "2"}


def request(headers: dict[str, str], content: bytes, first: str = "POST /mcp HTTP/1.1", end: str = "\r\n") -> bytes:
    return end.join([first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode() + content


def test_a_usual_head_is_read():
    found = plain_head(request(HEAD, b"{}"))
    assert found is not None
    assert (found.path, found.headers["mcp-name"], found.ends - found.begins) == ("/mcp", "add", 2)
    assert found.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"POST /mcp HTTP/1.1\r\n",
        request(HEAD, b"{}", end="\n"),
        request(HEAD, b"{}", first="POST /mcp HTTP/1.0"),
        request(HEAD, b"{}", first="PUT /mcp HTTP/1.1"),
        request(HEAD, b"{}", first="POST  /mcp HTTP/1.1"),
        request(HEAD, b"{}", first="POST /mcp%2fa HTTP/1.1"),
        request(HEAD, b"{}", first="POST http://localhost/mcp HTTP/1.1"),
        request(HEAD, b"{}", first="POST /mcp?x HTTP/1.1"),
        request({**HEAD, "content-length": "3"}, b"{}"),
        request({**HEAD, "mcp-name": "other"}, b"{}"),
        request({**HEAD, "host": "localhost"}, b"{}"),
        *(
            request({**HEAD, "Content-Length": length}, b"{}")
            for length in ("", "+2", "-2", "2,2", "0x2", "2 2", "\u0662", "99999999", "999999999")
        ),
        *(
            request({**HEAD, name: value}, b"{}")
            for name, value in [
                ("Transfer-Encoding", "chunked"),
                ("Content-Encoding", "gzip"),
                ("Expect", "100-continue"),
                ("Upgrade", "h2c"),
                ("Connection", "close"),
                ("Connection", "keep-alive, upgrade"),
                ("Mcp-Param-A", "1"),
                ("X", "a\r\n b"),
                ("X", "a\rb"),
                ("X", "a\nTransfer-Encoding: chunked"),
                ("X", "a\0b"),
                ("X", "\u00e9"),
                ("X ", "a"),
                ("X", ""),
                ("X", " two spaces"),
                ("X", "at the end "),
                ("X", "\tx"),
                ("X", "y" * 20_000),
            ]
        ),
    ],
)
def test_a_head_that_has_any_other_form_is_left_to_h11(data):
    assert plain_head(data) is None


async def exchange(port: int, *pieces: bytes, answers: int) -> list[tuple[int, Any]]:
    """Send bytes piece by piece on one connection, and read so many answers with their status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = []
    async with asyncio.timeout(PATIENCE):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        for _ in range(answers):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
            content = await reader.readexactly(length)
            found.append((int(head.split()[1]), json.loads(content) if content.startswith(b"{") else content))
    writer.close()
    return found


def call_bytes(a: int, **headers: str) -> bytes:
    content = json.dumps({**body(arguments={"a": a, "b": 2}), "id": a}).encode()
    return request({**HEAD, "Content-Length": str(len(content)), **headers}, content)


def texts(answers: list[tuple[int, Any]]) -> list[tuple[int, int, str]]:
    return [(status, one["id"], one["result"]["content"][0]["text"]) for status, one in answers]


async def test_a_request_may_come_in_pieces(yard, directly):
    async with serving(yard.config(), yard.folder, tools=[add]) as address:
        whole = call_bytes(1)
        middle = whole.index(b"\r\n\r\n") + 4
        for pieces in ([whole[:middle], whole[middle:]], [whole[:-5], whole[-5:]], [whole[:30], whole[30:]]):
            assert texts(await exchange(address.port, *pieces, answers=1)) == [(200, 1, "3")]
    assert directly == [True, True, False], "a head in pieces is h11's"


async def test_requests_that_do_not_wait_for_answers_are_answered_in_their_order(yard, directly):
    async with serving(yard.config(), yard.folder, tools=[add]) as address:
        answers = await exchange(
            address.port, call_bytes(-1) + call_bytes(2), call_bytes(3, Connection="keep-alive"), answers=3
        )
        assert texts(answers) == [(200, -1, "1"), (200, 2, "4"), (200, 3, "5")]
    assert directly == [True, True, True]


async def test_only_the_very_same_head_is_let_in_without_a_look(yard, directly):
    """The content may be another, and so may all that stands in the head, in which case it is looked at."""
    wrong = {"Authorization": "Bearer wrong"}
    async with serving(yard.config(), yard.folder, tools=[add]) as address:
        answers = await exchange(address.port, call_bytes(1), call_bytes(2), call_bytes(10), answers=3)
        refused = await exchange(address.port, call_bytes(1), call_bytes(1, **wrong), answers=2)
        unknown = request({**HEAD, "Content-Length": "2"}, b"{}", first="POST /mcp/nobody HTTP/1.1")
        elsewhere = await exchange(address.port, call_bytes(1), unknown, answers=2)
    assert texts(answers) == [(200, 1, "3"), (200, 2, "4"), (200, 10, "12")]
    assert [status for status, _ in refused] == [200, 401]
    assert [status for status, _ in elsewhere] == [200, 404]
    assert directly == [True, True, True, True, False, True, False]


async def test_both_ways_take_turns_on_one_connection(yard, directly):
    """A body that follows its refusal is no request, whatever it looks like."""
    other = call_bytes(2, **{"Content-Type": "application/json; charset=utf-8"})
    async with serving(yard.config(), yard.folder, tools=[add]) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        async with asyncio.timeout(PATIENCE):
            for data in (call_bytes(1), other, call_bytes(3)):
                writer.write(data)
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                if b"content-length" in head.lower():
                    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
                else:
                    await reader.readuntil(b"0\r\n\r\n")
        assert directly == [True, False, True]
        refused = request({**HEAD, "Authorization": "Bearer wrong", "Content-Length": "100000"}, b"")
        writer.write(refused)
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401")
            writer.write(call_bytes(5).ljust(100_000))
            writer.write(call_bytes(6))
            answer = await reader.readuntil(b'"isError":false')
        writer.close()
    assert b'"id":6' in answer
    assert b'"id":5' not in answer


async def test_a_server_that_ends_lets_a_plain_call_finish(yard):
    begun = threading.Event()

    @tool
    def slow(a: int, b: int) -> int:
        """Take a moment."""
        begun.set()
        time.sleep(0.2)
        return a + b

    async with serving(yard.config(), yard.folder, tools=[slow]) as address:
        content = json.dumps(body(name="slow")).encode()
        sent = request({**HEAD, "Mcp-Name": "slow", "Content-Length": str(len(content))}, content)
        calling = asyncio.create_task(exchange(address.port, sent, answers=1))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
    assert texts(await calling) == [(200, 7, "3")]
