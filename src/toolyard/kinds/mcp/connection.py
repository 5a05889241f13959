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
    CreateMessageResult,
    ElicitResult,
    ErrorData,
    Implementation,
    ListRootsResult,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ToolListChangedNotification,
)

from toolyard.core.tool import ClientRequest
from toolyard.kinds.mcp.health import ServerLost
from toolyard.kinds.mcp.listing import on_wire
from toolyard.kinds.mcp.streams import ChildStreams
from toolyard.process.waiting import run_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp.client.session import ClientRequestContext, IncomingMessage
    from mcp.types import CreateMessageRequestParams, ElicitRequestParams, LoggingMessageNotificationParams

    from toolyard.core.tool import CallContext, JsonObject
    from toolyard.kinds.mcp.streams import HttpStreams

log = logging.getLogger("toolyard.mcp")
logging.getLogger("mcp").addHandler(logging.NullHandler())  # what goes wrong there is told by us, where nobody logs
T = TypeVar("T")
CLOSE_PATIENCE = 2.0
CLIENT = Implementation(name="toolyard", version=version("toolyard"))
CONNECTION_CLOSED = -32000
"""The code of the SDK's own error when a server is gone."""
MISSING_CAPABILITY = -32021
"""The code of an error that says what a client would have to be able to do."""
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
    ) -> None:
        self.streams = streams
        self.busy = 0
        self.retiring = False
        """Whether it ends with the last of its calls, and takes no more."""
        self.listed: asyncio.Task[None] | None = None
        """Asks for the server's list for the first time."""
        self.is_noted = False
        """Whether its end was put down to its server's health."""
        self._server = server
        self._legacy = legacy
        self._passes_on = passes_on
        """Whether its calls come from a client that what the server asks can be passed on to."""
        self._on_change = on_change
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
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done() and not self._ready.cancelled():
            return self._ready.result()
        lost = self.lost() if self._over.done() else ServerLost(f"it was not ready within {within:g} seconds")
        await self.aclose()
        raise lost

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
        if self.has_ended and (task.cancelled() or task.exception()):
            await asyncio.wait({self._over}, timeout=CLOSE_PATIENCE)  # until all of it is known
            raise self.lost()
        return task.result()

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
        try:
            async with Client(
                self.streams,
                mode="legacy" if self._legacy else "auto",
                client_info=CLIENT,
                cache=None,
                elicitation_callback=self._elicit,
                sampling_callback=self._sample if self._passes_on else None,
                list_roots_callback=self._list_roots if self._passes_on else None,
                logging_callback=self._log,
                message_handler=self._on_message,
            ) as client:
                self._ready.set_result(client)
                await self._until_end(client)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever breaks in there is this connection's alone
            self._error = error
        finally:
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

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, LIST_CHANGES):
            self._on_change(self)

    async def _elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """A server wants to know something of a person, whose time is not the tool's."""
        call = self._call()
        if call is None or (call.client is None and call.ask_person is None):
            return ElicitResult(action="decline")
        with self._clocks_stopped():
            if call.client is not None:
                form = on_wire(params)
                form["message"] = f"{self._server} asks: {params.message}"
                answer = await call.client.ask(key_of(context, "form"), request_of("elicitation/create", form))
                return ElicitResult.model_validate(answer if isinstance(answer, dict) else {"action": "decline"})
            return await self._ask_person(call, params)

    async def _ask_person(self, call: CallContext, params: ElicitRequestParams) -> ElicitResult:
        schema: JsonObject = getattr(params, "requested_schema", None) or {"type": "object", "properties": {}}
        url = getattr(params, "url", None)
        asked = (
            call.ask_person(f"{params.message}\n{url}" if url else params.message, schema) if call.ask_person else None
        )
        filled = await asked if asked else None
        if filled is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if url else dict(filled))

    async def _sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """A server wants a model to answer; only who made the call has one to offer, and decides."""
        call = self._call()
        if call is not None and call.client is not None:
            with self._clocks_stopped():
                answer = await call.client.ask(
                    key_of(context, "message"), request_of("sampling/createMessage", on_wire(params))
                )
            if isinstance(answer, dict):
                return CreateMessageResult.model_validate(answer)
        needed: JsonObject = {"requiredCapabilities": {"sampling": {}}}
        return ErrorData(code=MISSING_CAPABILITY, message="there is no model that can be asked", data=needed)

    async def _list_roots(self, context: ClientRequestContext) -> ListRootsResult:
        """A server wants to know where to work: where the client says, else where the call works."""
        call = self._call()
        answer = (
            await call.client.ask(key_of(context, "roots"), request_of("roots/list", {}))
            if call and call.client
            else None
        )
        if isinstance(answer, dict):
            return ListRootsResult.model_validate(answer)
        return ListRootsResult.model_validate({"roots": [{"uri": call.cwd.as_uri()}] if call else []})

    async def _log(self, params: LoggingMessageNotificationParams) -> None:
        call = self._call()
        if call is not None and call.client is not None and call.client.log_level:
            call.client.log(on_wire(params))

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


def key_of(context: ClientRequestContext, otherwise: str) -> str:
    """The name that a server of the newer era gives to what it asks; in the older one requests have numbers."""
    return context.request_id if isinstance(context.request_id, str) else otherwise


def request_of(method: str, params: JsonObject) -> ClientRequest:
    return ClientRequest(method=method, params=params)


def error_of(error: BaseException) -> JsonObject | None:
    """The error that a server reported, if it was one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return on_wire(error.error) if isinstance(error, MCPError) else None


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
