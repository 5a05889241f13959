"""Plain calls of the newer protocol era, answered without the SDK: most requests are that, and it halves their time.

Whatever is out of the ordinary about a request (headers that do not match, a wish to hear of progress) is the SDK's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.serve.mcp.messages import (
    CAPABILITIES_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    STATELESS_VERSION,
    VERSION_KEY,
    Message,
    RpcFault,
    call_request,
    stateless,
)
from toolyard.serve.mcp.tool_server import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from toolyard.serve.mcp.calls import ServedCall
    from toolyard.serve.mcp.http.conversations import Conversations

log = logging.getLogger("toolyard.serve")
WATCHED_AFTER = 0.05
"""After how many seconds it is looked whether the client is still there; most calls end sooner."""
SIGN_OF_LIFE = 15.0
"""How often a client hears that a call goes on: proxies close connections on which nothing happens."""
EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]
OF_PARAMETERS = "mcp-param-"
"""How headers begin that repeat arguments."""


def plain_call(scope: Scope, headers: Mapping[str, str], body: bytes) -> Message | None:
    """The call that a request is about; None when it is something else, or anything about it is unusual."""
    if scope["method"] != "POST" or headers.get("mcp-method") != "tools/call":
        return None
    accepts, content = headers.get("accept", ""), headers.get("content-type", "")
    if "application/json" not in accepts or "text/event-stream" not in accepts or content != "application/json":
        return None
    if len(headers) != len(scope["headers"]) or any(name.startswith(OF_PARAMETERS) for name in headers):
        return None
    try:
        message = decode_json(body, Message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return message if is_plain(message, headers) else None


def is_plain(message: Message, headers: Mapping[str, str]) -> bool:
    params, meta = message.params or {}, message.meta
    return (
        message.jsonrpc == "2.0"
        and isinstance(message.id, str | int)
        and message.method == "tools/call"
        and headers.get("mcp-protocol-version") == meta.get(VERSION_KEY) == STATELESS_VERSION
        and isinstance(params.get("name"), str)
        and headers.get("mcp-name") == params["name"]
        and isinstance(meta.get(CAPABILITIES_KEY), dict)
        and meta.keys().isdisjoint(WANTS_MORE)
    )


WANTS_MORE = {"progressToken", "io.modelcontextprotocol/logLevel"}
"""What asks for notifications before the answer."""


class DirectCalls:
    """Answers calls with one JSON object, as long as they do not take long."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    async def answer(self, message: Message, scope: Scope, receive: Receive, send: Send) -> None:
        reply = DirectReply(message, receive, send)
        try:
            connection = scope.get("client") and tuple(scope["client"])
            used = self._conversations.begin_request(scope["conversation"], connection, is_session=False)
        except Refused as refusal:
            return await reply.fail(INVALID_PARAMS, str(refusal))
        try:
            request = call_request(message.params or {})
            call = used.conversation.begin(scope["agent"], request, capabilities=message.meta[CAPABILITIES_KEY])
            if await reply.wait_for(call):
                await reply.send(
                    {"result": stateless(used.conversation.stateless_answer(scope["agent"], request, call))}
                )
        except Refused as refusal:
            await reply.fail(INVALID_PARAMS, str(refusal))
        except RpcFault as fault:
            await reply.send({"error": fault.error}, status=400)
        except Exception:  # a fault of ours is no reason to let the client wait
            log.exception("%s failed", message.method)
            await reply.fail(INTERNAL_ERROR, "the server failed on this request; its log says how")
        finally:
            self._conversations.end_request(used)
        return None


class DirectReply:
    """The response to one request: JSON, or a stream of events once there had to be a sign of life."""

    def __init__(self, message: Message, receive: Receive, send: Send) -> None:
        self._message = message
        self._receive, self._send = receive, send
        self._moved: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watching: asyncio.Task[None] | None = None
        self._is_stream = False

    async def wait_for(self, call: ServedCall) -> bool:
        """Whether the call came to an answer while the client was there; it is ended if the client goes."""
        call.then(lambda: self._end(there=True))
        watch = asyncio.get_running_loop().call_later(WATCHED_AFTER, self._watch)
        try:
            there = await self._moved
        except BaseException:
            call.cancel()
            raise
        finally:
            watch.cancel()
            if self._watching:
                self._watching.cancel()
                await asyncio.wait({self._watching})
        if not there:
            call.cancel()
        return there

    async def fail(self, code: int, text: str) -> None:
        await self.send({"error": {"code": code, "message": text}}, status=500 if code == INTERNAL_ERROR else 400)

    async def send(self, outcome: dict[str, Any], status: int = 200) -> None:
        body = encode_json({"jsonrpc": "2.0", "id": self._message.id, **outcome})
        if self._is_stream:
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        else:
            length = (b"content-length", str(len(body)).encode())
            headers = [(b"content-type", b"application/json"), length]
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def _end(self, *, there: bool) -> None:
        if not self._moved.done():
            self._moved.set_result(there)

    def _watch(self) -> None:
        self._watching = asyncio.ensure_future(self._show_life())

    async def _show_life(self) -> None:
        """Wait with the client, and tell it from time to time that the call goes on."""
        gone = asyncio.ensure_future(self._receive())
        try:
            while not (await asyncio.wait({gone}, timeout=SIGN_OF_LIFE))[0]:
                if not self._is_stream:
                    self._is_stream = True
                    await self._send({"type": "http.response.start", "status": 200, "headers": EVENTS})
                await self._send({"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True})
            self._end(there=False)
        finally:
            gone.cancel()
