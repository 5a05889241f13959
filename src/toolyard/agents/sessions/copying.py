"""Sessions out of the store and into it: forks, exports, imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.sessions.event_lines import VERSION, as_object, stored_from
from toolyard.agents.sessions.history import effective
from toolyard.agents.sessions.store import UnknownSession

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolyard.agents.sessions.store import SessionRow, SessionStore

AT_ONCE = 500


class ImportFault(Exception):
    """A file is no export of a session."""


async def fork_session(store: SessionStore, id: str, at: int | None = None) -> SessionRow:
    """A new session with what happened in another before an event; states of files are shared."""
    row = store.session(id)
    events = [one.event for one in effective(store.events(row.id)) if at is None or one.seq < at]
    made = await store.create(row.agent, workspace=row.workspace, title=row.title, forked_from=row.id)
    await append_all(store, made.id, events)
    await store.update(made.id, metadata=row.metadata)
    return store.session(made.id)


def export_lines(store: SessionStore, row: SessionRow) -> Iterator[dict[str, Any]]:
    """A session as objects: first what it is, then every event."""
    yield {"v": VERSION, "type": "session", **msgspec.to_builtins(row)}
    for one in store.events(row.id):
        yield as_object(one)


async def import_lines(store: SessionStore, lines: Iterable[str]) -> SessionRow:
    """A session from its export; under a new id when its own is taken."""
    header: dict[str, Any] | None = None
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = msgspec.json.decode(line, type=dict[str, Any])
            if header is None:
                header = checked_header(value)
            else:
                events.append(stored_from(value).event)
        except msgspec.MsgspecError as error:
            raise ImportFault(f"line {number} is no event: {error}") from None
    if header is None:
        raise ImportFault("the file is empty")
    id = header["id"] if not is_taken(store, header["id"]) else None
    made = await store.create(
        header["agent"], id=id, workspace=header.get("workspace", ""), title=header.get("title", "")
    )
    await append_all(store, made.id, events)
    await store.update(made.id, metadata=header.get("metadata") or {})
    return store.session(made.id)


def checked_header(value: dict[str, Any]) -> dict[str, Any]:
    if (
        value.get("type") != "session"
        or not isinstance(value.get("id"), str)
        or not isinstance(value.get("agent"), str)
    ):
        raise ImportFault("its first line is not that of a session's export")
    if value.get("v", 0) > VERSION:
        raise ImportFault("it was written by a newer version of Toolyard")
    if not value["id"].isalnum():
        raise ImportFault("its id is not one")
    return value


def is_taken(store: SessionStore, id: str) -> bool:
    try:
        return store.session(id).id == id
    except UnknownSession:
        return False


async def append_all(store: SessionStore, session: str, events: list[Any]) -> None:
    for start in range(0, len(events), AT_ONCE):
        await store.append(session, events[start : start + AT_ONCE], durable=True)
