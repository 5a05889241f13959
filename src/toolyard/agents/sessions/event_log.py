"""The events of one session while it is open: kept first, then told to whoever listens."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.agents.sessions.events import Stored, TurnEnded, TurnWaits
from toolyard.agents.sessions.history import HistoryFold, since_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolyard.agents.sessions.events import SessionEvent
    from toolyard.agents.sessions.history import History
    from toolyard.agents.sessions.store import SessionState, SessionStore
    from toolyard.core.events import Event
    from toolyard.core.model import ModelEvent


class SubagentTold(msgspec.Struct, frozen=True, kw_only=True, tag="subagent"):
    """Something happened in the conversation of a subagent; what is kept of it is kept there."""

    call_id: str
    """The call that the subagent works on."""
    session: str
    agent: str
    update: SessionUpdate


SessionUpdate: TypeAlias = "Stored | ModelEvent | Event | SubagentTold"
"""What a listener hears: what was kept, with its number, and what passes by."""


class EventLog:
    """What happened in a session, in the store and in memory."""

    def __init__(self, store: SessionStore, session: str) -> None:
        self.session = session
        self.state: SessionState = "idle"
        """What the list shows, from the next event on."""
        self.events = store.events(session)
        self._store = store
        self._fold = HistoryFold()
        self._fold.add(*self.events)
        self._listeners: list[asyncio.Queue[SessionUpdate | None]] = []
        self.observers: list[Callable[[SessionUpdate], None]] = []
        """Told at once; they must not wait, and must not fail."""

    def history(self) -> History:
        """What the conversation is now."""
        return self._fold.history()

    def since_answer(self) -> list[SessionEvent]:
        """What happened since the model's last answer; ids of calls mean something only there."""
        return [one.event for one in since_answer(self.events)]

    def answer_seq(self) -> int:
        """The number of the model's last answer; 0 before there is one."""
        return next((one.seq for one in since_answer(self.events)), 0)

    async def record(self, *events: SessionEvent, durable: bool = True) -> None:
        """Keep events and tell them."""
        if isinstance(events[-1], TurnEnded | TurnWaits):
            self.state = "idle" if isinstance(events[-1], TurnEnded) else "waiting"
        stored = await self._store.append(self.session, events, durable=durable, state=self.state)
        self.events += stored
        self._fold.add(*stored)
        for one in stored:
            self.tell(one)

    def tell(self, update: SessionUpdate) -> None:
        """Tell something to all who listen."""
        for queue in self._listeners:
            queue.put_nowait(update)
        for hear in self.observers:
            hear(update)

    @contextmanager
    def listening(self) -> Iterator[asyncio.Queue[SessionUpdate | None]]:
        """A queue of all that is told from now on."""
        queue: asyncio.Queue[SessionUpdate | None] = asyncio.Queue()
        self._listeners.append(queue)
        try:
            yield queue
        finally:
            self._listeners.remove(queue)
