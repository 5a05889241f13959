"""The ways by which a call reaches a tool: directly, and through our own server by each of its wires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httpx2

from mcp_peer import Peer, connected_to
from support import PATIENCE
from toolyard.app import AgentApplication
from toolyard.serve.mcp.http.listening import Address, listening
from toolyard.serve.mcp.messages import CAPABILITIES_KEY, STATELESS_VERSION, VERSION_KEY
from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

TOKEN = "a token of the tests"
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": STATELESS_VERSION,
    "Mcp-Method": "tools/call",
}


class Calling(Protocol):
    """A call that a client has made."""

    async def answer(self) -> dict[str, Any]:
        """Its result, as soon as there is one."""

    def has_answer(self) -> bool:
        """Whether there is one."""

    def progress(self) -> str:
        """What the client was told of it so far."""

    async def give_up(self) -> None:
        """Want no answer any more, and tell the server as the wire does."""


class Wire(Protocol):
    """A client of a server."""

    def begin(self, name: str, arguments: dict[str, Any], *, hears: bool = False) -> Calling:
        """Call a tool; who `hears` wants to be told of its progress."""


class CallOverLines:
    def __init__(self, peer: Peer, params: dict[str, Any]) -> None:
        self._peer = peer
        self._id = peer.begin("tools/call", params)

    async def answer(self) -> dict[str, Any]:
        return (await self._peer.answer(self._id))["result"]

    def has_answer(self) -> bool:
        return self._peer.has_answer(self._id)

    def progress(self) -> str:
        told = [one["params"] for one in self._peer.notifications if one["method"] == "notifications/progress"]
        return "".join(one["message"] for one in told)

    async def give_up(self) -> None:
        self._peer.send({"method": "notifications/cancelled", "params": {"requestId": self._id}})


class LinesClient:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def begin(self, name: str, arguments: dict[str, Any], *, hears: bool = False) -> Calling:
        meta = {"progressToken": "p"} if hears else {}
        return CallOverLines(self._peer, {"name": name, "arguments": arguments, "_meta": meta})


class CallOverHttp:
    def __init__(self, http: httpx2.AsyncClient, url: str, params: dict[str, Any]) -> None:
        self._told: list[str] = []
        self._task = asyncio.create_task(self._exchange(http, url, params))

    async def answer(self) -> dict[str, Any]:
        return await self._task

    def has_answer(self) -> bool:
        return self._task.done()

    def progress(self) -> str:
        return "".join(self._told)

    async def give_up(self) -> None:
        """Close the connection: over HTTP nothing else says it."""
        self._task.cancel()
        await asyncio.wait([self._task], timeout=PATIENCE)

    async def _exchange(self, http: httpx2.AsyncClient, url: str, params: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**HEADERS, "Mcp-Name": params["name"]}
        async with http.stream("POST", url, json=body, headers=headers) as response:
            async for line in response.aiter_lines():
                text = line.removeprefix("data: ")
                message = json.loads(text) if text.startswith("{") else {}
                if "result" in message:
                    return message["result"]
                if "params" in message:
                    self._told.append(message["params"]["message"])
        raise AssertionError("the response has no result")


class HttpClient:
    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http, self._url = http, url

    def begin(self, name: str, arguments: dict[str, Any], *, hears: bool = False) -> Calling:
        """Who hears nothing is answered on the connection itself, who does by the SDK."""
        meta = {VERSION_KEY: STATELESS_VERSION, CAPABILITIES_KEY: {}, **({"progressToken": "p"} if hears else {})}
        return CallOverHttp(self._http, self._url, {"name": name, "arguments": arguments, "_meta": meta})


@asynccontextmanager
async def over_lines(app: AgentApplication, approver: ClientApprover) -> AsyncIterator[Wire]:
    """`serve --mcp stdio`, for a client of the older era."""
    async with connected_to(ToolServer(app, approver), "the session of lines", capabilities={}) as peer:
        yield LinesClient(peer)


@asynccontextmanager
async def over_http(app: AgentApplication, approver: ClientApprover) -> AsyncIterator[Wire]:
    """`serve --mcp http`, for a client of the newer era."""
    async with (
        listening(ToolServer(app, approver), Address(token=TOKEN)) as address,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):
        yield HttpClient(http, address.url)


WIRES = {"lines": over_lines, "http": over_http}
