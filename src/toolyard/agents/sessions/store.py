"""One SQLite file for all sessions: events that are only ever added, each with a number within its session.

What has to be on the disk before something is done is asked for as *durable*; a thread writes it, and several that are
asked for at the same time share one write.
"""

from __future__ import annotations

import re
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from toolyard.agents.sessions.database import MARKS, StoreError, connect, make_folder
from toolyard.agents.sessions.events import SessionEvent, Stored
from toolyard.agents.sessions.writer import Write, Writer
from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.core.text import whole_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import apsw

    from toolyard.core.tool import JsonObject

Given = TypeVar("Given")
SessionState = Literal["idle", "working", "waiting"]
ENCODER = msgspec.json.Encoder()
DECODER = msgspec.json.Decoder(SessionEvent)
SMALL = 1 << 16
"""Bytes that are written faster than a thread is told to."""
NAMES = (
    "id",
    "agent",
    "title",
    "state",
    "created",
    "updated",
    "last_seq",
    "workspace",
    "forked_from",
    "metadata",
    "parent",
)
COLUMNS = ", ".join(NAMES)
INSERT_SESSION = f"INSERT INTO sessions ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608 - our own names
INSERT_EVENT = "INSERT INTO events (session, seq, time, kind, data) VALUES (?,?,?,?,?)"


class UnknownSession(StoreError):
    """There is no session of that id."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list."""

    id: str
    agent: str
    title: str
    state: str
    created: float
    updated: float
    last_seq: int
    workspace: str
    forked_from: str | None
    metadata: dict[str, Any]
    parent: str | None = None
    """The session whose subagent this is."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a session where searched words stand."""

    session: str
    seq: int
    excerpt: str


