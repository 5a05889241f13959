"""One connection to a server, in a task of its own: whatever happens to it, it happens to nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextvars import ContextVar
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    EmptyResult,
    Implementation,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    ToolListChangedNotification,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from toolyard.kinds.mcp.asks import ServerAsks
from toolyard.kinds.mcp.health import ServerLost
from toolyard.kinds.mcp.listing import on_wire
from toolyard.kinds.mcp.streams import ChildStreams
from toolyard.process.waiting import run_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp.client.session import IncomingMessage
    from mcp.types import CallToolResult

    from toolyard.core.tool import CallContext, JsonObject
    from toolyard.kinds.mcp.listing import McpListing, Offered
    from toolyard.kinds.mcp.streams import HttpStreams

log = logging.getLogger("toolyard.mcp")
logging.getLogger("mcp").addHandler(logging.NullHandler())  # what goes wrong there is told by us, where nobody logs
T = TypeVar("T")
CLOSE_PATIENCE = 2.0
CLIENT = Implementation(name="toolyard", version=version("toolyard"))
CONNECTION_CLOSED = -32000
"""The code of the SDK's own error when a server is gone."""
LIST_CHANGES = (ToolListChangedNotification, PromptListChangedNotification, ResourceListChangedNotification)
CALL: ContextVar[CallContext | None] = ContextVar("mcp_call", default=None)
"""The call that a task works on."""


