"""A client of the server over lines that speaks both protocol eras, and shows every message."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support import PATIENCE
from toolyard.app import AgentApplication
from toolyard.serve.mcp.line_wire import LineWire
from toolyard.serve.mcp.messages import CAPABILITIES_KEY, STATELESS_VERSION, VERSION_KEY
from toolyard.serve.mcp.stdio import LineServer
from toolyard.serve.mcp.tool_server import ClientApprover, ToolServer

ERAS = ("handshake", "stateless")
FORMS = {"elicitation": {"form": {}}}


class Peer:
    """Sends requests and takes what comes back, in whatever order."""

    def __init__(self, wire: LineWire, era: str, capabilities: Mapping[str, Any]) -> None:
        self.era = era
        self.notifications: list[dict[str, Any]] = []
        self.answer_question: Callable[[dict[str, Any]], Any] = lambda _: {"action": "decline"}
        """What the person at this client does with a form."""
        self.thinks_for = 0.0
        """How many seconds they take for that."""
        self.asked: list[dict[str, Any]] = []
        self._wire = wire
        self._capabilities = capabilities
        self._last = 0
        self._waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._heard = asyncio.Condition()
        self.stray: list[dict[str, Any]] = []
        """Answers to no request."""

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        self._wire.send(message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode())

    def begin(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None) -> Any:
        """Send a request; its id, for `answer`."""
        self._last += 1
        id = self._last if id is None else id
        params = dict(params or {})
        if self.era == "stateless":
            envelope = {VERSION_KEY: STATELESS_VERSION, CAPABILITIES_KEY: self._capabilities}
            params["_meta"] = {**envelope, **params.get("_meta", {})}
        self._waiting[id] = asyncio.get_running_loop().create_future()
        self.send({"id": id, "method": method, "params": params})
        return id

    async def answer(self, id: Any) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            return await self._waiting[id]

    def has_answer(self, id: Any) -> bool:
        return self._waiting[id].done()

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result; an error fails."""
        answer = await self.answer(self.begin(method, params))
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.answer(self.begin(method, params))
        assert "error" in answer, answer
        return answer["error"]

    async def call(self, name: str, _meta: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """Call a tool to its end, questions and all."""
        params = {"name": name, "arguments": arguments, "_meta": dict(_meta or {})}
        result = await self.request("tools/call", params)
        while result.get("resultType") == "input_required":
            responses = {}
            for key, asked in result["inputRequests"].items():
                self.asked.append(asked["params"])
                await asyncio.sleep(self.thinks_for)
                responses[key] = self.answer_question(asked["params"])
            again = {"inputResponses": responses, "requestState": result["requestState"]}
            result = await self.request("tools/call", params | again)
        return result

    async def heard(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait for notifications."""
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            found[:] = [one for one in self.notifications if one["method"] == method]
            return len(found) >= count

        async with asyncio.timeout(PATIENCE), self._heard:
            await self._heard.wait_for(enough)
        return found

    async def listen(self) -> None:
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        reading = asyncio.create_task(self._wire.read(lines.put_nowait))
        try:
            while line := await lines.get():
                await self._take(json.loads(line))
        finally:
            reading.cancel()

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            self.asked.append(message["params"])
            await asyncio.sleep(self.thinks_for)
            if (reply := self.answer_question(message["params"])) is not None:
                self.send({"id": message["id"], "result": reply})
        elif message.get("id") in self._waiting and "method" not in message:
            self._waiting[message["id"]].set_result(message)
        else:
            async with self._heard:
                (self.notifications if "method" in message else self.stray).append(message)
                self._heard.notify_all()

    async def strays(self, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(PATIENCE), self._heard:
            await self._heard.wait_for(lambda: len(self.stray) >= count)
        return self.stray


@asynccontextmanager
async def connected(
    config: Any,
    folder: Path,
    era: str = "handshake",
    *,
    capabilities: Mapping[str, Any] = FORMS,
    agent: str | None = None,
    **options: Any,
) -> AsyncIterator[Peer]:
    """A client at the other end of pipes from a server with its own application."""
    approver = ClientApprover()
    session = os.urandom(16).hex()
    app = AgentApplication(config, folder / "sessions", approver=approver, session=session, **options)
    async with app, connected_to(ToolServer(app, approver, agent=agent), session, era, capabilities) as peer:
        yield peer


@asynccontextmanager
async def connected_to(
    tools: ToolServer, session: str, era: str = "handshake", capabilities: Mapping[str, Any] = FORMS
) -> AsyncIterator[Peer]:
    """A client at the other end of pipes from a server."""
    (to_server, from_client), (to_client, from_server) = os.pipe(), os.pipe()
    async with LineWire(to_server, from_server) as theirs:
        server = asyncio.create_task(LineServer(tools, theirs, session=session).run())
        async with LineWire(to_client, from_client) as ours:
            peer = Peer(ours, era, capabilities)
            listening = asyncio.create_task(peer.listen())
            try:
                if era == "handshake":
                    version = {"protocolVersion": "2025-06-18", "clientInfo": {"name": "peer", "version": "1"}}
                    await peer.request("initialize", {**version, "capabilities": capabilities})
                    peer.send({"method": "notifications/initialized"})
                yield peer
            finally:
                listening.cancel()
        async with asyncio.timeout(PATIENCE):
            await server
        await asyncio.gather(listening, return_exceptions=True)
