"""Connections of the HTTP server: bounded in time, heard of when they close, and with plain calls answered at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolyard.serve.mcp.http.direct_calls import DirectCall
from toolyard.serve.mcp.http.plain_requests import plain_call, plain_head

if TYPE_CHECKING:
    from toolyard.serve.mcp.http.conversations import Conversations
    from toolyard.serve.mcp.http.guard import HttpGuard
    from toolyard.serve.mcp.http.plain_requests import PlainHead

READ_SIZE = 1 << 16
"""Four times that, as asyncio reads at once, is a mapping of memory for each request: it costs more than the read."""
HEADERS_WITHIN = 30.0
"""How many seconds a client has from its first byte, or from connecting, to the end of its headers."""


class BoundedConnection(H11Protocol):
    """One connection. What is no plain call reaches h11 as it came, byte by byte."""

    guard: HttpGuard
    conversations: Conversations
    waiting: asyncio.TimerHandle | None = None
    pending: bytes = b""
    """What came of a plain call so far, or after the one under way."""
    head: PlainHead | None = None
    """Of the plain call that is coming in."""
    last_head: tuple[bytes, PlainHead] | None = None
    """The last that was let in, as it came: most clients send the same again and again."""
    direct: DirectCall | None = None
    """The plain call under way."""
    ends_soon = False
    """Whether the server wants to end, and the call under way is the last."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.max_size = READ_SIZE
        self.wait_for_headers()

    def data_received(self, data: bytes) -> None:
        if self.direct is not None:
            self.pending += data
            self.flow.pause_reading()  # whoever sends the next request before it has the answer waits
            return
        data = self.pending + data
        if (self.head is not None or self.is_at_start()) and self.takes_directly(data):
            return
        self.pending, self.head = b"", None
        self.leave_to_h11(data)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_waiting()
        if self.direct is not None:
            self.direct.abandon()
            self.direct = None
        super().connection_lost(exc)
        if self.client is not None:
            self.conversations.connection_closed(self.client)

    def shutdown(self) -> None:
        if self.direct is None:
            super().shutdown()
        else:
            self.ends_soon = True

    def is_at_start(self) -> bool:
        """Whether what comes is the beginning of a request, and h11 has nothing to do with it yet."""
        conn = self.conn
        is_idle = conn.their_state is h11.IDLE and conn.our_state is h11.IDLE and not conn.trailing_data[0]
        return is_idle and not self.flow.write_paused

    def takes_directly(self, data: bytes) -> bool:
        """Whether it is a plain call, of which more may have to come; it begins as soon as all of it is there."""
        head = self.head or self.admitted_head(data)
        if head is None:
            return False
        if len(data) < head.ends:
            self.head, self.pending = head, data
            if self.waiting is None:
                self.wait_for_headers()
            return True
        message = plain_call(head.headers, data[head.begins : head.ends])
        origin = message and self.guard.origin_of(head.path, head.headers, self.client)
        if not message or not origin:
            return False
        self.head, self.pending = None, data[head.ends :]
        self.stop_waiting()
        self._unset_keepalive_if_required()
        headers = [*self.server_state.default_headers, *origin.headers]
        self.direct = direct = DirectCall(
            message, origin, headers, write=self.transport.write, on_end=self.directly_answered
        )
        direct.begin(self.conversations)
        return True

    def admitted_head(self, data: bytes) -> PlainHead | None:
        """The head of a plain call that is let in; nothing is waited for of one that is not."""
        if self.limit_concurrency and len(self.connections) >= self.limit_concurrency:
            return None
        if self.last_head and data.startswith(self.last_head[0]):
            return self.last_head[1]  # the same bytes are let in again; whether its agent is there is asked for each
        head = plain_head(data)
        if head is None or not self.guard.admits(head.path, head.headers):
            return None
        self.last_head = (data[: head.begins], head)
        return head

    def directly_answered(self) -> None:
        self.direct = None
        self.server_state.total_requests += 1
        if self.ends_soon:
            return self.transport.close()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.flow.resume_reading()
        if self.pending:
            self.loop.call_soon(self.take_pending)
        return None

    def take_pending(self) -> None:
        if self.pending and self.direct is None and not self.transport.is_closing():
            data, self.pending = self.pending, b""
            self.data_received(data)

    def leave_to_h11(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self.stop_waiting()
        elif self.waiting is None:
            self.wait_for_headers()

    def wait_for_headers(self) -> None:
        self.waiting = asyncio.get_running_loop().call_later(HEADERS_WITHIN, self.give_up)

    def stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def give_up(self) -> None:
        self.waiting = None
        if not self.transport or self.transport.is_closing():
            return
        if self.head is None:
            self.transport.close()
        else:  # there is a limit for bodies, too, and words for who passes it
            data, self.pending, self.head = self.pending, b"", None
            self.leave_to_h11(data)


def connections_of(guard: HttpGuard, conversations: Conversations) -> type[asyncio.Protocol]:
    """The connections of one server, as uvicorn makes them."""
    return type("Connection", (BoundedConnection,), {"guard": guard, "conversations": conversations})
