"""MCP over lines: what a client sees of tools, calls, questions and changes, in both protocol eras."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest

from mcp_peer import ERAS, connected
from toolyard import tool
from toolyard.core.content import AudioPart, ImagePart, LinkPart
from toolyard.core.tool import ToolResult
from toolyard.serve.mcp.line_wire import LONGEST_LINE

pytestmark = pytest.mark.anyio


@tool
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@tool
def all_parts() -> ToolResult:
    """Answer with everything that a result can hold."""
    parts = (
        ImagePart(media_type="image/png", data=base64.b64decode(PIXEL)),
        AudioPart(media_type="audio/wav", data=WAVE),
        LinkPart(uri="https://example.org/a", name="a"),
    )
    return ToolResult(text="words", attachments=parts)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
WAVE = b"RIFF" + bytes([36, 0, 0, 0]) + b"WAVEfmt " + bytes(20) + b"data" + bytes(4)


async def test_a_client_finds_the_tools_with_their_hints(connect):
    async with connect("shell:session", tools=[add]) as client:
        listed = {one["name"]: one for one in (await client.request("tools/list"))["tools"]}
    assert set(listed) == {"bash", "bash_job", "add"}
    assert listed["bash"]["annotations"] == {"destructiveHint": True}
    assert listed["add"]["inputSchema"]["required"] == ["a", "b"]


async def test_data_and_text_say_the_same(connect):
    async with connect("shell:session", tools=[add]) as client:
        answer = await client.call("add", a=1, b=2)
        assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"] == {"sum": 3}
        answer = await client.call("bash", command="echo hello")
        assert answer["content"] == [{"type": "text", "text": "hello\n"}]
        assert answer["structuredContent"]["text"] == "hello\n"
        assert answer["structuredContent"]["exitCode"] == 0


async def test_images_sound_and_links_arrive_whole(connect):
    async with connect(tools=[all_parts]) as client:
        text, image, sound, link = (await client.call("all_parts"))["content"]
    assert text == {"type": "text", "text": "words"}
    assert image == {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    assert (sound["type"], base64.b64decode(sound["data"])) == ("audio", WAVE)
    assert (link["type"], link["uri"], link["name"]) == ("resource_link", "https://example.org/a", "a")


async def test_wrong_arguments_and_names_are_answered_in_words(connect):
    async with connect(tools=[add]) as client:
        answer = await client.call("add", a=1, c=2)
        assert answer["isError"]
        assert "b: required property is missing" in answer["content"][0]["text"]
        answer = await client.call("ad", a=1, b=2)
        assert answer["isError"]
        assert "Did you mean 'add'?" in answer["content"][0]["text"]


async def test_output_is_told_while_a_call_runs(connect, yard):
    async with connect("shell:session") as client:
        os.mkfifo("go_on")
        id = client.begin(
            "tools/call",
            {
                "name": "bash",
                "arguments": {"command": "echo first; cat go_on; echo second"},
                "_meta": {"progressToken": "p"},
            },
        )
        async with asyncio.timeout(60):
            while "first\n" not in "".join(
                one["params"]["message"] for one in await client.heard("notifications/progress")
            ):
                await client.heard("notifications/progress", len(client.notifications) + 1)
        await asyncio.to_thread(Path("go_on").write_text, "")
        answer = (await client.answer(id))["result"]
    told = [one["params"] for one in client.notifications if one["method"] == "notifications/progress"]
    assert {one["progressToken"] for one in told} == {"p"}
    assert [one["progress"] for one in told] == sorted({one["progress"] for one in told})
    assert "".join(one["message"] for one in told).endswith("second\n")
    assert answer["content"][0]["text"] == "first\nsecond\n"


async def test_a_cancelled_call_ends_what_it_started_and_has_no_answer(connect, yard):
    async with connect("shell:session") as client:
        os.mkfifo("ended")
        command = "(echo started; exec sleep 1000) > ended"
        id = client.begin("tools/call", {"name": "bash", "arguments": {"command": command}})
        with await asyncio.to_thread(open, "ended") as ended:
            assert await asyncio.to_thread(ended.readline) == "started\n"
            client.send({"method": "notifications/cancelled", "params": {"requestId": id}})
            assert await asyncio.to_thread(ended.read) == ""  # nobody holds it any more
        assert (await client.call("bash", command="echo still there"))["content"][0]["text"] == "still there\n"
        assert not client.has_answer(id)


async def test_a_person_is_asked_with_all_that_an_answer_needs(connect):
    async with connect("shell:session") as client:
        client.answer_question = lambda _: {"action": "accept", "content": {"answer": "once"}}
        answer = await client.call("bash", command="echo out", reach="outside", reason="to see")
        assert answer["content"][0]["text"] == "out\n"
        [asked] = client.asked
        assert asked["mode"] == "form"
        for part in ("echo out", "reach outside", "to see", "always would save: echo out"):
            assert part in asked["message"]
        assert asked["requestedSchema"]["properties"]["answer"]["enum"] == ["once", "session", "always", "no"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"action": "decline"}, "refused by the client's user"),
        ({"action": "cancel"}, "closed the question"),
        ({"action": "accept", "content": {"answer": "no", "reason": "not today"}}, "not today"),
        ({"action": "accept", "content": {"answer": "yes, all of it"}}, "refused"),
        ({"action": "accept"}, "refused"),
        ("nonsense", "refused"),
    ],
)
async def test_anything_but_a_clear_yes_means_no(connect, reply, reason):
    async with connect("shell:session") as client:
        client.answer_question = lambda _: reply
        answer = await client.call("bash", command="touch outside", reach="outside", reason="to see")
        assert answer["isError"]
        assert reason in answer["content"][0]["text"]
        assert not Path("outside").exists()


async def test_a_yes_for_the_conversation_is_not_asked_again(connect):
    async with connect("shell:session") as client:
        client.answer_question = lambda _: {"action": "accept", "content": {"answer": "session"}}
        for _ in range(2):
            answer = await client.call("bash", command="echo out", reach="outside", reason="to see")
            assert answer["content"][0]["text"] == "out\n"
        assert len(client.asked) == 1


async def test_a_client_that_cannot_ask_gets_a_refusal_that_says_so(connect):
    async with connect("shell:session", capabilities={}) as client:
        answer = await client.call("bash", command="touch outside", reach="outside", reason="to see")
        assert answer["isError"]
        assert "cannot ask its user" in answer["content"][0]["text"]
        assert client.asked == []
        assert not Path("outside").exists()


async def test_the_time_that_a_person_takes_is_not_the_calls(connect):
    """The limit of the call is shorter than the answer takes."""
    async with connect("shell:session") as client:
        client.thinks_for = 0.6
        client.answer_question = lambda _: {"action": "accept", "content": {"answer": "once"}}
        answer = await client.call("bash", command="echo out", reach="outside", reason="x", timeout=0.5)
        assert len(client.asked) == 1
        assert answer["content"][0]["text"] == "out\n"


async def test_an_answer_counts_once_and_only_for_its_call(yard):
    async with connected(yard.config("shell:session"), yard.folder, "stateless") as client:
        params = {"name": "bash", "arguments": {"command": "touch a", "reach": "outside", "reason": "x"}}
        yes = {"allow": {"action": "accept", "content": {"answer": "once"}}}
        first = await client.request("tools/call", params)
        other = {"name": "bash", "arguments": {"command": "touch b", "reach": "outside", "reason": "x"}}
        error = await client.error(
            "tools/call", {**other, "requestState": first["requestState"], "inputResponses": yes}
        )
        assert "another call" in error["message"]
        error = await client.error(
            "tools/call", {**params, "requestState": first["requestState"], "inputResponses": yes}
        )
        assert "not open any more" in error["message"]
        error = await client.error("tools/call", {**params, "requestState": "guessed", "inputResponses": yes})
        assert "not open any more" in error["message"]
        assert not Path("a").exists()
        assert not Path("b").exists()


async def test_a_changed_tool_is_told_and_listed_anew(connect, yard):
    yard.tool("one", properties={"a": {"type": "string"}})
    async with connect("bash:./one.bash") as client:
        if client.era == "stateless":
            client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="changes")
            [acknowledged] = await client.heard("notifications/subscriptions/acknowledged")
            assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
        before = (await client.request("tools/list"))["tools"]
        yard.tool("one", properties={"b": {"type": "string"}})
        [told, *_] = await client.heard("notifications/tools/list_changed")
        if client.era == "stateless":
            assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "changes"}
        after = (await client.request("tools/list"))["tools"]
    assert [list(one[0]["inputSchema"]["properties"]) for one in (before, after)] == [["a"], ["b"]]


async def test_an_agent_is_chosen_by_name(yard):
    config = {"agents": {"a": {"plugins": ["shell:command"]}, "b": {"plugins": ["shell:session"]}}}
    for agent, names in (("a", {"shell"}), ("b", {"bash", "bash_job"})):
        async with connected(config, yard.folder, agent=agent) as client:
            assert {one["name"] for one in (await client.request("tools/list"))["tools"]} == names


async def test_what_is_no_request_is_answered_and_the_connection_goes_on(yard):
    async with connected(yard.config("shell:session"), yard.folder) as client:
        client.send(b"{no json")
        client.send(b"[1, 2]")
        client.send(b'"text"')
        client.send(b'{"jsonrpc": "2.0", "id": [], "method": "ping"}')
        client.send(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}')
        client.send(b'{"jsonrpc": "2.0", "id": 99, "result": {}}')
        client.send(b'{"text": "' + b"x" * (4 << 20) + b'"}')
        assert [one["error"]["code"] for one in await client.strays(5)] == [-32700, -32600, -32600, -32600, -32600]
        assert await client.request("ping") == {}
        assert (await client.error("resources/unknown"))["code"] == -32601
        assert (await client.error("tools/call", {"name": 5}))["code"] == -32602
        assert (await client.error("tools/call", {"name": "bash", "arguments": []}))["code"] == -32602


async def test_a_version_that_is_not_spoken_is_named(yard):
    async with connected(yard.config("shell:session"), yard.folder, "stateless") as client:
        meta = {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        error = await client.error("tools/list", {"_meta": meta})
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
        assert (await client.request("server/discover"))["supportedVersions"] == ["2026-07-28"]
    async with connected(yard.config("shell:session"), yard.folder, "handshake") as client:
        found = await client.request("initialize", {"protocolVersion": "1999-01-01", "capabilities": {}})
        assert found["protocolVersion"] == "2025-11-25"


TOO_LONG = '{"name": "add", "arguments": {"a": {"id": 5}, "b": "%s", "c": {"id": 6}}}' % ("x" * LONGEST_LINE)


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ('{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": %s}', 7),
        ('{"method":"tools/call","params":%s,"jsonrpc":"2.0","id":"seven"}', "seven"),
        (' {"id":-7,"jsonrpc":"2.0","params":%s, "method": "tools/call" } ', -7),
        ('{"jsonrpc": "2.0", "params": {"name": "add", "id": 1, "of": %s}, "method": "tools/call"}', None),
        ('{"jsonrpc": "2.0", "params": {"of": %s, "method": "tools/call", "id": 1}}', None),
        ('{"jsonrpc": "2.0", "id": 7, "result": %s}', None),
        ('{"jsonrpc": "2.0", "method": "notifications/told", "params": %s}', None),
    ],
)
async def test_a_request_that_is_too_long_is_refused_by_its_own_id(yard, line, id):
    """A client that hears of no id waits for ever; the id of anything else would end what it did not mean."""
    async with connected(yard.config(), yard.folder) as client:
        client.send((line % TOO_LONG).encode())
        (answer,) = await client.strays()
        assert answer["id"] == id
        assert answer["error"] == {"code": -32600, "message": f"a line has at most {LONGEST_LINE} bytes"}
        assert await client.request("ping") == {}


@pytest.mark.parametrize("era", ERAS)
async def test_more_calls_than_the_limit_are_refused_in_words(yard, era, monkeypatch):
    monkeypatch.setattr("toolyard.serve.mcp.tool_server.MOST_CALLS", 1)
    async with connected(yard.config("shell:session"), yard.folder, era) as client:
        os.mkfifo("go_on")
        first = client.begin("tools/call", {"name": "bash", "arguments": {"command": "cat go_on"}})
        error = await client.error("tools/call", {"name": "bash", "arguments": {"command": "true"}})
        assert "under way already" in error["message"]
        await asyncio.to_thread(Path("go_on").write_text, "")
        assert "result" in await client.answer(first)
