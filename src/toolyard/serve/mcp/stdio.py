"""MCP over standard input and output: a thin server in the process of the tools, a client to each."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.serve.mcp.calls import LEVELS, Asking
from toolyard.serve.mcp.line_wire import CutLine
from toolyard.serve.mcp.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE_VERSIONS,
    INSTRUCTIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL_KEY,
    METHOD_NOT_FOUND,
    NOT_CACHED,
    PARSE_ERROR,
    SERVER,
    STATELESS_VERSION,
    SUBSCRIPTION_KEY,
    Message,
    RpcFault,
    check_envelope,
    request_id_from_ends,
    stateless,
)
from toolyard.serve.mcp.results import result_for
from toolyard.serve.mcp.tool_server import CALLS, MOST_FOLLOWED, NOTHING, SUBSCRIBE, ListKind, Refused, Wants

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.tool import ClientRequest, Json, JsonObject
    from toolyard.serve.mcp.calls import Report, ServedCall
    from toolyard.serve.mcp.line_wire import LineWire
    from toolyard.serve.mcp.messages import CallRequest
    from toolyard.serve.mcp.tool_server import ToolServer

log = logging.getLogger("toolyard.serve")
LIST_KINDS = get_args(ListKind)
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
        self._log_level: str | None = None
        """Of messages that a client of the older era wants to hear."""
        self._has_begun = False
        """Whether there was an `initialize`."""
        self._running: dict[object, asyncio.Task[None]] = {}
        """The requests that are being answered, by their ids, but for calls."""
        self._calls: dict[object, ServedCall] = {}
        """The calls under way, by the ids of their requests: they have tasks of their own."""
        self._numbers = itertools.count(1)
        self._asked: dict[object, asyncio.Future[Json]] = {}
        """Our own requests to the client, by their ids."""
        self._subscribed: dict[object, list[str]] = {}
        """The lists whose changes requests want to hear of, by the ids of those."""
        self._watch: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until the client closes its end; then end everything."""
        try:
            await self._wire.read(self._take)
            await self._finish()
        finally:
            tasks = [*self._running.values(), *([self._watch] if self._watch else [])]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            self._calls.clear()
            await self._conversation.end()

    async def _finish(self) -> None:
        """Answer what was asked before the client closed its end, as long as somebody reads; nobody answers us now."""
        for id in self._subscribed:
            self._running[id].cancel()
        for waiting in self._asked.values():
            waiting.set_result(None)
        until = asyncio.get_running_loop().time() + LAST_ANSWERS
        while self._wire.has_reader and asyncio.get_running_loop().time() < until:
            tasks = [*self._running.values(), *(one.task for one in self._calls.values() if one.task)]
            if not tasks:
                break
            await asyncio.wait(tasks, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)

    def _take(self, line: bytes | CutLine) -> None:
        """Take one line, or the ends of one that was too long, whose sender waits for an answer all the same."""
        if isinstance(line, CutLine):
            too_long = f"a line has at most {self._wire.limit} bytes"
            return self._refuse(request_id_from_ends(*line), INVALID_REQUEST, too_long)
        try:
            message = decode_json(line, Message)
        except msgspec.ValidationError:
            return self._refuse(None, INVALID_REQUEST, "a line is one JSON-RPC message")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._refuse(None, PARSE_ERROR, "the line is no JSON")
        if message.method is None:
            return self._settle(message)
        if message.id is msgspec.UNSET:
            return self._hear(message)
        if message.id in self._running or message.id in self._calls:
            return self._refuse(message.id, INVALID_REQUEST, "a request with this id is under way")
        if len(self._running) + len(self._calls) >= MOST_REQUESTS:
            return self._refuse(message.id, INTERNAL_ERROR, f"{MOST_REQUESTS} requests are under way already")
        if message.method in CALLS:
            return self._begin_call(message)
        self._running[message.id] = asyncio.create_task(self._answer(message))
        return None

    def _settle(self, message: Message) -> None:
        """The client answered a request of ours; an error is no answer."""
        waiting = self._asked.get(message.id)
        if waiting and not waiting.done():
            waiting.set_result(None if message.result is msgspec.UNSET else message.result)

    def _hear(self, message: Message) -> None:
        id = (message.params or {}).get("requestId")
        if message.method != "notifications/cancelled" or not isinstance(id, str | int):
            return
        if id in self._running:
            self._running[id].cancel()
        elif id in self._calls:
            self._calls.pop(id).cancel()  # a request that was cancelled has no answer

    async def _answer(self, message: Message) -> None:
        try:
            result = await self._result(message)
            self._reply(message, lambda: result)
        except asyncio.CancelledError:
            return
        except Exception as error:
            self._fail(message, error)
        finally:
            del self._running[message.id]
        await self._wire.drain()

    def _begin_call(self, message: Message) -> None:
        """Start a call, which is answered in the very step of the loop in which it ends."""
        agent, meta, is_stateless = self._server.agent, message.meta, message.is_stateless
        try:
            if is_stateless:
                check_envelope(meta)
            capabilities = meta.get(CAPABILITIES_KEY) if is_stateless else self._capabilities
            request = self._server.request(agent, message.method or "", message.params or {})
            wants = self._wants(meta, meta.get(LOG_LEVEL_KEY) if is_stateless else self._log_level)
            call = self._conversation.begin(agent, request, capabilities=capabilities, wants=wants)
        except Exception as error:
            return self._fail(message, error)
        self._calls[message.id] = call
        if is_stateless:
            return call.then(lambda: self._answer_statelessly(message, request, call))
        return self._answer_when_over(message, request, call, Asking(call, self._ask))

    def _answer_statelessly(self, message: Message, request: CallRequest, call: ServedCall) -> None:
        """Answer with the result, or with questions; the next request goes on then."""
        if self._calls.pop(message.id, None) is call:
            self._reply(
                message, lambda: stateless(self._conversation.stateless_answer(self._server.agent, request, call))
            )
        else:
            call.cancel()

    def _answer_when_over(self, message: Message, request: CallRequest, call: ServedCall, asking: Asking) -> None:
        """Answer with the result, after all questions."""
        asking.update()
        if not call.is_over:
            call.then(lambda: self._answer_when_over(message, request, call, asking))
        elif self._calls.pop(message.id, None) is call:
            self._reply(message, lambda: self._result_of(request, call))

    def _result_of(self, request: CallRequest, call: ServedCall) -> Json:
        result = result_for(request, call.result())
        if request.method == SUBSCRIBE:
            self._conversation.follow(self._server.agent, request.uri, self._tell_update)
        return result

    def _tell_update(self, uri: str, **meta: Json) -> None:
        params = {"uri": uri, **({"_meta": meta} if meta else {})}
        self._send({"method": "notifications/resources/updated", "params": params})

    def _reply(self, message: Message, result: Callable[[], Json]) -> None:
        try:
            self._send({"id": message.id, "result": result()})
        except Exception as error:  # a fault of ours must not end the connection, whose other calls go on
            self._fail(message, error)

    def _fail(self, message: Message, error: Exception) -> None:
        if isinstance(error, RpcFault):
            self._send({"id": message.id, "error": error.error})
        elif isinstance(error, Refused):
            self._refuse(message.id, INVALID_PARAMS, str(error))
        else:
            log.error("%s failed", message.method, exc_info=error)
            self._refuse(message.id, INTERNAL_ERROR, "the server failed on this request; its log says how")

    async def _result(self, message: Message) -> Json:
        if message.is_stateless:
            check_envelope(message.meta)
            return stateless(await self._stateless_result(message))
        return await self._handshake_result(message)

    async def _handshake_result(self, message: Message) -> Json:
        if listed := await self._server.listing(self._server.agent, message.method or ""):
            return listed
        match message.method:
            case "initialize":
                return self._initialize(message.params or {})
            case "ping":
                return {}
            case "logging/setLevel":
                return self._set_level(message.params or {})
            case "resources/unsubscribe":
                self._conversation.unfollow(str((message.params or {}).get("uri")))
                return {}
        raise RpcFault(METHOD_NOT_FOUND, "Method not found", message.method)

    async def _stateless_result(self, message: Message) -> dict[str, Any]:
        if listed := await self._server.listing(self._server.agent, message.method or ""):
            return {**listed, **NOT_CACHED}
        match message.method:
            case "server/discover":
                capabilities = self._server.capabilities(self._server.agent)
                found = {"supportedVersions": [STATELESS_VERSION], "capabilities": capabilities}
                return {**found, "instructions": INSTRUCTIONS, **NOT_CACHED}
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
            "capabilities": {**self._server.capabilities(self._server.agent), "logging": {}},
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }

    async def _listen(self, message: Message) -> dict[str, Any]:
        """Tell of changes until the client cancels the request."""
        wanted = (message.params or {}).get("notifications")
        if not isinstance(wanted, dict):
            raise RpcFault(INVALID_PARAMS, "subscriptions/listen needs notifications")
        meta = {SUBSCRIPTION_KEY: message.id}
        kinds = [kind for kind in LIST_KINDS if wanted.get(f"{kind}ListChanged") is True]
        uris = await self._followed(wanted.get("resourceSubscriptions"))
        told: dict[str, Json] = {f"{kind}ListChanged": True for kind in kinds}
        told |= {"resourceSubscriptions": uris} if uris else {}
        params = {"_meta": meta, "notifications": told}
        offers = self._server.offers(self._server.agent)
        stops = [offers.listen(uri, lambda changed: self._tell_update(changed, **meta)) for uri in uris]
        self._send({"method": "notifications/subscriptions/acknowledged", "params": params})
        if kinds:
            self._start_watch()
        self._subscribed[message.id] = kinds
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._subscribed.pop(message.id, None)
            for stop in stops:
                stop()
        return {"_meta": meta}

    async def _followed(self, uris: Json) -> list[str]:
        """Those of some resources whose changes are told."""
        wanted = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        follow = self._conversation.follow_by_call
        return [uri for uri in wanted[:MOST_FOLLOWED] if await follow(self._server.agent, uri)]

    def _start_watch(self) -> None:
        if self._watch is None:
            self._watch = asyncio.create_task(self._tell_changes())

    async def _tell_changes(self) -> None:
        served = self._server.default_agent()
        async for agents in self._server.changes():
            for kind in agents.get(served, ()):
                changed = {"method": f"notifications/{kind}/list_changed"}
                if self._has_begun:
                    self._send(changed)
                for id in [id for id, kinds in self._subscribed.items() if kind in kinds]:
                    self._send({**changed, "params": {"_meta": {SUBSCRIPTION_KEY: id}}})

    async def _ask(self, request: ClientRequest) -> Json:
        """Put a question to the client and wait; whoever waits no more takes it back."""
        id = f"question-{next(self._numbers)}"
        waiting = self._asked[id] = asyncio.get_running_loop().create_future()
        self._send({"id": id, "method": request.method, "params": request.params})
        try:
            return await waiting
        finally:
            del self._asked[id]
            if not waiting.done() or waiting.cancelled():
                self._send({"method": "notifications/cancelled", "params": {"requestId": id}})

    def _set_level(self, params: dict[str, Any]) -> Json:
        if (level := params.get("level")) not in LEVELS:
            raise RpcFault(INVALID_PARAMS, f"there is no level {level}; there are {', '.join(LEVELS)}")
        self._log_level = level
        return {}

    def _wants(self, meta: dict[str, Any], level: Json) -> Wants:
        """What the client wants to hear while a call runs."""
        token = meta.get("progressToken")
        if token is None and level is None:
            return NOTHING
        report = None if isinstance(token, bool) or not isinstance(token, str | int) else self._reporter(token)
        if report is None and level not in LEVELS:
            return NOTHING
        return Wants(report=report, log=self._log if level in LEVELS else None, log_level=level)

    async def _log(self, message: JsonObject) -> None:
        self._send({"method": "notifications/message", "params": message})
        await self._wire.drain()

    def _reporter(self, token: str | int) -> Report:
        async def report(number: int, text: str) -> None:
            params = {"progressToken": token, "progress": number, "message": text}
            self._send({"method": "notifications/progress", "params": params})
            await self._wire.drain()

        return report

    def _refuse(self, id: Json, code: int, text: str) -> None:
        self._send({"id": id, "error": {"code": code, "message": text}})

    def _send(self, message: dict[str, Any]) -> None:
        self._wire.send(encode_json({"jsonrpc": "2.0", **message}))
