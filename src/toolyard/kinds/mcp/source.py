"""A server as a source of tools: known by what it said last, and asked again whenever it runs anyway."""

from __future__ import annotations

import asyncio
import time
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.errors import ProcessError
from toolyard.files.working_folder import working_folder
from toolyard.kinds.mcp.health import ServerLost
from toolyard.kinds.mcp.listing import McpListing, listing_cache, listing_key
from toolyard.kinds.mcp.pinned import PinnedDefinitions
from toolyard.kinds.mcp.reference import McpProgram
from toolyard.kinds.mcp.servers import ServerConnections
from toolyard.kinds.mcp.settings import McpSettings
from toolyard.kinds.mcp.tool import CompletionTool, McpTool, PromptTool, ResourceTool
from toolyard.plugins.kind import ServerStatus
from toolyard.plugins.offers import PluginOffers
from toolyard.plugins.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.core.problems import Problem
    from toolyard.kinds.mcp.reference import McpAddress
    from toolyard.kinds.mcp.tool import ServerTool
    from toolyard.plugins.host import Host

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
        self._pinned = PinnedDefinitions(reference)
        self._listing: McpListing | None = None
        self._heard_since: McpListing | None = None
        """What it said since, which the next loading takes over."""
        self._key = ""
        self._looked_at = 0.0
        self._tools: list[ServerTool] = []
        self._offers: PluginOffers | None = None
        self._services: Sequence[ServerTool] = ()
        self._loading: asyncio.Lock | None = None

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
                offers=self._offers,
                services=self._services,
            )
        ]

    def is_current(self) -> bool:
        if self._heard_since is not None:
            return False
        if self._listing is None:
            return bool(self.problems) and self._servers.health.pause > 0
        now = time.monotonic()
        if now - self._looked_at < LOOK_AGAIN:
            return True
        self._looked_at = now
        return self._servers.health.pause > 0 or listing_key(self._servers.server, self._host) == self._key

    async def load(self, *, without_running: bool = False) -> bool:
        """Take what is known of it, and only where nothing is, start it and ask."""
        if self._heard_since is not None:
            listing, self._heard_since = self._heard_since, None
            self._accept(listing)
            return True
        key = listing_key(self._servers.server, self._host)
        known = listing_cache(self._host).get(key)
        if known is not None:
            self._key = key
            self._accept(known)
            return True
        if without_running:
            return False
        self._loading = self._loading or asyncio.Lock()
        async with self._loading:
            if not self.is_current():
                await self._ask(key)
        return True

    async def status(self, *, start: bool) -> ServerStatus:
        """How the server is doing; with `start` it is asked now what it offers."""
        if start and not self._servers.health.starts:
            await self._ask(listing_key(self._servers.server, self._host))
        health, listing = self._servers.health, self._listing
        return ServerStatus(
            name=self.reference.name,
            state=self._servers.state,
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
        await self._ask(listing_key(server, self._host))
        return None

    def logout(self) -> bool:
        server = self._servers.server
        if isinstance(server, McpProgram):
            return False
        from toolyard.kinds.mcp.login import login_store

        return login_store(server).forget()

    async def aclose(self) -> None:
        await self._servers.aclose()

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
        self._keep(listing)
        self._servers.health.failures = 0
        self._accept(listing)

    def _heard(self, listing: McpListing) -> None:
        """It said anew what it offers, while it ran for a call."""
        if listing != self._listing:
            self._heard_since = listing
            self._keep(listing)

    def _keep(self, listing: McpListing) -> None:
        cache = listing_cache(self._host)
        cache.put(self._key or listing_key(self._servers.server, self._host), listing)
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
        self._tools, self._services = [*tools, *reader, *prompter], completer
        self._offers = PluginOffers(
            resources=[one.definition for one in listing.resources if not one.is_template],
            templates=[one.definition for one in listing.resources if one.is_template],
            prompts=[one.definition for one in listing.prompts],
            completes=listing.completes,
            reader="".join(one.spec.name for one in reader),
            prompter="".join(one.spec.name for one in prompter),
            completer="".join(one.spec.name for one in completer),
        )

    def _failure(self, reason: str) -> Problem:
        name, printed = self.reference.name, self._servers.health.printed
        said = f"; it printed last: {printed}" if printed else ""
        tries = "try its command by hand" if self._servers.is_local else "see whether it can be reached"
        hint = f"{tries}, or look: toolyard plugins status {name}"
        return self.reference.at.problem("mcp_server", f"the MCP server '{name}' cannot be used: {reason}{said}", hint)

    def _bad_tool(self, fault: str) -> Problem:
        message = f"a tool of the MCP server '{self.reference.name}' is left out: {fault}"
        return self.reference.at.problem("mcp_tool", message, "its author has to mend it; the other tools work")
