"""What MCP servers have beside tools, with a server for each test: it counts, is configured, or is looked at later."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_peer import ERAS, connected

pytestmark = pytest.mark.anyio
SUITE = Path(__file__).parents[2] / "mcp_servers" / "suite_server.py"
EVERYTHING = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
NAMES = {"action": "accept", "content": {"name": "Ada"}}
ROOTS = {"roots": [{"uri": "file:///somewhere"}]}
SAYS = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"}


def entry(era: str, name: str = "suite") -> dict[str, Any]:
    return {"mcp": {"command": [sys.executable, str(SUITE), era], "name": name}}


def person(params: dict[str, Any]) -> dict[str, Any]:
    """Answers whatever comes: a form, a message for a model, or a question for roots."""
    return NAMES if "requestedSchema" in params else SAYS if "messages" in params else ROOTS


@pytest.fixture(scope="module")
def kept_listings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("listings")


@pytest.fixture(autouse=True)
def know_the_server(own_folders: None, kept_listings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it offers is known from the test before: to be asked for that it would be started once more each time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept_listings))


@pytest.fixture(params=ERAS)
def source_era(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_a_call_that_asks_is_not_begun_again_for_that(connect, source_era):
    async with connect(entry(source_era), capabilities=EVERYTHING) as client:
        client.answer_question = person
        result = await client.call("test_counted_question")
    rounds = 1 if source_era == "handshake" else 2  # in the newer era the answer comes with a second request
    assert result["content"][0]["text"] == f"begun {rounds} times"


async def test_several_questions_of_one_moment_are_put_together(yard):
    async with connected(yard.config(entry("stateless")), yard.folder, "stateless", capabilities=EVERYTHING) as client:
        name = {"name": "test_input_required_result_multiple_inputs"}
        result = await client.request("tools/call", name)
        assert set(result["inputRequests"]) == {"user_name", "greeting", "client_roots"}
        again = await client.request("tools/call", {**name, "requestState": result["requestState"]})
        assert again["inputRequests"] == result["inputRequests"]
        some = {"user_name": NAMES, "greeting": SAYS}
        left = await client.request(
            "tools/call", {**name, "requestState": again["requestState"], "inputResponses": some}
        )
        assert set(left["inputRequests"]) == {"client_roots"}


async def test_an_answer_may_come_with_the_call_but_not_to_the_question_whether_it_may_run(yard):
    config = {"plugins": [entry("stateless")], "permissions": {"ask": [{"tool": "test_simple_text"}]}}
    async with connected(config, yard.folder, "stateless") as client:
        name = {"name": "test_input_required_result_elicitation"}
        result = await client.request("tools/call", {**name, "inputResponses": {"user_name": NAMES}})
        assert result["content"][0]["text"] == "Hello, Ada!"
        yes = {"allow": {"action": "accept", "content": {"answer": "once"}}}
        asked = await client.request("tools/call", {"name": "test_simple_text", "inputResponses": yes})
        assert asked["resultType"] == "input_required"


async def test_a_log_is_heard_by_who_wants_it_and_as_much_as_wanted(connect, source_era):
    async with connect(entry(source_era)) as client:
        await client.call("test_tool_with_logging")
        assert client.notifications == []
        for level, heard in (("error", 0), ("info", 3)):
            meta = {}
            if client.era == "handshake":
                await client.request("logging/setLevel", {"level": level})
            else:
                meta = {"io.modelcontextprotocol/logLevel": level}
            await client.call("test_tool_with_logging", _meta=meta)
            assert len(client.notifications) == heard
    assert {one["method"] for one in client.notifications} == {"notifications/message"}
    assert client.notifications[0]["params"] == {"level": "info", "data": "Tool execution started"}


async def test_who_comes_second_has_its_name_before_what_is_taken(connect):
    async with connect(entry("stateless", "one"), entry("stateless", "two")) as client:
        prompts = [one["name"] for one in (await client.request("prompts/list"))["prompts"]]
        assert "test_simple_prompt" in prompts
        assert "two_test_simple_prompt" in prompts
        uris = [one["uri"] for one in (await client.request("resources/list"))["resources"]]
        assert "test://static-text" in uris
        assert "two+test://static-text" in uris
        for uri in ("test://static-text", "two+test://static-text", "two+test://template/7/data"):
            read = await client.request("resources/read", {"uri": uri})
            assert read["contents"][0]["uri"] == uri
        assert (await client.request("prompts/get", {"name": "two_test_simple_prompt"}))["messages"]


async def test_reading_a_resource_is_permitted_and_recorded_as_a_call(yard):
    rules = {"deny": [{"tool": "suite_read_resource"}]}
    config = {"plugins": [entry("stateless")], "permissions": rules}
    async with connected(config, yard.folder, "stateless") as client:
        error = await client.error("resources/read", {"uri": "test://static-text"})
        assert "not allowed" in error["message"]
        assert (await client.request("prompts/get", {"name": "test_simple_prompt"}))["messages"]
    ends = [(line["tool"], line.get("failure")) for line in yard.audit() if line["event"] == "end"]
    assert ends == [("suite_read_resource", "denied"), ("suite_get_prompt", None)]


async def test_a_secret_that_a_server_tells_is_redacted_also_in_what_is_passed_on(yard, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "This is the content")
    config = {"plugins": [entry("stateless")], "api_key": "${env:SOME_TOKEN}"}
    async with connected(config, yard.folder, "stateless") as client:
        text = await client.request("resources/read", {"uri": "test://static-text"})
    assert "This is the content" not in json.dumps(text)


async def test_what_a_model_is_asked_is_on_record(connect, source_era, yard, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-1234567890")
    usage = {"inputTokens": 5, "outputTokens": 1}
    async with connect(entry(source_era), capabilities=EVERYTHING) as client:
        client.answer_question = lambda _: {**SAYS, "_meta": {"usage": usage}}
        await client.call("test_sampling", prompt="Where is tok-1234567890?")
        assert "tok-1234567890" not in repr(client.asked)
    (line,) = [line for line in yard.audit() if line["event"] == "sampling"]
    calls = {line["call_id"] for line in yard.audit() if line.get("tool") == "test_sampling"}
    assert {line["call_id"]} == calls
    assert (line["server"], line["decision"], line["model"], line["usage"]) == ("suite", "allow", "m", usage)
    assert line["max_tokens"] == 100
    assert "Where is [redacted SOME_TOKEN]?" in line["asked"]
    assert "Paris" not in repr(line)


async def test_a_model_that_did_not_answer_is_on_record_too(connect, source_era, yard):
    async with connect(entry(source_era), capabilities=EVERYTHING) as client:
        client.answer_question = lambda _: {"action": "decline"}
        result = client.begin("tools/call", {"name": "test_sampling", "arguments": {"prompt": "Where?"}})
        answer = (await client.answer(result)).get("result", {})
        if answer.get("resultType") == "input_required":
            declined = {key: {"action": "decline"} for key in answer["inputRequests"]}
            params = {"name": "test_sampling", "arguments": {"prompt": "Where?"}}
            again = {"inputResponses": declined, "requestState": answer["requestState"]}
            await client.answer(client.begin("tools/call", params | again))
    (line,) = [line for line in yard.audit() if line["event"] == "sampling"]
    assert (line["server"], line["decision"], line["model"]) == ("suite", "deny", None)


UPDATED = "notifications/resources/updated"
TEXT_URI, OTHER_URI = "test://static-text", "test://static-binary"


async def follow(client: Any, uri: str) -> Any:
    """Have changes of a resource told, in the way of the client's era; what ends it."""
    if client.era == "handshake":
        assert await client.request("resources/subscribe", {"uri": uri}) == {}
        return lambda: client.request("resources/unsubscribe", {"uri": uri})
    id = client.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
    told = await client.heard("notifications/subscriptions/acknowledged")
    assert told[-1]["params"]["notifications"] == {"resourceSubscriptions": [uri]}

    async def stop() -> None:
        client.send({"method": "notifications/cancelled", "params": {"requestId": id}})
        await client.request("tools/list")

    return stop


