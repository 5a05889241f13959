"""What carries messages between the SDK and a server: a child of our own process layer, or HTTP."""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData
from mcp.types.jsonrpc import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.kinds.mcp.listing import without_bad_tools
from toolyard.process.companion import Companion
from toolyard.process.output import LastWords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from mcp.client._transport import TransportStreams

    from toolyard.core.tool import JsonObject
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
        self.printed = LastWords(LAST_OUTPUT)
        self.faults: list[str] = []
        """Tools that were left out of its lists, and why."""
        self.hears_log = False
        """Whether somebody wants to hear its log."""
        self._keeper, self._request = keeper, request
        self._companion: Companion | None = None
        self._messages = ChildMessages()
        self._input = ChildInput(self._send, self._messages)
        self._short = ShortWay(self._send)

    async def __aenter__(self) -> TransportStreams:
        self._companion = Companion(
            self._keeper, self._request, on_line=self._on_line, on_log=self._keep, on_end=self._on_end
        )
        return self._messages, self._input

    async def call_tool(self, name: str, arguments: JsonObject) -> JsonObject:
        """Call a tool by a request of our own, beside those of the SDK: that takes a fraction of the time.

        A question that is the answer to it is put back, for the SDK to find when it asks the same.
        """
        meta = self._input.envelope
        params = {"name": name, "arguments": arguments, **({"_meta": meta} if meta else {})}
        answer = await self._short.ask("tools/call", params)
        if answer.error:
            raise MCPError.from_error_data(ErrorData.model_validate(answer.error))
        return answer.result or {}

    @contextmanager
    def put_back(self, name: str, arguments: JsonObject, answer: JsonObject) -> Iterator[None]:
        """Within this, the next request of the SDK that is this call has an answer that came already."""
        one = (name, arguments, answer)
        self._input.answers.append(one)
        try:
            yield
        finally:
            self._input.answers[:] = [other for other in self._input.answers if other is not one]

    def _send(self, line: bytes) -> None:
        if self._companion:
            self._companion.send(line)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it with its whole tree."""
        if self._companion:
            await self._companion.aclose()

    def _on_line(self, line: bytes) -> None:
        if not line.strip() or self.ended.is_set() or self._short.takes(line):
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
        self.printed.add(data)
        if log.isEnabledFor(logging.INFO):
            log.info("%s", data[-LAST_OUTPUT:].decode("utf-8", "replace").rstrip())

    def _on_end(self, end: CompanionEnd) -> None:
        self.end = end
        self.ended.set()
        self._short.close()
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


class RawAnswer(msgspec.Struct, frozen=True):
    """A line that answers a request of ours, not of the SDK's."""

    id: str
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class ShortWay:
    """Requests and their answers, without models of them, tasks and queues."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[RawAnswer]] = {}

    async def ask(self, method: str, params: JsonObject) -> RawAnswer:
        """The answer; `ConnectionResetError` when there will be none. Whoever waits no more takes the request back."""
        id = f"toolyard-{next(self._numbers)}"
        waiting: asyncio.Future[RawAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[id] = waiting
        self._send(encode_json({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        try:
            return await waiting
        except asyncio.CancelledError:
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": id}}
            self._send(encode_json({"jsonrpc": "2.0", **cancelled}))
            raise
        finally:
            del self._waiting[id]

    def takes(self, line: bytes) -> bool:
        """Whether a line is an answer to one of these requests."""
        if not self._waiting:
            return False
        try:
            answer = decode_json(line, RawAnswer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
        return waiting is not None

    def close(self) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError("its server ended"))


class ChildInput:
    """The way to a child, as the SDK writes to it."""

    def __init__(self, send: Callable[[bytes], None], messages: ChildMessages) -> None:
        self._send, self._messages = send, messages
        self.envelope: JsonObject | None = None
        """What every request of the newer era has to carry, as the SDK writes it."""
        self.answers: list[tuple[str, JsonObject, JsonObject]] = []
        """Answers to calls that came already, with the tool and the arguments of each."""

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            params = message.params or {}
            if message.method == "tools/list" and isinstance(meta := params.get("_meta"), dict):
                self.envelope = {name: one for name, one in meta.items() if name != "progressToken"}
            if message.method == "tools/call" and self._answered(message.id, params):
                return
        self._send(message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    def _answered(self, id: str | int, params: JsonObject) -> bool:
        for one in self.answers:
            name, arguments, answer = one
            if (name, arguments) == (params.get("name"), params.get("arguments")) and "requestState" not in params:
                self.answers.remove(one)
                self._messages.put(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=id, result=dict(answer))))
                return True
        return False

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
        self.printed = LastWords(LAST_OUTPUT)
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
