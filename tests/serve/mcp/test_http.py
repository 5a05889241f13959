"""MCP over HTTP: the same tools for many clients, and who is not let in."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ElicitResult

from mcp_serving import TOKEN, serving
from support import PATIENCE
from toolyard import tool
from toolyard.serve.mcp.http.listening import Address

pytestmark = pytest.mark.anyio
MODES = ("auto", "legacy")
SUITE = Path(__file__).parents[2] / "mcp_servers" / "suite_server.py"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@asynccontextmanager
async def client_of(address: Address, mode: str = "auto", path: str = "", **options: Any) -> AsyncIterator[Client]:
    async with (
        create_mcp_http_client(headers=HEADERS) as http,
        Client(streamable_http_client(address.url + path, http_client=http), mode=mode, **options) as client,
    ):
        yield client


async def text(client: Client, command: str, **arguments: Any) -> str:
    result = await client.call_tool("bash", {"command": command, **arguments}, read_timeout_seconds=PATIENCE)
    return result.content[0].text


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_of_the_sdk_lists_and_calls(yard, mode):
    async with serving(yard.config("shell:session"), yard.folder, tools=[add]) as address:
        told: list[str] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        async with client_of(address, mode) as client:
            assert [one.name for one in (await client.list_tools()).tools] == ["bash", "bash_job", "add"]
            assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
            await client.call_tool("bash", {"command": "echo partial"}, progress_callback=hear)
            assert (await client.call_tool("add", {"a": "x"})).is_error
    assert "partial\n" in "".join(told)


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_reaches_the_person_at_the_client(yard, mode):
    async def allow(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "once"})

    asked: list[str] = []
    async with serving(yard.config("shell:session"), yard.folder) as address:
        async with client_of(address, mode, elicitation_callback=allow) as client:
            assert await text(client, "echo out", reach="outside", reason="to see") == "out\n"
        async with client_of(address, mode) as client:
            assert "cannot ask its user" in await text(client, "touch it", reach="outside", reason="to see")
    assert "echo out" in asked[0]
    assert len(asked) == 1
    assert not Path("it").exists()


@pytest.mark.parametrize("mode", MODES)
async def test_each_client_has_a_bash_of_its_own(yard, mode):
    async with (
        serving(yard.config("shell:session"), yard.folder) as address,
        client_of(address, mode) as one,
        client_of(address, mode) as other,
    ):
        await text(one, "X=1; cd /")
        await text(other, "X=2")
        assert await text(one, "echo $X; pwd") == "1\n/\n"
        assert await text(other, "echo $X; pwd") == f"2\n{yard.folder}\n"


async def test_a_conversation_outlives_the_connections_of_a_client_with_cookies(yard):
    """Clients close connections that they do not need for a while."""
    async with serving(yard.config("shell:session"), yard.folder) as address:
        cookies = httpx2.Cookies()
        async with httpx2.AsyncClient(cookies=cookies) as http:
            await call(http, address, "X=kept")
            cookies = http.cookies
        async with httpx2.AsyncClient(cookies=cookies) as http:
            assert await call(http, address, "echo $X") == "kept\n"
        async with httpx2.AsyncClient() as http:
            assert await call(http, address, "echo $X") == "\n"
        async with httpx2.AsyncClient(headers={"X-Forwarded-For": "10.0.0.1"}) as http:
            await call(http, address, "X=behind a proxy")
            http.cookies.clear()
            assert await call(http, address, "echo $X") == "\n"


async def test_a_stateless_client_reaches_no_conversation_by_naming_it(yard):
    async with serving(yard.config("shell:session"), yard.folder) as address:
        for _ in range(2):
            async with httpx2.AsyncClient(headers={"Mcp-Session-Id": "chosen"}) as http:
                assert await call(http, address, "echo $X; X=shared") == "\n"


async def call(http: httpx2.AsyncClient, address: Address, command: str) -> str:
    answer = await post(http, address, "tools/call", {"name": "bash", "arguments": {"command": command}})
    return answer.json()["result"]["content"][0]["text"]


async def post(
    http: httpx2.AsyncClient, address: Address, method: str, params: dict[str, Any], **headers: str
) -> httpx2.Response:
    """A request of the newer era, as bytes on the wire."""
    routing = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    routing |= {"Mcp-Name": params["name"]} if "name" in params else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": ENVELOPE}}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return await http.post(address.url, json=body, headers={**HEADERS, **routing, **given}, timeout=PATIENCE)


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_client_left_running_ends_with_its_conversation(yard, mode):
    os.mkfifo("ended")
    async with serving(yard.config("shell:session"), yard.folder, kept_after_close=0.05) as address:
        async with client_of(address, mode) as client:
            await text(client, "(echo started; exec sleep 1000) > ended &")
            ended = await asyncio.to_thread(open, "ended")
            assert await asyncio.to_thread(ended.readline) == "started\n"
            assert await text(client, "jobs -r | wc -l") == "1\n"
        with ended:
            async with asyncio.timeout(PATIENCE):
                assert await asyncio.to_thread(ended.read) == ""  # nobody holds it any more


async def test_a_closed_request_ends_its_call(yard):
    os.mkfifo("ended")
    async with serving(yard.config("shell:session"), yard.folder) as address, httpx2.AsyncClient() as http:
        calling = asyncio.create_task(call(http, address, "(echo started; exec sleep 1000) > ended"))
        with await asyncio.to_thread(open, "ended") as ended:
            assert await asyncio.to_thread(ended.readline) == "started\n"
            calling.cancel()
            async with asyncio.timeout(PATIENCE):
                assert await asyncio.to_thread(ended.read) == ""


@pytest.mark.parametrize("mode", MODES)
async def test_clients_hear_that_a_tool_changed(yard, mode):
    yard.tool("one", properties={"a": {"type": "string"}})
    heard = asyncio.Event()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with (
        serving(yard.config("bash:./one.bash"), yard.folder) as address,
        client_of(address, mode, message_handler=hear) as client,
    ):
        await client.list_tools()
        if mode == "auto":
            async with client.listen(tools_list_changed=True) as changes:
                yard.tool("one", properties={"b": {"type": "string"}})
                async with asyncio.timeout(PATIENCE):
                    await anext(aiter(changes))
        else:
            yard.tool("one", properties={"b": {"type": "string"}})
            async with asyncio.timeout(PATIENCE):
                await heard.wait()
        [tool] = (await client.list_tools()).tools
    assert list(tool.input_schema["properties"]) == ["b"]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", MODES)
async def test_clients_hear_that_a_resource_changed(yard, mode):
    uri, changed, heard = "test://static-text", "test_trigger_resource_change", asyncio.Event()
    source = {"mcp": {"command": [sys.executable, str(SUITE), "handshake"], "name": "suite"}}

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            heard.set()

    async with (
        serving(yard.config(source), yard.folder) as address,
        client_of(address, mode, message_handler=hear) as client,
    ):
        async with asyncio.timeout(PATIENCE):
            if mode == "auto":
                async with client.listen(resource_subscriptions=[uri]) as changes:
                    await client.call_tool(changed, {"uri": uri})
                    assert (await anext(aiter(changes))).uri == uri
                await until_not_followed(client, changed, uri)
            else:
                await client.subscribe_resource(uri)
                await client.call_tool(changed, {"uri": uri})
                await heard.wait()
                await client.unsubscribe_resource(uri)
                await until_not_followed(client, changed, uri)


async def until_not_followed(client: Client, tool: str, uri: str) -> None:
    """Wait until the server behind ours knows that nobody wants to hear of a resource."""
    while uri in (await client.call_tool(tool, {"uri": uri})).content[0].text:
        await asyncio.sleep(0.05)


async def test_each_agent_has_a_path(yard):
    config = {"agents": {"a": {"plugins": ["shell:command"]}, "b": {"plugins": ["shell:session"]}}}
    async with serving(config, yard.folder) as address:
        for path, names in (("", ["shell"]), ("/a", ["shell"]), ("/b", ["bash", "bash_job"])):
            async with client_of(address, path=path) as client:
                assert [one.name for one in (await client.list_tools()).tools] == names
        async with httpx2.AsyncClient() as http:
            answer = await http.post(f"{address.url}/c", headers=HEADERS)
            assert (answer.status_code, "a, b" in answer.text) == (404, True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "10.0.0.1"}, 421),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "http://localhost:80.evil.example"}, 403),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
    ],
)
async def test_only_who_is_meant_gets_in(yard, headers, status):
    async with serving(yard.config("shell:command"), yard.folder) as address, httpx2.AsyncClient() as http:
        answer = await post(http, address, "tools/list", {}, **headers)
        assert answer.status_code == status, answer.text


async def test_nobody_listens_to_others_without_a_token(yard, toolyard):
    with pytest.raises(ValueError, match="needs a token"):
        async with serving(yard.config("shell:command"), yard.folder, address=Address(host="0.0.0.0")):
            pass
    ran = toolyard("serve", "--mcp", "http", "--host", "0.0.0.0", "--no-token")
    assert ran.code == 2
    assert "--no-token" in ran.err


async def test_a_server_on_all_addresses_takes_addresses_and_its_own_names(yard):
    address = Address(host="0.0.0.0", token=TOKEN, names=("tools.example",))
    async with (
        serving(yard.config("shell:command"), yard.folder, address=address) as found,
        httpx2.AsyncClient() as http,
    ):
        for host, status in (("10.1.2.3:80", 200), ("tools.example", 200), ("evil.example", 421)):
            assert (await post(http, found, "tools/list", {}, Host=host)).status_code == status


async def test_a_request_that_is_too_large_or_too_slow_is_refused(yard, monkeypatch):
    monkeypatch.setattr("toolyard.serve.mcp.http.guard.BODY_WITHIN", 0.2)
    async with serving(yard.config("shell:command"), yard.folder) as address, httpx2.AsyncClient() as http:
        large = await http.post(address.url, content=b"x" * (5 << 20), headers=HEADERS)
        assert large.status_code == 413
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        fields = {"Host": "localhost", "Content-Length": "100", **HEADERS}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"POST /mcp HTTP/1.1\r\n{lines}\r\n{{".encode())
        async with asyncio.timeout(PATIENCE):
            assert (await reader.read()).startswith(b"HTTP/1.1 408")
        writer.close()
        assert (await post(http, address, "tools/list", {})).status_code == 200


async def test_a_connection_that_says_nothing_is_closed(yard, monkeypatch):
    monkeypatch.setattr("toolyard.serve.mcp.http.connections.HEADERS_WITHIN", 0.2)
    async with serving(yard.config("shell:command"), yard.folder) as address:
        for start in (b"", b"POST /mcp HTTP/1.1\r\nHost:"):
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(start)
            async with asyncio.timeout(PATIENCE):
                assert await reader.read() == b""
            writer.close()


NO_REQUESTS = (b"", b"{", b"[]", b"null", b'{"id": 1}', b'{"jsonrpc":"2.0","id":1,"method":5}', b"\xff")


@pytest.mark.parametrize("version", [None, "2026-07-28", "2025-06-18", "nonsense"])
async def test_what_is_no_request_is_refused(yard, version):
    headers = {**HEADERS, "Content-Type": "application/json", **({"MCP-Protocol-Version": version} if version else {})}
    async with serving(yard.config("shell:command"), yard.folder) as address, httpx2.AsyncClient() as http:
        for body in NO_REQUESTS:
            answer = await http.post(address.url, content=body, headers=headers)
            assert 400 <= answer.status_code < 500, (body, answer.text)
        assert (await post(http, address, "tools/list", {})).status_code == 200


async def test_more_conversations_than_the_limit_are_refused_in_words(yard, monkeypatch):
    monkeypatch.setattr("toolyard.serve.mcp.http.conversations.MOST_CONVERSATIONS", 1)
    params = {"name": "add", "arguments": {"a": 1, "b": 2}}
    async with (
        serving(yard.config("shell:command"), yard.folder, tools=[add]) as address,
        httpx2.AsyncClient() as one,
        httpx2.AsyncClient() as other,
    ):
        assert "result" in (await post(one, address, "tools/call", params)).json()
        refused = (await post(other, address, "tools/call", params)).json()
        assert "conversations are open already" in json.dumps(refused)
        assert "result" in (await post(one, address, "tools/call", params)).json()
