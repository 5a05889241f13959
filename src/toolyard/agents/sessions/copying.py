"""Sessions out of the store and into it: forks, exports, imports."""

from __future__ import annotations

import time
import uuid
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.agents.sessions.database import StoreError
from toolyard.agents.sessions.event_lines import VERSION, as_object, stored_from
from toolyard.agents.sessions.events import ContextShortened
from toolyard.agents.sessions.history import effective
from toolyard.agents.sessions.store import SessionRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.agents.sessions.events import SessionEvent, Stored
    from toolyard.agents.sessions.store import SessionStore


class CopyFault(StoreError):
    """A session cannot be had from there; the message says why."""


async def fork_session(store: SessionStore, id: str, at: int | None = None) -> SessionRow:
    """A new session with what happened in another before an event; states of files are shared."""
    row = store.session(id)
    if at is not None and not 1 <= at <= row.last_seq + 1:
        raise CopyFault(f"'{row.id}' has no event {at}; the last is {row.last_seq}")
    events = renumbered([one for one in effective(store.events(row.id)) if at is None or one.seq < at])
    now = time.time()
    made = replace(
        row, id=uuid.uuid4().hex, forked_from=row.id, created=now, updated=now, last_seq=len(events), parent=None
    )
    return await store.take_in(replace(made, state="idle"), events)


def renumbered(events: Sequence[Stored]) -> list[Stored]:
    """The same with numbers that have no gaps; what an event says of others' numbers goes along."""
    known = [one.seq for one in events]

    def moved(event: SessionEvent) -> SessionEvent:
        if not isinstance(event, ContextShortened):
            return event
        return replace(event, upto=bisect_right(known, event.upto))

    return [replace(one, seq=number, event=moved(one.event)) for number, one in enumerate(events, 1)]


def export_lines(store: SessionStore, row: SessionRow) -> Iterator[dict[str, Any]]:
    """A session as objects: first what it is, then every event."""
    yield {"v": VERSION, "type": "session", **msgspec.to_builtins(row)}
    for one in store.events(row.id):
        yield as_object(one)


async def import_lines(store: SessionStore, lines: Iterable[str]) -> SessionRow:
    """A session from its export, as it was; under a new id when its own is taken."""
    row: SessionRow | None = None
    events: list[Stored] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = msgspec.json.decode(line, type=dict[str, Any])
            if row is None:
                row = checked_row(value)
                continue
            events.append(stored_from(value))
        except msgspec.MsgspecError as error:
            raise CopyFault(f"line {number} is no event: {error}") from None
        if events[-1].seq != len(events):
            raise CopyFault(f"line {number} is event {events[-1].seq}, and {len(events)} should be here")
    if row is None:
        raise CopyFault("the file is empty")
    parent = row.parent if row.parent and store.has(row.parent) else None
    id = row.id if not store.has(row.id) else uuid.uuid4().hex
    return await store.take_in(replace(row, id=id, parent=parent, last_seq=len(events)), events)


def checked_row(value: dict[str, Any]) -> SessionRow:
    """What the first line of an export says."""
    if value.get("type") != "session":
        raise CopyFault("its first line is not that of a session's export")
    if value.get("v", 0) > VERSION:
        raise CopyFault("it was written by a newer version of Toolyard")
    row = msgspec.convert(value, SessionRow)
    if not row.id.isalnum():
        raise CopyFault("its id is not one")
    return row
