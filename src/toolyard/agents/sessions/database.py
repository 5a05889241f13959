"""The SQLite file of all sessions: its tables, and how it is opened."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from toolyard.agents.sessions.folder_vfs import open_database
from toolyard.files.own.entering import enter

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
OURS = frozenset(
    "".join(statement.replace("IF NOT EXISTS ", "").split())
    for schema in (SCHEMA, SCHEMA.replace(",\n  parent TEXT", ""))
    for statement in (*schema.split(";"), INDEX)
)
"""All that a store is made of, as SQLite tells it, but for spaces; also one of the first version."""
OF_WORDS = frozenset(f"words_{part}" for part in ("data", "idx", "content", "docsize", "config"))
"""Tables in which SQLite keeps the index of words."""
BESIDE = ("-wal", "-shm", "-journal")
"""How files are called that SQLite keeps beside the store."""
SETTINGS = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
)
"""What SQLite advises for a file that somebody else may have made."""


class StoreError(Exception):
    """The store cannot be read or written; the message says why."""


def connect(path: Path) -> apsw.Connection:
    """A connection that waits for others; the tables are there."""
    before = os.umask(0o077)
    try:
        connection = open_database(path)
    except (apsw.Error, OSError) as error:
        raise StoreError(f"{path}: {what_is_wrong(path, error)}") from None
    finally:
        os.umask(before)
    try:
        connection.set_busy_timeout(PATIENCE_MS)
        distrust(connection)
        if strange := strange_part(connection):
            connection.close()
            raise StoreError(f"{path} has something that Toolyard did not make: {strange}; move the file away")
        connection.execute("PRAGMA journal_mode = WAL")
        if (version := connection.pragma("user_version")) < VERSION:
            bring_up_to_date(connection)
        elif version > VERSION:
            raise StoreError(f"{path} was written by a newer version of Toolyard")
    except apsw.Error as error:
        connection.close()
        raise StoreError(f"{path}: {error}") from None
    return connection


def make_folder(folder: Path) -> None:
    """Make the folder of a store, if it is not there."""
    try:
        os.close(enter(folder, make=True))
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}") from None


def what_is_wrong(path: Path, error: Exception) -> str:
    """Why the file cannot be opened, in words of its owner's."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if any(os.path.islink(f"{path}{end}") for end in ("", *BESIDE)):
        return "it, or a file of SQLite's beside it, is a link; none is followed there: look at it, and remove it"
    return f"{error}: it is no file" if os.path.isdir(path) else str(error)


def distrust(connection: apsw.Connection) -> None:
    """Whoever made the file, and whatever it says, opening it runs nothing of it."""
    for setting, wanted in SETTINGS:
        connection.config(setting, wanted)
    connection.execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")


def strange_part(connection: apsw.Connection) -> str | None:
    """What of the tables, views and triggers is not ours; None in a store as we make it, or that is new."""
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema"):
        if kind == "table" and name in OF_WORDS:
            continue
        if sql is None and kind == "index" and name.startswith("sqlite_autoindex_"):
            continue
        if without_spaces(sql or "") not in OURS:
            return f"the {kind} '{name}'"
    return None


def without_spaces(statement: str) -> str:
    return "".join(statement.split())


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
