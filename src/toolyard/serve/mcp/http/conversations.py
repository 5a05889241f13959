"""Which conversation a request belongs to, and when that is over.

The older protocol era has a session id for it. In the newer one requests stand alone, so a conversation is what a
cookie says, or, for clients that keep none, the connection; it is over a while after its last connection closed.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from toolyard.serve.mcp.tool_server import Refused

if TYPE_CHECKING:
    from toolyard.serve.mcp.tool_server import ClientConversation, ToolServer

MOST_CONVERSATIONS = 512
LONGEST_IDLE = 1800.0
"""After how many seconds without a request a conversation is over, whatever its connections do."""
KEPT_AFTER_CLOSE = 60.0
"""How many seconds one whose connections are closed is kept: clients close those that they do not need for a while."""
CHECKED_EVERY = 5.0

Connection = tuple[str, int]


class OpenConversation:
    """A conversation and who uses it."""

    def __init__(self, conversation: ClientConversation, *, ends_with_connections: bool) -> None:
        self.conversation = conversation
        self.ends_with_connections = ends_with_connections
        self.connections: set[Connection] = set()
        self.requests = 0
        """How many are under way."""
        self.unused_since = 0.0

    def is_over(self, now: float, kept: float) -> bool:
        patience = kept if self.ends_with_connections and not self.connections else LONGEST_IDLE
        return not self.requests and now - self.unused_since > patience


class Conversations:
    """The conversations of one HTTP server, by an id that nobody can guess."""

    def __init__(self, server: ToolServer, *, kept_after_close: float = KEPT_AFTER_CLOSE) -> None:
        self._server = server
        self._kept = kept_after_close
        self._open: dict[str, OpenConversation] = {}
        self._by_connection: dict[Connection, str] = {}

    def id_for(self, cookie: str | None, connection: Connection | None) -> str:
        """The conversation of a request without a session id; without cookie and connection, one for it alone."""
        if cookie is not None and cookie in self._open:
            return cookie
        known = self._by_connection.get(connection) if connection else None
        if known is None:
            known = os.urandom(16).hex()
            if connection is not None:
                self._by_connection[connection] = known
        return known

    def begin_request(self, id: str, connection: Connection | None, *, is_session: bool) -> OpenConversation:
        """A request of a conversation begins; it goes on with one that is open, or opens it."""
        if id not in self._open:
            self._make_room()
            made = OpenConversation(self._server.conversation(id), ends_with_connections=not is_session)
            self._open[id] = made
        found = self._open[id]
        found.requests += 1
        if connection is not None:
            found.connections.add(connection)
        return found

    def end_request(self, found: OpenConversation) -> None:
        found.requests -= 1
        found.unused_since = asyncio.get_running_loop().time()

    def find(self, id: str) -> ClientConversation | None:
        return self._open[id].conversation if id in self._open else None

    def connection_closed(self, connection: Connection) -> None:
        self._by_connection.pop(connection, None)
        for found in self._open.values():
            if connection in found.connections:
                found.connections.discard(connection)
                found.unused_since = asyncio.get_running_loop().time()

    async def end(self, id: str) -> None:
        if found := self._open.pop(id, None):
            await found.conversation.end()

    async def end_old_ones(self) -> None:
        """Look again and again which conversations are over, and end them; at last all."""
        try:
            while True:
                await asyncio.sleep(min(CHECKED_EVERY, self._kept))
                now = asyncio.get_running_loop().time()
                for id in [id for id, found in self._open.items() if found.is_over(now, self._kept)]:
                    await self.end(id)
        finally:
            for id in list(self._open):
                await self.end(id)

    def _make_room(self) -> None:
        if len(self._open) >= MOST_CONVERSATIONS:
            raise Refused(f"{MOST_CONVERSATIONS} conversations are open already: try again later")
