"""MCP over standard input and output: a thin server in the process of the tools, a client to each."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.serve.mcp.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE_VERSIONS,
    INSTRUCTIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_CACHED,
    PARSE_ERROR,
    SERVER,
    SERVER_KEY,
    STATELESS_VERSION,
    SUBSCRIPTION_KEY,
    Message,
    RpcFault,
    check_envelope,
)
from toolyard.serve.mcp.questions import ELICITATION, can_elicit, elicitation
from toolyard.serve.mcp.tool_server import CallRequest, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.tool import Json
    from toolyard.serve.mcp.line_wire import LineWire
    from toolyard.serve.mcp.questions import ClientQuestion
    from toolyard.serve.mcp.tool_server import ToolServer

log = logging.getLogger("toolyard.serve")
MOST_REQUESTS = 256
"""How many requests are answered at once; more are refused, so that a flood costs no memory."""
LAST_ANSWERS = 10.0
"""How many seconds calls may go on after the client closed its end, for one that still reads."""


class LineServer:
    """Answers one client until it closes its end."""

    def __init__(self, server: ToolServer, wire: LineWire, *, session: str) -> None:
        self._server = server
        self._wire = wire
        self._conversation = server.conversation(session)
        self._capabilities: Json = {}
        """What the client can do, of a client that began with `initialize`."""
        self._has_begun = False
        """Whether there was an `initialize`."""
        self._running: dict[object, asyncio.Task[None]] = {}
        """The requests that are being answered, by their ids."""
        self._numbers = itertools.count(1)
        self._asked: dict[object, asyncio.Future[Json]] = {}
        """Our own requests to the client, by their ids."""
        self._subscribed: set[object] = set()
        """The ids of requests that want to hear of changes."""
        self._watch: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until the client closes its end; then end everything."""
        try:
            async for line in self._wire.lines():
                self._take(line)
            await self._finish()
        finally:
            tasks = [*self._running.values(), *([self._watch] if self._watch else [])]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            await self._conversation.end()

    async def _finish(self) -> None:
        """Answer what was asked before the client closed its end, as long as somebody reads; nobody answers us now."""
        for id in self._subscribed:
            self._running[id].cancel()
        for waiting in self._asked.values():
            waiting.set_result(None)
        until = asyncio.get_running_loop().time() + LAST_ANSWERS
        while self._running and self._wire.has_reader and asyncio.get_running_loop().time() < until:
            await asyncio.wait(self._running.values(), timeout=0.1, return_when=asyncio.FIRST_COMPLETED)

    def _take(self, line: bytes | None) -> None:
        """Take one line; None for one that was too long."""
        try:
            message = decode_json(line, Message) if line is not None else None
        except msgspec.ValidationError:
            return self._refuse(None, INVALID_REQUEST, "a line is one JSON-RPC message")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._refuse(None, PARSE_ERROR, "the line is no JSON")
        if message is None:
            return self._refuse(None, INVALID_REQUEST, f"a line has at most {self._wire.limit} bytes")
        if message.method is None:
            return self._settle(message)
        if message.id is msgspec.UNSET:
            return self._hear(message)
        if message.id in self._running:
            return self._refuse(message.id, INVALID_REQUEST, "a request with this id is under way")
        if len(self._running) >= MOST_REQUESTS:
            return self._refuse(message.id, INTERNAL_ERROR, f"{MOST_REQUESTS} requests are under way already")
        self._running[message.id] = asyncio.create_task(self._answer(message))
        return None

    def _settle(self, message: Message) -> None:
        """The client answered a request of ours; an error is no answer."""
        waiting = self._asked.get(message.id)
        if waiting and not waiting.done():
            waiting.set_result(None if message.result is msgspec.UNSET else message.result)

    def _hear(self, message: Message) -> None:
        id = (message.params or {}).get("requestId")
        if message.method == "notifications/cancelled" and isinstance(id, str | int) and id in self._running:
            self._running[id].cancel()

    async def _answer(self, message: Message) -> None:
        try:
            self._send({"id": message.id, "result": await self._result(message)})
        except RpcFault as fault:
            self._send({"id": message.id, "error": fault.error})
        except Refused as refusal:
            self._refuse(message.id, INVALID_PARAMS, str(refusal))
        except asyncio.CancelledError:
            return  # a request that was cancelled has no answer
        except Exception:  # a fault of ours must not end the connection, whose other calls go on
            log.exception("%s failed", message.method)
            self._refuse(message.id, INTERNAL_ERROR, "the server failed on this request; its log says how")
        finally:
            del self._running[message.id]
        await self._wire.drain()

    async def _result(self, message: Message) -> Json:
        if message.is_stateless:
            check_envelope(message)
            result = await self._stateless_result(message)
            return {"resultType": "complete", "_meta": {SERVER_KEY: SERVER}, **result}
        return await self._handshake_result(message)

    async def _handshake_result(self, message: Message) -> Json:
        match message.method:
            case "initialize":
                return self._initialize(message.params or {})
            case "ping":
                return {}
            case "tools/list":
                return {"tools": (await self._server.current_definitions(self._server.agent)).encoded}
            case "tools/call":
                ask = self._ask if can_elicit(self._capabilities) else None
                request = call_request(message)
                return await self._conversation.call(
                    self._server.agent, request, ask=ask, report=self._reporter(message)
                )
        raise RpcFault(METHOD_NOT_FOUND, "Method not found", message.method)

    async def _stateless_result(self, message: Message) -> dict[str, Any]:
        match message.method:
            case "server/discover":
                found = {"supportedVersions": [STATELESS_VERSION], "capabilities": {"tools": {"listChanged": True}}}
                return {**found, "instructions": INSTRUCTIONS, **NOT_CACHED}
            case "tools/list":
                return {"tools": (await self._server.current_definitions(self._server.agent)).encoded, **NOT_CACHED}
            case "tools/call":
                return await self._conversation.call_statelessly(
                    self._server.agent,
                    call_request(message),
                    can_ask=can_elicit(message.meta.get(CAPABILITIES_KEY)),
                    report=self._reporter(message),
                )
            case "subscriptions/listen":
                return await self._listen(message)
        raise RpcFault(METHOD_NOT_FOUND, "Method not found", message.method)

    def _initialize(self, params: dict[str, Any]) -> Json:
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise RpcFault(INVALID_PARAMS, "initialize needs a protocolVersion")
        self._capabilities = params.get("capabilities")
        self._has_begun = True
        self._start_watch()
        return {
            "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }

    async def _listen(self, message: Message) -> dict[str, Any]:
        """Tell of changes until the client cancels the request."""
        wanted = (message.params or {}).get("notifications")
        if not isinstance(wanted, dict):
            raise RpcFault(INVALID_PARAMS, "subscriptions/listen needs notifications")
        meta = {SUBSCRIPTION_KEY: message.id}
        honoured = {"toolsListChanged": True} if wanted.get("toolsListChanged") is True else {}
        params = {"_meta": meta, "notifications": honoured}
        self._send({"method": "notifications/subscriptions/acknowledged", "params": params})
        if honoured:
            self._subscribed.add(message.id)
            self._start_watch()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._subscribed.discard(message.id)
        return {"_meta": meta}

    def _start_watch(self) -> None:
        if self._watch is None:
            self._watch = asyncio.create_task(self._tell_changes())

    async def _tell_changes(self) -> None:
        changed = {"method": "notifications/tools/list_changed"}
        served = self._server.default_agent()
        async for agents in self._server.changes():
            if served not in agents:
                continue
            if self._has_begun:
                self._send(changed)
            for id in self._subscribed:
                self._send({**changed, "params": {"_meta": {SUBSCRIPTION_KEY: id}}})

    async def _ask(self, question: ClientQuestion) -> Json:
        """Put a question to the client and wait; a call that ends meanwhile takes it back."""
        id = f"question-{next(self._numbers)}"
        waiting = self._asked[id] = asyncio.get_running_loop().create_future()
        self._send({"id": id, "method": ELICITATION, "params": elicitation(question)})
        try:
            return await waiting
        finally:
            del self._asked[id]
            if not waiting.done() or waiting.cancelled():
                self._send({"method": "notifications/cancelled", "params": {"requestId": id}})

    def _reporter(self, message: Message) -> Callable[[int, str], Any] | None:
        """What tells a client of progress, if it wants to hear of it."""
        token = message.meta.get("progressToken")
        if token is None or isinstance(token, bool) or not isinstance(token, str | int):
            return None

        async def report(number: int, text: str) -> None:
            params = {"progressToken": token, "progress": number, "message": text}
            self._send({"method": "notifications/progress", "params": params})
            await self._wire.drain()

        return report

    def _refuse(self, id: Json, code: int, text: str) -> None:
        self._send({"id": id, "error": {"code": code, "message": text}})

    def _send(self, message: dict[str, Any]) -> None:
        self._wire.send(encode_json({"jsonrpc": "2.0", **message}))


def call_request(message: Message) -> CallRequest:
    """The parameters of a `tools/call`; only their form is looked at, a tool's arguments are checked on their way."""
    params = message.params or {}
    name, arguments, state = params.get("name"), params.get("arguments"), params.get("requestState")
    if not isinstance(name, str) or not isinstance(arguments, dict | None) or not isinstance(state, str | None):
        raise RpcFault(INVALID_PARAMS, "tools/call needs a name, and arguments that are an object")
    return CallRequest(name=name, arguments=arguments or {}, answers=params.get("inputResponses"), state=state)
