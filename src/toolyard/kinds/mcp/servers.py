"""The connections of one server: made when a call needs one, made again with growing pauses where it keeps ending."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from toolyard.errors import ProcessError
from toolyard.kinds.mcp.health import ServerHealth, ServerLost
from toolyard.kinds.mcp.pinned import DefinitionChanged, made_of
from toolyard.kinds.mcp.reference import McpProgram
from toolyard.process.companion import CompanionRequest
from toolyard.process.interpreter import find_program, why_missing
from toolyard.process.limits import Limits
from toolyard.process.waiting import run_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from toolyard.core.reach import Reach
    from toolyard.core.tool import CallContext
    from toolyard.kinds.mcp.connection import McpConnection
    from toolyard.kinds.mcp.listing import McpDefinition, McpListing, Offered
    from toolyard.kinds.mcp.reference import McpAddress
    from toolyard.kinds.mcp.streams import ChildStreams, HttpStreams
    from toolyard.plugins.host import Host

T = TypeVar("T")
ConnectionKey: TypeAlias = "tuple[Reach, str, bool]"
"""How far its calls reach, in which folder, and whether what the server asks is passed on."""
WITHOUT_HANDSHAKE = "2026-07-28"
"""The first revision without one; a server that is known to speak an older is not asked for this first."""


class ServerConnections:
    """Usually one; another where calls reach further or less far, work in another folder, or come from a client."""

    def __init__(self, server: McpProgram | McpAddress, host: Host, *, start_timeout: float) -> None:
        self.server = server
        self.identity = f"{server.name}#{made_of(server)[:12]}"
        """What it is called, and what it is made of: of two that are called alike, each has its own."""
        self.health = ServerHealth()
        self.protocol = ""
        """The revision that it is known to speak."""
        self.on_listing: Callable[[McpListing], None] | None = None
        """Told what the server offers whenever it was asked in passing."""
        self.on_update: Callable[[str], None] = lambda _: None
        """Told which of the resources that are followed has changed."""
        self.host = host
        self._start_timeout = start_timeout
        self._connections: dict[ConnectionKey, McpConnection] = {}
        self._retired: list[McpConnection] = []
        self._looking: set[asyncio.Task[Any]] = set()
        self._followed: set[str] = set()
        """Resources whose changes somebody wants to hear of."""
        self._closed = False

    @property
    def running(self) -> int:
        return sum(not one.has_ended for one in (*self._connections.values(), *self._retired))

    @property
    def state(self) -> Literal["not started", "ready", "running", "failed"]:
        if self.running:
            return "running"
        if self.health.failures:
            return "failed"
        return "ready" if self.health.starts else "not started"

    @property
    def is_local(self) -> bool:
        return isinstance(self.server, McpProgram)

    async def ask(
        self,
        work: Callable[[McpConnection], Awaitable[T]],
        context: CallContext,
        *,
        cwd: str,
        limit: float,
        check: Callable[[Mapping[str, McpDefinition]], None] | None = None,
    ) -> T:
        """Do something with the server; what it leaves undone is ended before this returns, also when cancelled.

        `check` sees the tools that this very process of the server offers, and raises where nothing is to be asked of
        it. `ServerLost` when there is no connection, or it ended meanwhile; `TimeoutError` when it takes too long.
        """
        connection = await self._connected(context.reach, cwd, passes_on=context.client is not None)
        try:
            if check:
                check(await self._offered(connection, limit))
            answer = await connection.ask(lambda: work(connection), context, limit)
            self.health.failures = 0
            return answer
        except (TimeoutError, asyncio.CancelledError):
            # A server elsewhere was told; a child ends with all that the call started.
            connection.retiring = connection.retiring or self.is_local
            raise
        except ServerLost as lost:
            connection.retiring = True
            self._note(connection, lost)
            raise
        except DefinitionChanged:
            await self._tell_listing(connection)
            raise
        except Exception:
            # Over HTTP it may be that the server has forgotten the session; a new connection costs little.
            connection.retiring = connection.retiring or not self.is_local
            raise
        finally:
            if connection.retiring and not connection.busy:
                await run_shielded(self._end(connection))

    async def listing(self, reach: Reach, cwd: str) -> McpListing:
        """What the server offers, asked by a connection that is for nothing else."""
        from toolyard.kinds.mcp.connection import in_words
        from toolyard.kinds.mcp.listing import fetch_listing, fetch_tools

        connection = self._open(reach, cwd)
        try:
            async with asyncio.timeout(self._start_timeout):
                client, faults = await connection.client(self._start_timeout), connection.streams.faults
                return await fetch_listing(client, faults, await fetch_tools(client, faults))
        except TimeoutError:
            lost = ServerLost(f"it did not list its tools within {self._start_timeout:g} seconds")
        except ServerLost as error:
            lost = error
        except Exception as error:  # of the SDK, for which a server's mistakes are exceptions of many kinds
            lost = await connection.loss_behind(error) or ServerLost(f"it cannot be listed: {in_words(error)}")
        finally:
            await run_shielded(connection.aclose())
        self._note(connection, lost)
        raise lost

    async def follow(self, connection: McpConnection, uri: str) -> None:
        """Have the server tell of changes of a resource, by this connection and those that take its place."""
        await connection.follow(uri)
        self._followed.add(uri)

    def unfollow(self, uri: str) -> None:
        self._followed.discard(uri)
        for connection in (*self._connections.values(), *self._retired):
            connection.unfollow(uri)

    async def _follow_again(self, connection: McpConnection) -> None:
        """A process that takes the place of one that ended tells what that one did."""
        await connection.client(self._start_timeout)
        for uri in tuple(self._followed):
            await connection.follow(uri)

    async def retire(self) -> None:
        """Let calls under way come to their end, and take no more in these connections."""
        for connection in list(self._connections.values()):
            connection.retiring = True
            if not connection.busy:
                await run_shielded(self._end(connection))

    async def aclose(self) -> None:
        """End every connection."""
        self._closed = True
        for task in self._looking:
            task.cancel()
        found = [*self._connections.values(), *self._retired]
        self._connections, self._retired = {}, []
        await asyncio.gather(*(one.aclose() for one in found))

    async def _connected(self, reach: Reach, cwd: str, *, passes_on: bool) -> McpConnection:
        key: ConnectionKey = (reach, cwd, passes_on) if self.is_local else ("outside", "", passes_on)
        if self._usable(key) is None and self.health.pause:
            await asyncio.sleep(self.health.pause)
        if self._closed:
            raise ServerLost("it is not loaded any more")
        connection = self._usable(key)
        if connection is None:
            connection = self._connections[key] = self._open(reach, cwd, passes_on=passes_on)
            self._look_again(connection)
            if passes_on and self._followed:
                self._in_background(self._follow_again(connection)).add_done_callback(ignore_failure)
        try:
            await connection.client(self._start_timeout)
            if not self.is_local and connection.offered:  # what headers a call has is in the list of tools
                await asyncio.wait([connection.offered])
            return connection
        except ServerLost as lost:
            self._note(connection, lost)
            raise

    async def _offered(self, connection: McpConnection, limit: float) -> Mapping[str, McpDefinition]:
        """The tools of the process that a connection leads to; only its first call, or a change, makes this wait."""
        if connection.offered is None:
            self._look_again(connection)
        asking = connection.offered
        if asking and not asking.done():
            async with asyncio.timeout(limit):
                while (asking := connection.offered) and not asking.done():  # it may have changed again meanwhile
                    await asyncio.wait([asking])
        offered = asking.result() if asking and not asking.cancelled() else ServerLost("it is not loaded any more")
        if isinstance(offered, ServerLost):
            connection.offered = None  # the next call asks again
            raise offered
        return offered

    def _usable(self, key: ConnectionKey) -> McpConnection | None:
        """The connection for such calls, unless it has ended or is about to."""
        known = self._connections.get(key)
        if known is None or not (known.has_ended or known.retiring):
            return known
        self._retired = [one for one in (*self._retired, self._connections.pop(key)) if not one.has_ended]
        return None

    def _open(self, reach: Reach, cwd: str, *, passes_on: bool = False) -> McpConnection:
        from toolyard.kinds.mcp.connection import McpConnection

        self.health.started()
        return McpConnection(
            self._streams(reach, cwd),
            server=self.server.name,
            legacy="" < self.protocol < WITHOUT_HANDSHAKE,
            passes_on=passes_on,
            on_change=self._look_again,
            on_update=lambda uri: self.on_update(uri),
        )

    def _streams(self, reach: Reach, cwd: str) -> ChildStreams | HttpStreams:
        from toolyard.kinds.mcp.streams import ChildStreams, HttpStreams

        if isinstance(self.server, McpProgram):
            return ChildStreams(self.host.children(reach).keeper, self._request(self.server, cwd))
        from toolyard.kinds.mcp.login import stored_login

        return HttpStreams(self.server, stored_login(self.server))

    def _request(self, server: McpProgram, cwd: str) -> CompanionRequest:
        """How the program is started: with the variables that tools get, and those that its entry names.

        Its processor time is not limited, since it serves many calls, each with a limit of its own.
        """
        program, *rest = server.command
        if not os.path.isabs(program):
            found = find_program(program, self.host.configuration.door, or_ours=True)
            if found is None:
                self.health.failed(why_missing(program), "")
                raise ServerLost(why_missing(program))
            program = found
        limits = self.host.runner.limits
        return CompanionRequest(
            argv=[program, *rest],
            cwd=server.cwd or cwd,
            env=self.host.runner.environment.current(),
            extra_env=dict(server.env),
            limits=Limits(file_bytes=limits.file_bytes, open_files=limits.open_files, processes=limits.processes),
        )

    async def _tell_listing(self, connection: McpConnection) -> None:
        """Have the tools taken over that a connection offers, which may be others than those of the one before it."""
        if connection.listed:
            await asyncio.wait([connection.listed])
            listing = None if connection.listed.cancelled() else connection.listed.result()
            if listing and self.on_listing:
                self.on_listing(listing)

    def _look_again(self, connection: McpConnection) -> None:
        """Ask in the background what the server offers now."""
        connection.offered = self._in_background(self._ask_tools(connection))
        connection.listed = self._in_background(self._look(connection, connection.offered))

    def _in_background(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        return task

    async def _ask_tools(self, connection: McpConnection) -> Offered:
        from toolyard.kinds.mcp.connection import in_words
        from toolyard.kinds.mcp.listing import fetch_tools

        try:
            client = await connection.client(self._start_timeout)
            async with asyncio.timeout(self._start_timeout):
                tools = await fetch_tools(client, connection.streams.faults)
            return {tool.name: tool for tool in tools}
        except TimeoutError:
            return ServerLost(f"it did not list its tools within {self._start_timeout:g} seconds")
        except ServerLost as lost:
            return lost
        except (Exception, ProcessError) as error:
            return await connection.loss_behind(error) or ServerLost(f"it cannot be listed: {in_words(error)}")

    async def _look(self, connection: McpConnection, asked: asyncio.Task[Offered]) -> McpListing | None:
        from toolyard.kinds.mcp.listing import fetch_listing

        offered = await asked
        if isinstance(offered, ServerLost):  # the call that the connection is for is told what is wrong
            return None
        try:
            client = await connection.client(self._start_timeout)
            async with asyncio.timeout(self._start_timeout):
                listing = await fetch_listing(client, connection.streams.faults, list(offered.values()))
        except (Exception, ProcessError):
            return None
        self.protocol = listing.protocol
        if self.on_listing:
            self.on_listing(listing)
        return listing

    async def _end(self, connection: McpConnection) -> None:
        self._forget(connection)
        await connection.aclose()

    def _forget(self, connection: McpConnection) -> None:
        self._connections = {key: one for key, one in self._connections.items() if one is not connection}
        self._retired = [one for one in self._retired if one is not connection]

    def _note(self, connection: McpConnection, lost: ServerLost) -> None:
        """It failed; of many calls that were lost with it, the first tells."""
        if not connection.is_noted:
            connection.is_noted = True
            self._forget(connection)
            self.health.failed(lost.reason, connection.streams.printed.text())


def ignore_failure(task: asyncio.Task[None]) -> None:
    """What cannot be followed any more is not followed; a call says what is wrong with the server."""
    if not task.cancelled():
        task.exception()
