"""One SQLite file for all sessions: events that are only ever added, each with a number within its session.

One thread writes for the whole process. What has to be on the disk before something is done is asked for as *durable*;
several that are asked for at the same time share one write.
"""

from __future__ import annotations

import asyncio
import os
import queue
import re
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import apsw
import msgspec

from toolyard.agents.sessions.events import SessionEvent, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from toolyard.core.tool import JsonObject

Given = TypeVar("Given")
SessionState = Literal["idle", "working", "waiting"]
PATIENCE_MS = 10_000
"""How long a write waits for another process's."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, agent TEXT NOT NULL, title TEXT NOT NULL, state TEXT NOT NULL, created REAL NOT NULL,
  updated REAL NOT NULL, last_seq INTEGER NOT NULL, workspace TEXT NOT NULL, forked_from TEXT, metadata TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS events (
  session TEXT NOT NULL, seq INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL, data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS events_in_order ON events (session, seq);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, session UNINDEXED, seq UNINDEXED, tokenize = 'unicode61');
CREATE TABLE IF NOT EXISTS indexed (upto INTEGER NOT NULL) STRICT;
INSERT INTO indexed VALUES (0);
"""
VERSION = 1
ENCODER = msgspec.json.Encoder()
DECODER = msgspec.json.Decoder(SessionEvent)
COLUMNS = "id, agent, title, state, created, updated, last_seq, workspace, forked_from, metadata"


class StoreError(Exception):
    """The store cannot be read or written; the message says why."""


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


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a session where searched words stand."""

    session: str
    seq: int
    excerpt: str


class SessionStore:
    """The sessions of one folder. Writing is for coroutines; reading takes a moment and can be done anywhere."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self._reader = connect(path)
        self._writer: WriterThread | None = None

    async def create(
        self, agent: str, *, id: str | None = None, workspace: str = "", title: str = "", forked_from: str | None = None
    ) -> SessionRow:
        """A new session, on the disk when this returns."""
        id, now = id or uuid.uuid4().hex, time.time()
        values = (id, agent, title, "idle", now, now, 0, workspace, forked_from, "{}")

        def insert(connection: apsw.Connection) -> None:
            connection.execute(f"INSERT INTO sessions ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", values)  # noqa: S608

        await self._write(insert, durable=True)
        return self.session(id)

    async def append(
        self, session: str, events: Sequence[SessionEvent], *, durable: bool = False, state: SessionState = "idle"
    ) -> list[Stored]:
        """Add events to a session; when this returns no end of the process loses them, and none of the machine durable
        ones.
        """
        now = time.time()

        def insert(connection: apsw.Connection) -> list[Stored]:
            return insert_events(connection, session, events, now, state)

        return await self._write(insert, durable=durable)

    async def update(self, session: str, *, title: str | None = None, metadata: JsonObject | None = None) -> None:
        """Change what the list shows of a session."""

        def change(connection: apsw.Connection) -> None:
            if title is not None:
                connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (title, session))
            if metadata is not None:
                text = ENCODER.encode(metadata).decode()
                connection.execute("UPDATE sessions SET metadata = ? WHERE id = ?", (text, session))

        await self._write(change, durable=True)

    async def delete(self, session: str) -> None:
        """Remove a session with all that it has."""

        def remove(connection: apsw.Connection) -> None:
            for table in ("events", "words"):
                connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - our own names
            connection.execute("DELETE FROM sessions WHERE id = ?", (session,))

        self.session(session)
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

    def sessions(self, *, most: int = -1) -> list[SessionRow]:
        """All sessions, the latest first."""
        return list(self._rows(f"SELECT {COLUMNS} FROM sessions ORDER BY updated DESC LIMIT ?", (most,)))  # noqa: S608

    def events(self, session: str, *, after: int = 0, upto: int | None = None) -> list[Stored]:
        """What happened in a session, in order."""
        sql = "SELECT seq, time, data FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq"
        found = self._reader.execute(sql, (session, after, upto if upto is not None else 1 << 60))
        return [Stored(seq=seq, time=at, event=DECODER.decode(data)) for seq, at, data in found]

    def last_events(self, session: str, number: int) -> list[Stored]:
        """The latest of them, in order: all that a screen can show."""
        row = self._reader.execute("SELECT last_seq FROM sessions WHERE id = ?", (session,)).fetchone()
        return self.events(session, after=max(0, row[0] - number)) if row else []

    async def search(self, words: str, *, most: int = 50) -> list[SearchHit]:
        """Where all of some words stand, the best places first."""
        terms = re.findall(r"\w+", words)
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
        names = [name.strip() for name in COLUMNS.split(",")]
        for row in self._reader.execute(sql, values):
            known = dict(zip(names, row, strict=True))
            yield msgspec.convert(known | {"metadata": msgspec.json.decode(known["metadata"])}, SessionRow)

    async def _write(self, action: Callable[[apsw.Connection], Given], *, durable: bool = False) -> Given:
        if self._writer is None:
            self._writer = WriterThread(self.path)
        return await self._writer.run(action, durable=durable)


