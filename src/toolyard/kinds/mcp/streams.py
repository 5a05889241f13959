"""What carries messages between the SDK and a server: a child of our own process layer, or HTTP."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import JSONRPCNotification, JSONRPCResponse, jsonrpc_message_adapter

from toolyard.kinds.mcp.listing import without_bad_tools
from toolyard.process.companion import Companion

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.client._transport import TransportStreams

    from toolyard.kinds.mcp.reference import McpAddress
    from toolyard.process.companion import CompanionEnd, CompanionRequest
    from toolyard.process.keeper.link import KeeperLink

log = logging.getLogger("toolyard.mcp")
MOST_LOGGED = 1000
"""How many messages may wait before further ones of a server's log are dropped."""
LAST_OUTPUT = 4096
"""How much is kept of what a server prints beside its messages."""
MOST_WAITING = 10_000
"""How many messages may wait to be taken in; whoever sends faster than that is ended."""


class ChildStreams:
    """A server as a child: its lines are messages; what else it prints is kept for whoever asks why it ended."""

    def __init__(self, keeper: KeeperLink, request: CompanionRequest) -> None:
        self.ended = asyncio.Event()
        self.end: CompanionEnd | None = None
        self.why_killed = ""
        self.printed = b""
        self.faults: list[str] = []
        """Tools that were left out of its lists, and why."""
        self.hears_log = False
        """Whether somebody wants to hear its log."""
        self._keeper, self._request = keeper, request
        self._companion: Companion | None = None
        self._messages = ChildMessages()

    async def __aenter__(self) -> TransportStreams:
        self._companion = Companion(
            self._keeper, self._request, on_line=self._on_line, on_log=self._keep, on_end=self._on_end
        )
        return self._messages, ChildInput(self._companion)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it with its whole tree."""
        if self._companion:
            await self._companion.aclose()

    def _on_line(self, line: bytes) -> None:
        if not line.strip() or self.ended.is_set():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._keep(line + b"\n")  # a greeting, or a print that was forgotten
            return
        if is_log(message) and not (self.hears_log and self._messages.waiting < MOST_LOGGED):
            return  # it may be long, and nothing depends on it
        if isinstance(message, JSONRPCResponse):
            without_bad_tools(message.result, self.faults)
        if self._messages.waiting >= MOST_WAITING:
            self.why_killed = self.why_killed or f"it sent more than {MOST_WAITING} messages that nobody had asked for"
            if self._companion:
                self._companion.kill()
            return
        self._messages.put(SessionMessage(message))

    def _keep(self, data: bytes) -> None:
        self.printed = (self.printed + data[-LAST_OUTPUT:])[-LAST_OUTPUT:]
        if log.isEnabledFor(logging.INFO):
            log.info("%s", data[-LAST_OUTPUT:].decode("utf-8", "replace").rstrip())

    def _on_end(self, end: CompanionEnd) -> None:
        self.end = end
        self.ended.set()
        self._messages.put(None)


def is_log(message: object) -> bool:
    return isinstance(message, JSONRPCNotification) and message.method == "notifications/message"


class ChildMessages:
    """What comes from a child, as the SDK reads it."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[SessionMessage | None] = asyncio.Queue()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def put(self, message: SessionMessage | None) -> None:
        """Add a message; None at the end."""
        self._queue.put_nowait(message)

    async def receive(self) -> SessionMessage | Exception:
        message = await self._queue.get()
        if message is None:
            raise StopAsyncIteration
        return message

    async def aclose(self) -> None:
        """It ends with the child."""

    def __aiter__(self) -> ChildMessages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self.receive()

    async def __aenter__(self) -> ChildMessages:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class ChildInput:
    """The way to a child, as the SDK writes to it."""

    def __init__(self, companion: Companion) -> None:
        self._companion = companion

    async def send(self, item: SessionMessage, /) -> None:
        self._companion.send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async def aclose(self) -> None:
        """The child is ended by whoever started it."""

    async def __aenter__(self) -> ChildInput:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class HttpStreams:
    """A server at an address."""

    def __init__(self, server: McpAddress, auth: Any) -> None:
        self.ended = asyncio.Event()
        self.printed = b""
        self.faults: list[str] = []
        self.hears_log = False
        self._server, self._auth = server, auth
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> TransportStreams:
        async with AsyncExitStack() as stack:
            read, write = await stack.enter_async_context(await self._opened(stack))
            self._stack = stack.pop_all()
        return SoundMessages(read, self.faults), write

    async def _opened(self, stack: AsyncExitStack) -> Any:
        server, headers = self._server, dict(self._server.headers)
        if server.form == "sse":
            from mcp.client.sse import sse_client

            return sse_client(server.url, headers=headers, auth=self._auth)
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        client = await stack.enter_async_context(create_mcp_http_client(headers=headers, auth=self._auth))
        return streamable_http_client(server.url, http_client=client, max_sse_event_size=None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)


class SoundMessages:
    """A stream of messages in which no tool costs the others of its list."""

    def __init__(self, stream: Any, faults: list[str]) -> None:
        self._stream, self._faults = stream, faults

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._checked(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> SoundMessages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._checked(await self._stream.__anext__())

    async def __aenter__(self) -> SoundMessages:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        closed: bool | None = await self._stream.__aexit__(kind, error, trace)
        return closed

    def _checked(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            without_bad_tools(item.message.result, self._faults)
        return item
