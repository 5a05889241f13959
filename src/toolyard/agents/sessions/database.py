"""The SQLite file of all sessions: its tables, and how it is opened."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """What is done within is done as a whole, or not at all.

    It claims the file at once: what reads first and then finds that another process wrote fails, however patient it is.
    And it is begun and ended by statements, since apsw's own way lets no other thread work while it waits.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def bring_up_to_date(connection: apsw.Connection) -> None:
    """Make the tables, or add what this version has more of; one process does it, others wait and find it done."""
    with transaction(connection):
        version = connection.pragma("user_version")
        if version == 0:
            connection.execute(SCHEMA)
        elif version == 1:
            connection.execute(SINCE_VERSION_1)
        connection.execute(INDEX)
        connection.execute(f"PRAGMA user_version = {VERSION}")
