"""The SQLite file of all sessions: its tables, and the one thread of a process that writes it."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Given = TypeVar("Given")
PATIENCE_MS = 10_000
"""How long a write waits for another process's."""
MARKS = "('prompt', 'shortened', 'rewound')"
"""What is needed of a session that is summed up; few events are of these kinds, and an index has them."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, agent TEXT NOT NULL, title TEXT NOT NULL, state TEXT NOT NULL, created REAL NOT NULL,
  updated REAL NOT NULL, last_seq INTEGER NOT NULL, workspace TEXT NOT NULL, forked_from TEXT, metadata TEXT NOT NULL,
  parent TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS events (
  session TEXT NOT NULL, seq INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL, data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS events_in_order ON events (session, seq);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, session UNINDEXED, seq UNINDEXED, tokenize = 'unicode61');
CREATE TABLE IF NOT EXISTS indexed (upto INTEGER NOT NULL) STRICT;
INSERT INTO indexed VALUES (0);
"""
VERSION = 2
SINCE_VERSION_1 = "ALTER TABLE sessions ADD COLUMN parent TEXT"
INDEX = f"CREATE INDEX IF NOT EXISTS marks ON events (session, seq) WHERE kind IN {MARKS}"


class StoreError(Exception):
    """The store cannot be read or written; the message says why."""


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
        if (version := connection.pragma("user_version")) < VERSION:
            bring_up_to_date(connection)
        elif version > VERSION:
            raise StoreError(f"{path} was written by a newer version of Toolyard")
    except apsw.Error as error:
        connection.close()
        raise StoreError(f"{path}: {error}") from None
    return connection


def bring_up_to_date(connection: apsw.Connection) -> None:
    """Make the tables, or add what this version has more of; one process does it, others wait and find it done."""
    connection.execute("BEGIN IMMEDIATE")
    version = connection.pragma("user_version")
    if version == 0:
        connection.execute(SCHEMA)
    elif version == 1:
        connection.execute(SINCE_VERSION_1)
    connection.execute(INDEX)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


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