class Task(msgspec.Struct, kw_only=True):
    """Something to be written, and who waits for it."""

    action: Any
    durable: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]


class WriterThread:
    """The one thread of a process that writes; whatever waits at the same time goes into one transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._synchronous = ""
        self._thread = threading.Thread(target=self._work, name="toolyard-store", daemon=True)
        self._thread.start()

    async def run(self, action: Callable[[apsw.Connection], Given], *, durable: bool) -> Given:
        """Carry out an action in a transaction; what it returns."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Given] = loop.create_future()
        self._tasks.put(Task(action=action, durable=durable, loop=loop, done=done))
        # Who stops waiting does not take back what was asked: a result that is on its way must not get lost.
        return await asyncio.shield(done)

    def close(self) -> None:
        self._tasks.put(None)
        self._thread.join()

    def _work(self) -> None:
        connection = connect(self._path)
        while (first := self._tasks.get()) is not None:
            batch, ended = [first], False
            while not self._tasks.empty():
                if (task := self._tasks.get()) is None:
                    ended = True
                    break
                batch.append(task)
            self._carry_out(connection, batch)
            if ended:
                break
        connection.close()

    def _carry_out(self, connection: apsw.Connection, batch: list[Task]) -> None:
        """All tasks in one transaction; when one fails, each in one of its own, so that it fails alone."""
        wanted = "FULL" if any(task.durable for task in batch) else "NORMAL"
        try:
            if wanted != self._synchronous:
                connection.execute(f"PRAGMA synchronous = {wanted}")
                self._synchronous = wanted
            with connection:
                results = [task.action(connection) for task in batch]
        except Exception as error:
            if len(batch) > 1:
                for task in batch:
                    self._carry_out(connection, [task])
                return
            told = StoreError(f"{self._path}: {error}") if isinstance(error, apsw.Error) else error
            tell(batch[0], None, told)
        else:
            for task, result in zip(batch, results, strict=True):
                tell(task, result, None)


def tell(task: Task, result: Any, error: Exception | None) -> None:
    def settle() -> None:
        if task.done.done():
            return
        if error is not None:
            task.done.set_exception(error)
        else:
            task.done.set_result(result)

    try:
        task.loop.call_soon_threadsafe(settle)
    except RuntimeError:  # its loop is closed: nobody waits any more
        return


def connect(path: Path) -> apsw.Connection:
    """A connection that waits for others; the tables are there."""
    before = os.umask(0o077)
    try:
        connection = apsw.Connection(str(path))
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}") from None
    finally:
        os.umask(before)
    try:
        connection.set_busy_timeout(PATIENCE_MS)
        connection.execute("PRAGMA journal_mode = WAL")
        version = connection.pragma("user_version")
        if version == 0:
            with connection:
                connection.execute(SCHEMA)
                connection.execute(f"PRAGMA user_version = {VERSION}")
        elif version > VERSION:
            raise StoreError(f"{path} was written by a newer version of Toolyard")
    except apsw.Error as error:
        connection.close()
        raise StoreError(f"{path}: {error}") from None
    return connection


def insert_events(
    connection: apsw.Connection, session: str, events: Sequence[SessionEvent], now: float, state: SessionState
) -> list[Stored]:
    row = connection.execute("SELECT last_seq FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None:
        raise UnknownSession(f"'{session}': there is no such session")
    stored = [Stored(seq=row[0] + number, time=now, event=event) for number, event in enumerate(events, 1)]
    rows = [(session, one.seq, now, kind_of(one.event), ENCODER.encode(one.event)) for one in stored]
    connection.executemany("INSERT INTO events (session, seq, time, kind, data) VALUES (?,?,?,?,?)", rows)
    sql = "UPDATE sessions SET last_seq = ?, updated = ?, state = ? WHERE id = ?"
    connection.execute(sql, (row[0] + len(stored), now, state, session))
    return stored


def index_words(connection: apsw.Connection) -> bool:
    """Make what is new findable; whether there was any. It is done when somebody searches, since few ever do."""
    upto = connection.execute("SELECT upto FROM indexed").fetchone()
    start = upto[0] if upto else 0
    sql = "SELECT rowid, session, seq, data FROM events WHERE rowid > ? ORDER BY rowid LIMIT 5000"
    new = list(connection.execute(sql, (start,)))
    if not new:
        return False
    words = [(text, session, seq) for _, session, seq, data in new if (text := words_of(DECODER.decode(data)))]
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