class McpConnection:
    """From its start to its end; `ask` may be used by many at once."""

    def __init__(
        self,
        streams: ChildStreams | HttpStreams,
        *,
        server: str,
        legacy: bool,
        passes_on: bool,
        on_change: Callable[[McpConnection], object],
        on_update: Callable[[str], object],
    ) -> None:
        self.streams = streams
        self.busy = 0
        self.retiring = False
        """Whether it ends with the last of its calls, and takes no more."""
        self.offered: asyncio.Task[Offered] | None = None
        """Asks for the server's tools as they are now: again whenever it says that they changed."""
        self.listed: asyncio.Task[McpListing | None] | None = None
        """Asks for all that it has; None of one that does not say."""
        self.is_noted = False
        """Whether its end was put down to its server's health."""
        self._server = server
        self._legacy = legacy
        self._passes_on = passes_on
        """Whether its calls come from a client that what the server asks can be passed on to."""
        self._on_change, self._on_update = on_change, on_update
        self._followed: dict[str, asyncio.Task[None] | None] = {}
        """Resources whose changes the server tells, with what hears of them where each has a stream of its own."""
        self._calls: list[CallContext] = []
        self._clocks: dict[asyncio.Timeout, float | None] = {}
        """The time limits of all calls; while a person is asked they stand still, with what was left of each."""
        self._waiting_for_person = 0
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Client] = loop.create_future()
        self._over: asyncio.Future[None] = loop.create_future()
        self._closing = asyncio.Event()
        self._error: BaseException | None = None
        self._task = loop.create_task(self._live())

    @property
    def has_ended(self) -> bool:
        return self._over.done() or self.streams.ended.is_set()

    async def client(self, within: float) -> Client:
        """The client, when it is connected; `ServerLost` if that fails or takes too long."""
        waits: list[asyncio.Future[Any]] = [self._ready, self._over]
        if not any(one.done() for one in waits):  # or each call would take two turns of the loop more
            await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done() and not self._ready.cancelled():
            return self._ready.result()
        lost = self.lost() if self._over.done() else ServerLost(f"it was not ready within {within:g} seconds")
        await self.aclose()
        raise lost

    @property
    def client_now(self) -> Client:
        """The client of a connection that is ready."""
        return self._ready.result()

    async def call_tool(self, name: str, arguments: JsonObject, **options: Any) -> CallToolResult | JsonObject:
        """What a tool answers: as it was, where it came by the short way; options are the SDK's, and need its own."""
        if isinstance(self.streams, ChildStreams) and not any(options.values()):
            answer = await self.streams.call_tool(name, arguments)
            if answer.get("resultType", "complete") == "complete":
                return answer
            with self.streams.put_back(name, arguments, answer):
                return await self.client_now.call_tool(name, dict(arguments), **options)
        return await self.client_now.call_tool(name, dict(arguments), **options)

    async def ask(self, work: Callable[[], Awaitable[T]], context: CallContext, limit: float) -> T:
        """Do something with the server on behalf of a call, within a time in which no wait for a person counts."""
        CALL.set(context)
        self._calls.append(context)
        self.streams.hears_log = any(call.client and call.client.log_level for call in self._calls)
        self.busy += 1
        try:
            async with asyncio.timeout(limit) as clock:
                self._clocks[clock] = None
                if self._waiting_for_person:
                    self._stop(clock)
                return await self._first_of(work)
        finally:
            self._clocks.pop(clock, None)
            self._calls.remove(context)
            self.busy -= 1

    async def _first_of(self, work: Callable[[], Awaitable[T]]) -> T:
        """What comes of some work, or that the connection ended under it."""
        task = asyncio.ensure_future(work())
        try:
            waits: list[asyncio.Future[Any]] = [task, self._over]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=CLOSE_PATIENCE)  # in which the server is told of it
        error = None if task.cancelled() else task.exception()
        if (task.cancelled() or error) and (lost := await self.loss_behind(error)):
            raise lost
        return task.result()

    async def loss_behind(self, error: BaseException | None) -> ServerLost | None:
        """Why the connection ended, if that is what made something fail; waits until all of it is known."""
        if not (self.has_ended or is_closing(error)):
            return None
        await asyncio.wait({self._over}, timeout=CLOSE_PATIENCE)
        return self.lost() if self._over.done() else None

    async def aclose(self) -> None:
        """End it; a child is gone with its whole tree when this returns."""
        self._closing.set()
        await run_shielded(self._close())

    async def _close(self) -> None:
        await asyncio.wait({self._task}, timeout=CLOSE_PATIENCE)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def lost(self) -> ServerLost:
        """Why it ended."""
        streams, error = self.streams, self._error
        if isinstance(streams, ChildStreams):
            if self._closing.is_set() or (streams.why_killed and streams.end):
                return ServerLost(streams.why_killed or "it was ended")
            if streams.end is not None and not is_refusal(error):
                end = streams.end
                return ServerLost(f"it ended by itself ({end})", exit_code=end.exit_code, signal=end.signal)
        return ServerLost(in_words(error) if error else "the connection was closed")

    async def _live(self) -> None:
        asks = ServerAsks(self._server, self._call, self._clocks_stopped)
        try:
            async with Client(
                self.streams,
                mode="legacy" if self._legacy else "auto",
                client_info=CLIENT,
                cache=None,
                elicitation_callback=asks.elicit,
                sampling_callback=asks.sample if self._passes_on else None,
                list_roots_callback=asks.list_roots if self._passes_on else None,
                logging_callback=asks.log,
                message_handler=self._on_message,
            ) as client:
                self._ready.set_result(client)
                await self._until_end(client)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever breaks in there is this connection's alone
            self._error = error
        finally:
            for listening in filter(None, self._followed.values()):
                listening.cancel()
            if not self._ready.done():
                self._ready.cancel()
            self._over.set_result(None)

    async def _until_end(self, client: Client) -> None:
        waits = [asyncio.ensure_future(self._closing.wait()), asyncio.ensure_future(self.streams.ended.wait())]
        following = asyncio.ensure_future(self._follow(client))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*waits, following):
                task.cancel()
            await asyncio.wait([*waits, following])

    async def _follow(self, client: Client) -> None:
        """Hear of changes of the lists, where the server tells them on a stream of their own."""
        from mcp.client.subscriptions import ListenNotSupportedError

        has = client.server_capabilities
        tools, prompts, resources = (bool(one and one.list_changed) for one in (has.tools, has.prompts, has.resources))
        if client.session.discover_result is None or not (tools or prompts or resources):
            return
        listening = client.listen(
            tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
        )
        with contextlib.suppress(ListenNotSupportedError):
            try:
                async with listening as changes:
                    async for _ in changes:
                        self._on_change(self)
            except Exception as error:  # it has no part in calls, which go on
                log.info("a server's lists are not followed: %s", in_words(error))

    async def follow(self, uri: str) -> None:
        """Have the server tell of changes of a resource; raises what it says against that."""
        client = self._ready.result()
        if uri in self._followed:
            return
        if client.session.discover_result is None:
            await client.session.send_request(SubscribeRequest(params=SubscribeRequestParams(uri=uri)), EmptyResult)
            self._followed[uri] = None
            return
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = self._followed[uri] = asyncio.ensure_future(self._hear_updates(client, uri, heard))
        await asyncio.wait({heard, task}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            del self._followed[uri]
            task.result()

    def unfollow(self, uri: str) -> None:
        """Nobody wants to hear of the resource any more."""
        if uri not in self._followed:
            return
        if listening := self._followed.pop(uri):
            listening.cancel()
        elif not self.has_ended:
            self._leaving = asyncio.ensure_future(self._unsubscribe(uri))

    async def _unsubscribe(self, uri: str) -> None:
        try:
            request = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
            await self._ready.result().session.send_request(request, EmptyResult)
        except Exception as error:  # it tells of what nobody hears then
            log.info("a resource is still followed: %s", in_words(error))

    async def _hear_updates(self, client: Client, uri: str, heard: asyncio.Future[None]) -> None:
        async with client.listen(resource_subscriptions=[uri]) as changes:
            heard.set_result(None)
            async for change in changes:
                self._on_update(getattr(change, "uri", uri))

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, LIST_CHANGES):
            self._on_change(self)
        elif isinstance(message, ResourceUpdatedNotification) and self._ready.result().session.discover_result is None:
            self._on_update(message.params.uri)  # in the newer era it is heard on a stream of its own

    def _call(self) -> CallContext | None:
        """The call that something belongs to; where that is not said, the newest."""
        return CALL.get() or (self._calls[-1] if self._calls else None)

    @contextlib.contextmanager
    def _clocks_stopped(self) -> Iterator[None]:
        self._waiting_for_person += 1
        for clock in self._clocks:
            self._stop(clock)
        try:
            yield
        finally:
            self._waiting_for_person -= 1
            if not self._waiting_for_person:
                now = asyncio.get_running_loop().time()
                for clock, left in self._clocks.items():
                    if left is not None and not clock.expired():
                        clock.reschedule(now + left)
                    self._clocks[clock] = None

    def _stop(self, clock: asyncio.Timeout) -> None:
        when = clock.when()
        if when is not None:
            self._clocks[clock] = max(when - asyncio.get_running_loop().time(), 0.0)
            clock.reschedule(None)


def error_of(error: BaseException) -> JsonObject | None:
    """The error that a server reported, if it was one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return on_wire(error.error) if isinstance(error, MCPError) else None


def is_closing(error: BaseException | None) -> bool:
    """Whether something failed because the connection is being closed."""
    reported = error_of(error) if error else None
    return reported is not None and reported["code"] == CONNECTION_CLOSED


def is_refusal(error: BaseException | None) -> bool:
    """Whether a server said no, and was ended because of that."""
    reported = error_of(error) if error else None
    return reported is not None and reported["code"] != CONNECTION_CLOSED


def in_words(error: BaseException) -> str:
    """An error for a person: of a group the first, which is the one that began it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error).strip()
    return text if text and len(text) > 3 else f"{type(error).__name__} {text}".strip()
