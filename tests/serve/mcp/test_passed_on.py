"""What MCP servers have beside tools reaches clients of ours, over lines, in both eras of either side.

None of these questions leaves anything behind, so that one server of each era answers them all: to start one takes
longer than all of them together. `test_passed_on_alone` has the others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_peer import ERAS, FORMS, Peer, connected_to
from toolyard.app import AgentApplication
from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

pytestmark = pytest.mark.anyio
SUITE = Path(__file__).parents[2] / "mcp_servers" / "suite_server.py"
EVERYTHING = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
NAMES = {"action": "accept", "content": {"name": "Ada"}}
ROOTS = {"roots": [{"uri": "file:///somewhere"}]}
SAYS = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"}
Connect = Callable[..., AbstractAsyncContextManager[Peer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of ours, before a server of an era."""

    era: str
    folder: Path
    tools: ToolServer


def person(params: dict[str, Any]) -> dict[str, Any]:
    """Answers whatever comes: a form, a message for a model, or a question for roots."""
    return NAMES if "requestedSchema" in params else SAYS if "messages" in params else ROOTS


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folders that tests have of their own, here for all of them."""
    folder = tmp_path_factory.mktemp("passed_on").resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(folder / name.lower()))
        yield folder


@pytest.fixture(scope="module", params=ERAS)
async def server(request: pytest.FixtureRequest, own_folders: Path) -> AsyncIterator[Server]:
    approver, command = ClientApprover(), [sys.executable, str(SUITE), request.param]
    config = {"plugins": [{"mcp": {"command": command, "name": "suite"}}]}
    async with AgentApplication(config, own_folders / "sessions", approver=approver) as app:
        yield Server(era=request.param, folder=own_folders, tools=ToolServer(app, approver))


@pytest.fixture(params=ERAS)
def connect(request: pytest.FixtureRequest, server: Server) -> Connect:
    """Connects a client of each era in turn."""

    def connect(capabilities: Any = FORMS) -> AbstractAsyncContextManager[Peer]:
        return connected_to(server.tools, request.node.name, request.param, capabilities)

    return connect


async def test_resources_are_listed_and_read(connect):
    async with connect() as client:
        listed = await client.request("resources/list")
        assert [one["uri"] for one in listed["resources"]][:2] == ["test://static-text", "test://static-binary"]
        templates = await client.request("resources/templates/list")
        assert [one["uriTemplate"] for one in templates["resourceTemplates"]] == ["test://template/{id}/data"]
        text = await client.request("resources/read", {"uri": "test://static-text"})
        words = "This is the content of the static text resource."
        assert text["contents"] == [{"uri": "test://static-text", "mimeType": "text/plain", "text": words}]
        image = await client.request("resources/read", {"uri": "test://static-binary"})
        assert image["contents"][0]["mimeType"] == "image/png"
        assert "blob" in image["contents"][0]
        data = await client.request("resources/read", {"uri": "test://template/7/data"})
        assert json.loads(data["contents"][0]["text"])["id"] == "7"


@pytest.mark.parametrize("uri", ["test://nothing", "other://nothing"])
async def test_a_resource_that_is_not_there_is_an_error_with_its_address(connect, uri):
    async with connect() as client:
        error = await client.error("resources/read", {"uri": uri})
    assert (error["code"], error["data"]) == (-32602, {"uri": uri})


async def test_prompts_are_listed_got_and_completed(connect):
    async with connect() as client:
        listed = await client.request("prompts/list")
        about = {one["name"]: one for one in listed["prompts"]}["test_prompt_with_arguments"]
        assert [one["name"] for one in about["arguments"]] == ["arg1", "arg2"]
        given = {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}}
        (message,) = (await client.request("prompts/get", given))["messages"]
        assert message["content"]["text"] == "Prompt with arguments: arg1='a', arg2='b'"
        resource = {"name": "test_prompt_with_embedded_resource", "arguments": {"resourceUri": "test://x"}}
        first, _ = (await client.request("prompts/get", resource))["messages"]
        assert first["content"]["resource"]["uri"] == "test://x"
        ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
        completed = await client.request(
            "completion/complete", {"ref": ref, "argument": {"name": "arg1", "value": "test"}}
        )
        assert completed["completion"]["values"] == ["test", "testing"]
        assert (await client.error("prompts/get", {"name": "none"}))["code"] == -32602


async def test_what_a_server_answers_is_passed_on_as_it_was(connect):
    async with connect() as client:
        result = await client.call("test_multiple_content_types")
    assert [one["type"] for one in result["content"]] == ["text", "image", "resource"]
    assert result["content"][2]["resource"]["uri"] == "test://mixed-content-resource"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("test_input_required_result_elicitation", {}, "Hello, Ada!"),
        ("test_sampling", {"prompt": "Where?"}, "Paris"),
        ("test_input_required_result_list_roots", {}, "file:///somewhere"),
        ("test_input_required_result_multiple_inputs", {}, "file:///somewhere"),
    ],
)
async def test_what_a_server_asks_reaches_the_client(connect, tool, arguments, words):
    async with connect(capabilities=EVERYTHING) as client:
        client.answer_question = person
        result = await client.call(tool, **arguments)
    assert words in result["content"][0]["text"]
    forms = [one["message"] for one in client.asked if "requestedSchema" in one]
    assert all(message.startswith("suite asks: ") for message in forms)


async def test_a_client_that_has_no_model_is_told_that_one_is_needed(connect, server):
    async with connect() as client:
        answer = await client.answer(client.begin("tools/call", {"name": "test_missing_capability"}))
    if server.era == "stateless":
        assert answer["error"]["code"] == -32021
        assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    else:  # an older server makes of it what it will
        assert "no model" in json.dumps(answer)


async def test_roots_of_a_client_without_any_are_where_calls_work(connect, server):
    async with connect() as client:
        result = await client.call("test_input_required_result_list_roots")
    assert server.folder.as_uri() in result["content"][0]["text"]


async def test_a_resource_whose_changes_cannot_be_told_is_an_error(connect):
    async with connect() as client:
        if client.era == "handshake":
            error = await client.error("resources/subscribe", {"uri": "other://nothing"})
            assert (error["code"], error["data"]) == (-32602, {"uri": "other://nothing"})
        else:
            client.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["other://nothing"]}})
            (told,) = await client.heard("notifications/subscriptions/acknowledged")
            assert told["params"]["notifications"] == {}