async def test_changes_of_a_resource_are_told_to_who_wants_to_hear_of_them(connect, source_era, yard):
    async with connect(entry(source_era)) as client:
        await client.call("test_trigger_resource_change", uri=TEXT_URI)
        stop = await follow(client, TEXT_URI)
        await client.call("test_trigger_resource_change", uri=OTHER_URI)
        await client.call("test_trigger_resource_change", uri=TEXT_URI)
        assert [one["params"]["uri"] for one in await client.heard(UPDATED)] == [TEXT_URI]
        await stop()
        result = await client.call("test_trigger_resource_change", uri=TEXT_URI)
        assert TEXT_URI not in result["content"][0].get("text", ""), "the server need not tell it any more"
        await client.request("tools/list")
        assert len(await client.heard(UPDATED)) == 1
    follows = [line for line in yard.audit() if line["tool"] == "suite_follow_resource"]
    assert [line["event"] for line in follows] == ["start", "end"], "it is a call as any other"


async def test_following_a_resource_needs_permission(connect, source_era, yard):
    rules = {"deny": [{"tool": "suite_follow_resource", "reason": "not this one"}]}
    async with connect(config=yard.config(entry(source_era), permissions={"preset": "trusted", **rules})) as client:
        if client.era == "handshake":
            error = await client.error("resources/subscribe", {"uri": TEXT_URI})
            assert "not this one" in error["message"]
        else:
            client.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [TEXT_URI]}})
            (told,) = await client.heard("notifications/subscriptions/acknowledged")
            assert told["params"]["notifications"] == {}


async def test_a_server_that_was_started_again_tells_of_changes_as_before(connect, source_era, yard):
    async with connect(entry(source_era)) as client:
        await follow(client, TEXT_URI)
        os.kill(server_pid(), signal.SIGKILL)
        for _ in range(3):  # the first is lost with the server
            await client.call("test_trigger_resource_change", uri=TEXT_URI)
        assert (await client.heard(UPDATED))[0]["params"]["uri"] == TEXT_URI


def server_pid() -> int:
    """The process of the suite's server among ours."""
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0") if name.isdigit() else []
            if str(SUITE).encode() in words and os.getpid() in ancestors(int(name)):
                return int(name)
    raise AssertionError("it does not run")


def ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found
