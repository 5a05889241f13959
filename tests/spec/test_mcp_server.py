"""An agent's tools for MCP clients: what they see, who gets in, and whose shell is whose."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from mcp_peer import ERAS, connected
from mcp_serving import TOKEN, serving
from support import PATIENCE
from toolyard.serve.mcp.http.listening import Address
from yard import Yard

pytestmark = pytest.mark.anyio
SUITE_SERVER = Path(__file__).parents[1] / "mcp_servers" / "suite_server.py"
LONG = "a_tool_with_a_name_that_is_longer_than_what_a_client_can_pass_on_to_its_model"
ODD = {"kind": {"const": "x"}, "size": {"type": ["integer", "null"], "exclusiveMinimum": 0}}


@pytest.fixture(autouse=True)
def in_the_yard(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(yard.folder)


@pytest.mark.parametrize("era", ERAS)
async def test_N06_clients_of_both_eras_get_all_that_the_protocol_can_carry(yard, era):
    yard.tool(LONG, file="long.bash", properties=ODD)
    async with connected(yard.config("bash:./long.bash", "shell:session"), yard.folder, era) as client:
        if era == "stateless":
            client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        long, bash, *_ = (await client.request("tools/list"))["tools"]
        assert len(f"mcp__toolyard__{long['name']}") <= 64
        assert long["inputSchema"]["properties"]["kind"] == {"enum": ["x"]}
        assert long["inputSchema"]["properties"]["size"] == {"type": "integer", "minimum": 1}
        assert bash["annotations"] == {"destructiveHint": True}
        wrong = await client.call(long["name"], kind="y")
        assert "kind" in wrong["content"][0]["text"]
        said = await client.call("bash", {"progressToken": 1}, command="echo hello")
        assert said["content"][0]["text"] == said["structuredContent"]["text"] == "hello\n"
        assert "hello\n" in "".join(one["params"]["message"] for one in await client.heard("notifications/progress"))
        client.answer_question = lambda _: {"action": "accept", "content": {"answer": "once"}}
        out = await client.call("bash", command="echo out", reach="outside", reason="to see")
        assert (out["content"][0]["text"], len(client.asked)) == ("out\n", 1)
        yard.tool(LONG, file="long.bash", properties={})
        await client.heard("notifications/tools/list_changed")
    async with connected(yard.config("shell:session"), yard.folder, era, capabilities={}) as client:
        refused = await client.call("bash", command="touch it", reach="outside", reason="to see")
        assert "cannot ask its user" in refused["content"][0]["text"]
        assert not Path("it").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": f"Bearer {TOKEN}"}, 400),
        ({}, 401),
        ({"Authorization": "Bearer other"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "X-Large": "x"}, 413),
    ],
)
async def test_N07_only_who_is_meant_gets_in_over_http(yard, headers, status):
    content = b"x" * (5 << 20) if "X-Large" in headers else b"{}"
    async with serving(yard.config("shell:command"), yard.folder) as address, httpx2.AsyncClient() as http:
        assert address.host == "127.0.0.1"
        answer = await http.post(address.url, content=content, headers={"Accept": "text/plain", **headers})
        assert answer.status_code == status, answer.text
    with pytest.raises(ValueError, match="needs a token"):
        async with serving(yard.config("shell:command"), yard.folder, address=Address(host="0.0.0.0")):
            pass


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_N08_each_conversation_has_a_bash_that_ends_with_it(yard, mode):
    os.mkfifo("ended")
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async def bash(client: Client, command: str) -> str:
        return (await client.call_tool("bash", {"command": command}, read_timeout_seconds=PATIENCE)).content[0].text

    async with serving(yard.config("shell:session"), yard.folder, kept_after_close=0.05) as address:
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(address.url, http_client=http), mode=mode) as one,
        ):
            await bash(one, "X=mine; (echo started; exec sleep 1000) > ended &")
            ended = await asyncio.to_thread(open, "ended")
            assert await asyncio.to_thread(ended.readline) == "started\n"
            async with (
                create_mcp_http_client(headers=headers) as other_http,
                Client(streamable_http_client(address.url, http_client=other_http), mode=mode) as other,
            ):
                assert await bash(other, "echo $X") == "\n"
            assert await bash(one, "echo $X") == "mine\n"
        with ended:
            async with asyncio.timeout(PATIENCE):
                assert await asyncio.to_thread(ended.read) == ""


@pytest.mark.parametrize("era", ERAS)
async def test_N13_what_servers_have_beside_tools_reaches_clients(yard, era):
    source = {"mcp": {"command": [sys.executable, str(SUITE_SERVER), era], "name": "suite"}}
    everything = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    async with connected(yard.config(source), yard.folder, era, capabilities=everything) as client:
        assert (await client.request("resources/list"))["resources"]
        assert (await client.request("resources/templates/list"))["resourceTemplates"]
        assert (await client.request("resources/read", {"uri": "test://static-text"}))["contents"][0]["text"]
        assert (await client.request("prompts/list"))["prompts"]
        assert (await client.request("prompts/get", {"name": "test_simple_prompt"}))["messages"]
        ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
        wanted = {"ref": ref, "argument": {"name": "arg1", "value": "par"}}
        assert (await client.request("completion/complete", wanted))["completion"]["values"] == ["paris"]
        text = {"type": "text", "text": "Paris"}
        says = {"role": "assistant", "content": text, "model": "m", "stopReason": "endTurn"}
        client.answer_question = lambda asked: says if "messages" in asked else {"roots": [{"uri": "file:///r"}]}
        assert "Paris" in (await client.call("test_sampling", prompt="?"))["content"][0]["text"]
        assert "file:///r" in (await client.call("test_input_required_result_list_roots"))["content"][0]["text"]
    recorded = {line["tool"] for line in yard.audit() if "tool" in line}
    assert {"suite_read_resource", "suite_get_prompt", "suite_complete", "test_sampling"} <= recorded
