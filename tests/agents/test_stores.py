"""The file of all sessions: older ones are brought up to date, newer ones are left alone."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from toolyard.agents.sessions.database import SCHEMA, SINCE_VERSION_1, VERSION, StoreError, connect
from toolyard.agents.sessions.store import SessionStore

pytestmark = pytest.mark.anyio


def columns(path: Path, table: str = "sessions") -> list[str]:
    with apsw.Connection(str(path)) as connection:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


async def test_a_store_of_the_first_version_gets_what_is_new_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "sessions.sqlite"
    old = apsw.Connection(str(path))
    old.execute(SCHEMA.replace(",\n  parent TEXT", ""))
    old.execute("INSERT INTO sessions VALUES ('a1', 'default', 'Old', 'idle', 1, 2, 0, '/w', NULL, '{}')")
    old.execute("PRAGMA user_version = 1")
    old.close()
    assert "parent" not in columns(path)
    store = SessionStore(path)
    row = store.session("a1")
    store.close()
    assert (row.title, row.parent) == ("Old", None)
    fresh = tmp_path / "fresh.sqlite"
    connect(fresh).close()
    assert columns(path) == columns(fresh), SINCE_VERSION_1


def test_a_store_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "sessions.sqlite"
    connect(path).execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match="newer version"):
        connect(path)


async def test_subagents_are_listed_when_asked_for_and_go_with_their_parent(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.sqlite")
    top = await store.create("default")
    child = await store.create("helper", parent=top.id)
    await store.create("helper", parent=child.id)
    other = await store.create("default")
    assert {row.id for row in store.sessions()} == {top.id, other.id}
    assert len(store.sessions(subagents=True)) == 4
    await store.delete(top.id)
    assert [row.id for row in store.sessions(subagents=True)] == [other.id]
    store.close()