class SessionStore:
    """The sessions of one folder. Writing is for coroutines; reading takes a moment and can be done anywhere."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        self.path = path
        self._reader = connect(path)
        self._writer: Writer | None = None

    async def create(
        self,
        agent: str,
        *,
        id: str | None = None,
        workspace: str = "",
        title: str = "",
        forked_from: str | None = None,
        parent: str | None = None,
    ) -> SessionRow:
        """A new session, on the disk when this returns."""
        id, now = id or uuid.uuid4().hex, time.time()
        values = (id, agent, title, "idle", now, now, 0, workspace, forked_from, "{}", parent)

        await self._write(lambda connection: connection.execute(INSERT_SESSION, values), durable=True)
        return self.session(id)

    async def append(
        self,
        session: str,
        events: Sequence[SessionEvent],
        *,
        durable: bool = False,
        state: SessionState = "idle",
        then: Callable[[list[Stored]], None] | None = None,
    ) -> list[Stored]:
        """Add events to a session; when this returns no end of the process loses them, and none of the machine durable
        ones. `then` hears of them in any case, in their order.
        """
        now, data = time.time(), [encoded(event) for event in events]

        def insert(connection: apsw.Connection) -> list[Stored]:
            return insert_events(connection, session, list(zip(events, data, strict=True)), now, state)

        return await self._write(insert, durable=durable, small=sum(map(len, data)) <= SMALL, then=then)

    async def take_in(self, row: SessionRow, events: Sequence[Stored]) -> SessionRow:
        """A session with all that happened in it, as it was elsewhere; it is there whole, or not at all."""
        values = (*(getattr(row, name) for name in NAMES[:-2]), ENCODER.encode(row.metadata).decode(), row.parent)
        rows = [(row.id, one.seq, one.time, kind_of(one.event), encoded(one.event)) for one in events]

        def insert(connection: apsw.Connection) -> None:
            connection.execute(INSERT_SESSION, values)
            connection.executemany(INSERT_EVENT, rows)

        await self._write(insert, durable=True)
        return self.session(row.id)

    async def update(self, session: str, *, title: str | None = None, metadata: JsonObject | None = None) -> None:
        """Change what the list shows of a session."""

        def change(connection: apsw.Connection) -> None:
            if title is not None:
                connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (whole_characters(title), session))
            if metadata is not None:
                text = ENCODER.encode(metadata).decode()
                connection.execute("UPDATE sessions SET metadata = ? WHERE id = ?", (text, session))

        await self._write(change, durable=True)

    async def delete(self, session: str) -> None:
        """Remove a session with all that it has here, and its subagents; `delete_session` removes its states, too."""
        id = self.session(session).id
        gone = [id, *self.descendants(id)]

        def remove(connection: apsw.Connection) -> None:
            for one in gone:
                for table in ("events", "words"):
                    connection.execute(f"DELETE FROM {table} WHERE session = ?", (one,))  # noqa: S608 - our own names
                connection.execute("DELETE FROM sessions WHERE id = ?", (one,))

        await self._write(remove, durable=True)

    def session(self, id: str) -> SessionRow:
        """A session by its id, or by the beginning of it that no other has."""
        found = list(self._rows(f"SELECT {COLUMNS} FROM sessions WHERE id = ?", (id,)))  # noqa: S608 - our own names
        if not found and id:
            where = "substr(id, 1, ?) = ?"
            found = list(self._rows(f"SELECT {COLUMNS} FROM sessions WHERE {where} LIMIT 2", (len(id), id)))  # noqa: S608
        if len(found) != 1:
            reason = "several sessions' ids begin so" if found else "there is no such session"
            raise UnknownSession(f"'{id}': {reason}; `toolyard sessions list` shows all")
        return found[0]

    def has(self, id: str) -> bool:
        """Whether there is a session of exactly this id."""
        return self._reader.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).fetchone() is not None

    def sessions(self, *, most: int = -1, subagents: bool = False) -> list[SessionRow]:
        """The sessions, the latest first; those of subagents are part of others, and only told when asked for."""
        which = "1" if subagents else "parent IS NULL"
        sql = f"SELECT {COLUMNS} FROM sessions WHERE {which} ORDER BY updated DESC LIMIT ?"  # noqa: S608 - our own names
        return list(self._rows(sql, (most,)))

    def descendants(self, id: str) -> list[str]:
        """The sessions of a session's subagents, and of theirs."""
        found = [row[0] for row in self._reader.execute("SELECT id FROM sessions WHERE parent = ?", (id,))]
        return [one for child in found for one in (child, *self.descendants(child))]

    def events(self, session: str, *, after: int = 0, upto: int | None = None) -> list[Stored]:
        """What happened in a session, in order."""
        sql = "SELECT seq, time, data FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq"
        found = self._reader.execute(sql, (session, after, upto if upto is not None else 1 << 60))
        return [Stored(seq=seq, time=at, event=decoded_event(data)) for seq, at, data in found]

    def marks(self, session: str) -> list[Stored]:
        """The events that count also where a summary stands for others: what was said, summaries, ways back."""
        sql = f"SELECT seq, time, data FROM events WHERE session = ? AND kind IN {MARKS} ORDER BY seq"  # noqa: S608
        found = self._reader.execute(sql, (session,))
        return [Stored(seq=seq, time=at, event=decoded_event(data)) for seq, at, data in found]

    def events_of(self, *kinds: str) -> Iterator[SessionEvent]:
        """What happened of some kinds, in all sessions."""
        marks = ",".join("?" for _ in kinds)
        rows = self._reader.execute(f"SELECT data FROM events WHERE kind IN ({marks})", kinds)  # noqa: S608 - no values
        return (decoded_event(data) for (data,) in rows)

    def last_turn(self, session: str) -> int:
        """The number of the event at which the last turn began; 0 before there is one."""
        sql = "SELECT seq FROM events WHERE session = ? AND kind = 'turn_started' ORDER BY seq DESC LIMIT 1"
        row = self._reader.execute(sql, (session,)).fetchone()
        return row[0] if row else 0

    def last_events(self, session: str, number: int) -> list[Stored]:
        """The latest of them, in order: all that a screen can show."""
        row = self._reader.execute("SELECT last_seq FROM sessions WHERE id = ?", (session,)).fetchone()
        return self.events(session, after=max(0, row[0] - number)) if row else []

    async def search(self, words: str, *, most: int = 50) -> list[SearchHit]:
        """Where all of some words stand, the best places first."""
        terms = re.findall(r"\w+", whole_characters(words))
        if not terms:
            return []
        while await self._write(index_words):
            pass
        match = " ".join(f'"{term}"*' for term in terms)
        shown = "session, seq, snippet(words, 0, '', '', '…', 24)"
        sql = f"SELECT {shown} FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"  # noqa: S608 - our own names
        rows = self._reader.execute(sql, (match, most))
        return [SearchHit(session=session, seq=seq, excerpt=text.replace("\n", " ")) for session, seq, text in rows]

    def close(self) -> None:
        """End the writing thread, after all that was asked of it."""
        if self._writer:
            self._writer.close()
            self._writer = None
        self._reader.close()

    def _rows(self, sql: str, values: tuple[object, ...]) -> Iterator[SessionRow]:
        for row in self._reader.execute(sql, values):
            known = dict(zip(NAMES, row, strict=True))
            yield msgspec.convert(known | {"metadata": msgspec.json.decode(known["metadata"])}, SessionRow)

    async def _write(
        self,
        action: Callable[[apsw.Connection], Given],
        *,
        durable: bool = False,
        small: bool = False,
        then: Callable[[Given], None] | None = None,
    ) -> Given:
        if self._writer is None:
            self._writer = Writer(self.path)
        return await self._writer.run(Write(action=action, durable=durable, then=then), small=small)


