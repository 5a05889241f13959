"""The events of one session while it is open: kept first, then told to whoever listens."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.agents.sessions.events import ContextShortened, Rewound, Stored, TurnEnded, TurnWaits
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
        self._store = store
        self._read(needed_events(store, session))
        self._listeners: list[asyncio.Queue[SessionUpdate | None]] = []
        self.observers: list[Callable[[SessionUpdate], None]] = []
        """Told at once; they must not wait, and must not fail."""

    def _read(self, events: list[Stored]) -> None:
        self.events = events
        """What the conversation rests on; of what a summary stands for, only what was said."""
        self._fold = HistoryFold()
        self._fold.add(*events)

    def all_events(self, *, after: int = 0) -> list[Stored]:
        """What was kept, from an event on; read from the store where only a part is at hand."""
        if self.events and len(self.events) < self.events[-1].seq:
            return self._store.events(self.session, after=after)
        return [one for one in self.events if one.seq > after]

    @property
    def last_seq(self) -> int:
        """The number of the last event; 0 before there is one."""
        return self.events[-1].seq if self.events else 0

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
        """Keep events and tell them; whoever stops waiting for it does not undo it."""
        if isinstance(events[-1], TurnEnded | TurnWaits):
            self.state = "idle" if isinstance(events[-1], TurnEnded) else "waiting"
        await self._store.append(self.session, events, durable=durable, state=self.state, then=self._take)

    def _take(self, stored: list[Stored]) -> None:
        """What is kept from now on belongs to the conversation."""
        if any(isinstance(one.event, Rewound) for one in stored):  # it may lead to before what was read
            self._read(needed_events(self._store, self.session))
        else:
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


def needed_events(store: SessionStore, session: str) -> list[Stored]:
    """The events that a conversation rests on: all since the last summary, and what was said before it.

    Who went back since then may be before the summary; then all are needed.
    """
    marks = store.marks(session)
    made, summary = next(((one.seq, upto) for one in reversed(marks) if (upto := summed_up(one.event))), (0, 0))
    if not made or any(isinstance(one.event, Rewound) and one.seq > made for one in marks):
        return store.events(session)
    start = min(summary, store.last_turn(session) - 1)  # what an open turn has taken is told by all its answers
    return [*(one for one in marks if one.seq <= start), *store.events(session, after=start)]


def summed_up(event: SessionEvent) -> int:
    """The last event that a summary stands for; 0 of what is none."""
    return event.upto if isinstance(event, ContextShortened) and event.what == "summary" else 0
