"""Plain calls of the newer protocol era, answered on their connection: most requests are that, and it saves much time.

Neither h11, nor ASGI, nor the SDK has a part in it, and the call's own task is the only one. Whatever is out of the
ordinary about a request (headers that do not match, a wish to hear of progress) goes the long way.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from toolyard.core.lossless_json import encode_json
from toolyard.serve.mcp.messages import (
    CAPABILITIES_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallRequest,
    RpcFault,
    call_request,
    stateless,
)
from toolyard.serve.mcp.tool_server import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.serve.mcp.calls import ServedCall
    from toolyard.serve.mcp.http.conversations import Conversations, OpenConversation
    from toolyard.serve.mcp.http.guard import CallOrigin, Header
    from toolyard.serve.mcp.messages import Message

log = logging.getLogger("toolyard.serve")
SIGN_OF_LIFE = 15.0
"""How often a client hears that a call goes on: proxies close connections on which nothing happens."""
JSON = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"
EVENTS = (
    b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\ntransfer-encoding: chunked\r\n\r\n"
)
STATUS = {
    200: b"HTTP/1.1 200 OK\r\n",
    400: b"HTTP/1.1 400 Bad Request\r\n",
    500: b"HTTP/1.1 500 Internal Server Error\r\n",
}


class DirectCall:
    """One request and its response: a JSON object, or a stream of events once there had to be a sign of life."""

    def __init__(
        self,
        message: Message,
        origin: CallOrigin,
        headers: Sequence[Header],
        *,
        write: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._message, self._origin, self._headers = message, origin, headers
        self._write, self._on_end = write, on_end
        self._conversations: Conversations | None = None
        self._used: OpenConversation | None = None
        self._request: CallRequest | None = None
        self._call: ServedCall | None = None
        self._alive: asyncio.TimerHandle | None = None
        self._is_stream = self._is_over = False

    def begin(self, conversations: Conversations) -> None:
        """Start the call; the response is written in the very step of the loop in which it ends."""
        origin = self._origin
        try:
            self._used = conversations.begin_request(origin.conversation, origin.connection, is_session=False)
            self._conversations = conversations
            self._request = call_request(self._message.params or {})
            capabilities = self._message.meta[CAPABILITIES_KEY]
            self._call = self._used.conversation.begin(origin.agent, self._request, capabilities=capabilities)
        except Exception as error:
            return self._fail(error)
        self._alive = asyncio.get_running_loop().call_later(SIGN_OF_LIFE, self._show_life)
        return self._call.then(self._answer)

    def abandon(self) -> None:
        """The client has gone, and its call ends."""
        if not self._is_over:
            self._close()
            if self._call:
                self._call.cancel()

    def _answer(self) -> None:
        if self._is_over or not (self._call and self._request and self._used):
            return None
        try:
            answer = self._used.conversation.stateless_answer(self._origin.agent, self._request, self._call)
            body = self._encoded({"result": stateless(answer)})
        except Exception as error:
            return self._fail(error)
        return self._end(200, body)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, Refused):
            status, fault = 400, {"code": INVALID_PARAMS, "message": str(error)}
        elif isinstance(error, RpcFault):
            status, fault = 400, error.error
        else:  # a fault of ours is no reason to let the client wait
            log.error("%s failed", self._message.method, exc_info=error)
            text = "the server failed on this request; its log says how"
            status, fault = 500, {"code": INTERNAL_ERROR, "message": text}
        self._end(status, self._encoded({"error": fault}))

    def _encoded(self, outcome: dict[str, Any]) -> bytes:
        return encode_json({"jsonrpc": "2.0", "id": self._message.id, **outcome})

    def _end(self, status: int, body: bytes) -> None:
        self._close()
        if self._is_stream:
            self._write(chunk(b"event: message\r\ndata: " + body + b"\r\n\r\n") + b"0\r\n\r\n")
        else:
            self._write(b"".join((STATUS[status], header_lines(self._headers), JSON % len(body), body)))
        self._on_end()

    def _close(self) -> None:
        self._is_over = True
        if self._alive:
            self._alive.cancel()
        if self._used and self._conversations:
            self._conversations.end_request(self._used)

    def _show_life(self) -> None:
        """Tell the client that the call goes on, and do it again after a while."""
        begin = b"" if self._is_stream else b"".join((STATUS[200], header_lines(self._headers), EVENTS))
        self._is_stream = True
        self._write(begin + chunk(b": ping\r\n\r\n"))
        self._alive = asyncio.get_running_loop().call_later(SIGN_OF_LIFE, self._show_life)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def header_lines(headers: Sequence[Header]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)
