"""Servers over HTTP: both eras of the protocol, signing in, and servers that go away."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)

from mcp_servers.over_http import call_tool, list_tools, serve_app, serve_in_thread
from mcp_servers.sign_in import guarded_server
from support import PATIENCE
from toolyard.permissions.verdict import Answer
from yard import Yard

pytestmark = pytest.mark.anyio
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def headers(yard: Yard) -> dict[str, str]:
    return {"X-Behaviour": "echo", "X-Folder": str(yard.folder)}


def without_discovery(app: Any) -> Any:
    """A server of the older era, which keeps sessions and knows nothing of discovery."""

    async def older(scope: Any, receive: Any, send: Any) -> None:
        if dict(scope.get("headers", ())).get(b"mcp-method") != b"server/discover":
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return older


async def test_a_person_is_asked_in_the_newer_era_and_a_changed_list_is_heard(yard: Yard):
    bus, tools = InMemorySubscriptionBus(), ["greet"]

    async def listed(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in tools])

    async def called(ctx: Any, params: Any) -> CallToolResult | InputRequiredResult:
        if not params.input_responses:
            asked = ElicitRequest(params=ElicitRequestFormParams(message="Who?", requested_schema=FORM))
            return InputRequiredResult(input_requests={"q": asked}, request_state="s")
        tools.append("later")
        await bus.publish(ToolsListChanged())
        name = params.input_responses["q"].content["name"]
        return CallToolResult(content=[TextContent(type="text", text=f"hello {name}")])

    server: Server[Any] = Server(
        "asks", version="1", on_list_tools=listed, on_call_tool=called, on_subscriptions_listen=ListenHandler(bus)
    )
    url = serve_in_thread(server)
    config = yard.config({"mcp": {"url": url}})
    answer = Answer(allowed=True, reason="typed", filled={"name": "Ada"})
    async with yard.open(config, approver=lambda _: answer) as app:
        (source,) = await app.servers()
        assert (await app.call_tool("greet", {})).text == "hello Ada"
        assert (await source.status(start=False)).speaks == "2026-07-28"
        async with asyncio.timeout(PATIENCE):
            while "later" not in [spec.name for spec in app.tool_specs()]:
                await app.refresh()
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("era", ["newer", "older"])
async def test_a_server_that_goes_away_and_comes_back_costs_only_the_calls_meanwhile(yard: Yard, era: str):
    def made() -> Any:
        server: Server[Any] = Server("x", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        app = server.streamable_http_app()
        return app if era == "newer" else without_discovery(app)

    url, running = serve_app(made())
    port = int(url.rpartition(":")[2].partition("/")[0])
    async with yard.app({"mcp": {"url": url, "headers": headers(yard)}}) as app:
        assert (await app.call_tool("probe", {"value": "one"})).text == "one"
        running.should_exit = True
        async with asyncio.timeout(PATIENCE):
            while running.servers and running.servers[0].is_serving():
                await asyncio.sleep(0.05)
        assert (await app.call_tool("probe", {"value": "two"})).failure == "crash"
        _, again = serve_app(made(), port)
        async with asyncio.timeout(PATIENCE):
            while (await app.call_tool("probe", {"value": "three"})).text != "three":
                await asyncio.sleep(0.05)
        again.should_exit = True


async def test_signing_in_keeps_tokens_for_the_owner_alone_and_renews_them(
    yard: Yard, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")
    url, people = guarded_server()

    def open_in_browser(address: str) -> None:
        visits.append(
            asyncio.get_running_loop().run_in_executor(None, lambda: httpx2.get(address, follow_redirects=True))
        )

    visits: list[asyncio.Future[Any]] = []
    async with yard.app({"mcp": {"url": url, "headers": headers(yard), "name": "guarded"}}) as app:
        (told,) = [problem.message for problem in app.problems()]
        assert "toolyard plugins login guarded" in told
        (source,) = await app.servers()
        assert await source.login(open_in_browser) is None
        assert (await visits[0]).status_code == 200
        await app.refresh()
        assert (await app.call_tool("probe", {"value": "in"})).text == "in"

        (kept,) = (yard.folder / "home" / "state" / "toolyard" / "mcp" / "logins").iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        people.valid.clear()
        assert (await app.call_tool("probe", {"value": "renewed"})).text == "renewed"
    async with yard.app({"mcp": {"url": url, "headers": headers(yard), "name": "guarded"}}) as app:
        assert (await app.call_tool("probe", {"value": "again"})).text == "again"
        (source,) = await app.servers()
        assert (source.logout(), source.logout()) == (True, False)
    assert "secret-" not in caplog.text
