"""A server as a source of tools: known by what it said last, and asked again whenever it runs anyway."""

from __future__ import annotations

import asyncio
import time
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.errors import ProcessError
from toolyard.files.working_folder import working_folder
from toolyard.kinds.mcp.health import ServerLost
from toolyard.kinds.mcp.listing import McpListing, listing_cache, listing_key
from toolyard.kinds.mcp.pinned import PinnedDefinitions
from toolyard.kinds.mcp.reference import McpProgram
from toolyard.kinds.mcp.servers import ServerConnections
from toolyard.kinds.mcp.settings import McpSettings
from toolyard.kinds.mcp.tool import CompletionTool, FollowTool, McpTool, PromptTool, ResourceTool
from toolyard.plugins.kind import ServerStatus
from toolyard.plugins.offers import PluginOffers, ResourceUpdates
from toolyard.plugins.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.core.problems import Problem
    from toolyard.kinds.mcp.reference import McpAddress
    from toolyard.kinds.mcp.tool import ServerTool
    from toolyard.plugins.host import Host

FIRST_ANSWER = 10.0
"""How many seconds everybody waits for a server that never said what it offers."""
LOOK_AGAIN = 5.0
"""How many seconds pass before it is looked whether the program of a server was changed."""


class McpSource:
    """One server, followed through the changes of what it offers."""

    def __init__(self, reference: McpProgram | McpAddress, host: Host) -> None:
        self.reference = reference
        self.problems: Sequence[Problem] = ()
        """What is wrong with it now."""
        self._host = host
        self._settings = host.settings(McpSettings)
        self._servers = ServerConnections(reference, host, start_timeout=self._settings.mcp_start_timeout_seconds)
        self._servers.on_listing = self._heard
        self._updates = ResourceUpdates(on_unused=self._servers.unfollow)
        self._servers.on_update = self._updates.tell
        self._pinned = PinnedDefinitions(reference)
        self._listing: McpListing | None = None
        self._heard_since: McpListing | None = None
        """What it said since, which the next loading takes over."""
        self._key = ""
        self._looked_at = 0.0
        self._tools: list[ServerTool] = []
        self._offers: PluginOffers | None = None
        self._services: Sequence[ServerTool] = ()
        self._asking: asyncio.Task[None] | None = None
        """Asks it for the first time what it offers."""

    @property
    def file(self) -> Path:
        """What to name as its origin."""
        if self.reference.file:
            return Path(self.reference.file)
        server = self.reference
        return Path(server.command[0]) if isinstance(server, McpProgram) else Path(server.url.replace("://", ":/"))

    @property
    def name(self) -> str:
        return self.reference.name

    @property
    def conditions(self) -> object:
        return (self._host.runner, self._settings)

    def adopt(self, newer: McpSource) -> None:
        """It is the same server, named from another place perhaps."""
        self.reference = newer.reference
        self._host = self._servers.host = newer._host

    def plugins(self) -> Sequence[Plugin]:
        """A server is one plugin, on or off as a whole; `tools` of its entry chooses among its tools."""
        return [
            Plugin(
                id=self.reference.name,
                kind="mcp",
                tools=self._tools,
                other_name=methodcaller("prefixed"),
                made_of=self._servers.identity.rpartition("#")[2],
                offers=self._offers,
                services=self._services,
            )
        ]

    def is_current(self) -> bool:
        if self._heard_since is not None:
            return False
        if self._listing is None:
            return self._is_asked or (bool(self.problems) and self._servers.health.pause > 0)
        now = time.monotonic()
        if now - self._looked_at < LOOK_AGAIN:
            return True
        self._looked_at = now
        return self._servers.health.pause > 0 or listing_key(self._servers.server, self._host) == self._key

    async def load(self, *, without_running: bool = False) -> bool:
        """Take what is known of it, and only where nothing is, start it and ask.

        It is waited for, but not long, and not at all where it kept others waiting before; it is taken in later then.
        """
        if self._accept_heard():
            return True
        key = listing_key(self._servers.server, self._host)
        known = listing_cache(self._host).get(key)
        if known is not None and not known.is_missing:
            self._key = key
            self._accept(known)
            return True
        if without_running:
            return False
        asking = self._ask_once(key)
        await asyncio.wait({asking}, timeout=FIRST_ANSWER if known is None else 0)
        if asking.done():
            self._accept_heard()
        else:
            self.problems = self.problems or [self._unanswered()]  # what went wrong last says more
            self._keep(McpListing(is_missing=True), key)
        return True

    async def status(self, *, start: bool) -> ServerStatus:
        """How the server is doing; with `start` it is asked now what it offers."""
        if start and (self._is_asked or not self._servers.health.starts):
            await asyncio.wait({self._ask_once(listing_key(self._servers.server, self._host))})
        self._accept_heard()  # it may have answered while others were asked
        health, listing = self._servers.health, self._listing
        return ServerStatus(
            name=self.reference.name,
            state="asked" if self._is_asked else self._servers.state,
            restarts=max(health.starts - 1, 0),
            tools=len(self._tools),
            speaks=listing.protocol if listing else "",
            last_error=health.last_error,
            printed=health.printed,
        )

    async def login(self, show_address: Callable[[str], None]) -> Problem | None:
        """Let a person sign in by an address that they open, and use the server from then on."""
        server = self._servers.server
        if isinstance(server, McpProgram):
            hint = "give it what it needs by 'env' of its entry"
            return self.reference.at.problem("mcp_login", f"nobody signs in to the program '{server.name}'", hint)
        from toolyard.kinds.mcp.login import login

        try:
            await login(server, show_address)
        except ServerLost as lost:
            hint = "look at what the server says of itself, or give it a header 'Authorization'"
            return self.reference.at.problem("mcp_login", f"signing in to '{server.name}' failed: {lost}", hint)
        await asyncio.wait({self._ask_once(listing_key(server, self._host))})
        self._accept_heard()
        return None

    def logout(self) -> bool:
        server = self._servers.server
        if isinstance(server, McpProgram):
            return False
        from toolyard.kinds.mcp.login import login_store

        return login_store(server).forget()

    async def aclose(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait({self._asking})
        await self._servers.aclose()

    @property
    def _is_asked(self) -> bool:
        """Whether it is being asked for the first time what it offers."""
        return self._asking is not None and not self._asking.done()

    def _ask_once(self, key: str) -> asyncio.Task[None]:
        """What asks it, once for all who want to know."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(key))
        return self._asking

    def _accept_heard(self) -> bool:
        """Take over what it said since the last time; whether it said something."""
        if self._heard_since is None:
            return False
        listing, self._heard_since = self._heard_since, None
        self._accept(listing)
        return True

    async def _ask(self, key: str) -> None:
        """Start it, or connect to it, and let it say what it offers."""
        reach = self._host.configuration.usual_reach
        try:
            await self._host.children(reach).choose_sandbox()
            listing = await self._servers.listing(reach, working_folder())
        except (ServerLost, ProcessError) as error:
            self.problems = [self._failure(str(error))]
            return
        if self._key != key:  # what runs is another version
            await self._servers.retire()
        self._key = key
        self._keep(listing, key)
        self._servers.health.failures = 0
        self._heard_since = listing
        self._host.news.set()

    def _heard(self, listing: McpListing) -> None:
        """It said anew what it offers, while it ran for a call."""
        if listing != self._listing:
            self._heard_since = listing
            self._keep(listing, self._key or listing_key(self._servers.server, self._host))
            self._host.news.set()

    def _keep(self, listing: McpListing, key: str) -> None:
        cache = listing_cache(self._host)
        cache.put(key, listing)
        cache.save()

    def _accept(self, listing: McpListing) -> None:
        """These are its tools now; those that are as they were stay what they are."""
        self._looked_at = time.monotonic()
        self._servers.protocol = listing.protocol
        self.problems = [self._bad_tool(fault) for fault in listing.faults]
        if listing == self._listing:
            return
        self._listing = listing
        servers, choice = self._servers, self.reference.choice
        timeout = self.reference.timeout or self._settings.mcp_timeout_seconds
        tools: list[ServerTool] = []
        for definition in listing.tools:
            if choice.has(definition.name):
                name = choice.name_of(definition.name)
                tools.append(McpTool(definition, servers, self._pinned, name=name, timeout=timeout))
        reader = [ResourceTool(listing.resources, servers, timeout=timeout)] if listing.resources else []
        prompter = [PromptTool(listing.prompts, servers, timeout=timeout)] if listing.prompts else []
        completer = [CompletionTool(servers, timeout=timeout)] if listing.completes else []
        follower = [FollowTool(servers, timeout=timeout)] if listing.tells_updates and reader else []
        self._tools, self._services = [*tools, *reader, *prompter], [*completer, *follower]
        self._offers = PluginOffers(
            resources=[one.definition for one in listing.resources if not one.is_template],
            templates=[one.definition for one in listing.resources if one.is_template],
            prompts=[one.definition for one in listing.prompts],
            completes=listing.completes,
            reader="".join(one.spec.name for one in reader),
            prompter="".join(one.spec.name for one in prompter),
            completer="".join(one.spec.name for one in completer),
            follower="".join(one.spec.name for one in follower),
            updates=self._updates,
        )

    def _unanswered(self) -> Problem:
        name = self.reference.name
        message = f"the MCP server '{name}' has not said yet what it offers; its tools are missing until it does"
        problem = self.reference.at.problem("mcp_server", message, f"wait for it: toolyard plugins status {name}")
        return replace(problem, severity="warning")

    def _failure(self, reason: str) -> Problem:
        name, printed = self.reference.name, self._servers.health.printed
        said = f"; it printed last: {printed}" if printed else ""
        tries = "try its command by hand" if self._servers.is_local else "see whether it can be reached"
        if "sandbox.hosts" in reason + said:
            tries = "name the hosts that it needs in sandbox.hosts"
        hint = f"{tries}, or look: toolyard plugins status {name}"
        return self.reference.at.problem("mcp_server", f"the MCP server '{name}' cannot be used: {reason}{said}", hint)

    def _bad_tool(self, fault: str) -> Problem:
        message = f"a tool of the MCP server '{self.reference.name}' is left out: {fault}"
        return self.reference.at.problem("mcp_tool", message, "its author has to mend it; the other tools work")