def encoded(event: SessionEvent) -> bytes:
    """An event as it is kept, also where a tool gave back half a character."""
    try:
        return ENCODER.encode(event)
    except UnicodeEncodeError:
        return encode_json(event)


def decoded_event(data: bytes) -> SessionEvent:
    event: SessionEvent
    try:
        event = DECODER.decode(data)
    except msgspec.DecodeError:
        event = msgspec.convert(decode_json(data, dict), SessionEvent)
    return event


def insert_events(
    connection: apsw.Connection,
    session: str,
    events: Sequence[tuple[SessionEvent, bytes]],
    now: float,
    state: SessionState,
) -> list[Stored]:
    row = connection.execute("SELECT last_seq FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None:
        raise UnknownSession(f"'{session}': there is no such session")
    numbered = list(enumerate(events, row[0] + 1))
    rows = [(session, seq, now, kind_of(event), data) for seq, (event, data) in numbered]
    connection.executemany(INSERT_EVENT, rows)
    sql = "UPDATE sessions SET last_seq = ?, updated = ?, state = ? WHERE id = ?"
    connection.execute(sql, (row[0] + len(rows), now, state, session))
    return [Stored(seq=seq, time=now, event=event) for seq, (event, _) in numbered]


def index_words(connection: apsw.Connection) -> bool:
    """Make what is new findable; whether there was any. It is done when somebody searches, since few ever do."""
    upto = connection.execute("SELECT upto FROM indexed").fetchone()
    start = upto[0] if upto else 0
    sql = "SELECT rowid, session, seq, data FROM events WHERE rowid > ? ORDER BY rowid LIMIT 5000"
    new = list(connection.execute(sql, (start,)))
    if not new:
        return False
    words = [(text, session, seq) for _, session, seq, data in new if (text := words_of(decoded_event(data)))]
    connection.executemany("INSERT INTO words (text, session, seq) VALUES (?,?,?)", words)
    connection.execute("UPDATE indexed SET upto = ?", (new[-1][0],))
    return True


def kind_of(event: SessionEvent) -> str:
    return str(event.__struct_config__.tag)


def words_of(event: SessionEvent) -> str:
    """What of an event people would search for."""
    from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, ContextShortened, PromptGiven
    from toolyard.core.content import text_of

    match event:
        case PromptGiven():
            return text_of(event.message.content)
        case AnswerReceived():
            calls = [f"{call.name} {call.arguments}" for call in event.message.calls]
            return "\n".join([event.message.text, *calls]).strip()
        case CallAnswered():
            return event.answer.text
        case ContextShortened():
            return event.summary
        case _:
            return ""
