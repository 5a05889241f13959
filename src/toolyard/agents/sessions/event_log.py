"""The events of one session while it is open: kept first, then told to whoever listens."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from toolyard.agents.sessions.events import AnswerReceived, Stored, TurnEnded
from toolyard.agents.sessions.history import HistoryFold
from toolyard.core.events import Event
from toolyard.core.model import ModelEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.agents.sessions.events import SessionEvent
    from toolyard.agents.sessions.history import History
    from toolyard.agents.sessions.store import SessionState, SessionStore

SessionUpdate: TypeAlias = Stored | ModelEvent | Event
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

    def history(self) -> History:
        """What the conversation is now."""
        return self._fold.history()

    def since_answer(self) -> list[SessionEvent]:
        """What happened since the model's last answer; ids of calls mean something only there."""
        for number in range(len(self.events) - 1, -1, -1):
            if isinstance(self.events[number].event, AnswerReceived):
                return [one.event for one in self.events[number:]]
        return []

    async def record(self, *events: SessionEvent, durable: bool = True) -> None:
        """Keep events and tell them."""
        if isinstance(events[-1], TurnEnded):
            self.state = "idle"
        stored = await self._store.append(self.session, events, durable=durable, state=self.state)
        self.events += stored
        self._fold.add(*stored)
        for one in stored:
            self.tell(one)

    def tell(self, update: SessionUpdate) -> None:
        """Tell something to all who listen."""
        for queue in self._listeners:
            queue.put_nowait(update)

    @contextmanager
    def listening(self) -> Iterator[asyncio.Queue[SessionUpdate | None]]:
        """A queue of all that is told from now on."""
        queue: asyncio.Queue[SessionUpdate | None] = asyncio.Queue()
        self._listeners.append(queue)
        try:
            yield queue
        finally:
            self._listeners.remove(queue)
