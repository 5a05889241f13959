"""The file of all sessions: older ones are brought up to date, newer ones are left alone."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import apsw
import pytest

from conversations import chance_events
from toolyard.agents.budget import spent_in
from toolyard.agents.sessions.database import SCHEMA, SINCE_VERSION_1, VERSION, StoreError, connect
from toolyard.agents.sessions.event_log import EventLog, needed_events
from toolyard.agents.sessions.events import (
    AnswerReceived,
    ContextShortened,
    Noticed,
    PromptGiven,
    Rewound,
    TurnEnded,
    TurnStarted,
)
from toolyard.agents.sessions.history import read_history
from toolyard.agents.sessions.store import SMALL, SessionStore
from toolyard.core.conversation import AssistantMessage, message_of

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


@pytest.mark.parametrize("seed", range(40))
async def test_a_session_that_is_opened_from_its_last_summary_is_the_same(tmp_path: Path, seed: int) -> None:
    store = SessionStore(tmp_path / "sessions.sqlite")
    row = await store.create("default")
    await store.append(row.id, chance_events(random.Random(seed)))
    log, whole = EventLog(store, row.id), read_history(store.events(row.id))
    opened = log.history()
    store.close()
    assert (opened.messages, opened.unanswered, opened.turn) == (whole.messages, whole.unanswered, whole.turn)
    assert (opened.is_open, opened.partial) == (whole.is_open, whole.partial)
    assert spent_in(opened.events) == spent_in(whole.events)


async def test_opening_a_long_session_reads_only_what_it_rests_on(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.sqlite")
    row = await store.create("default")
    text = AnswerReceived(message=AssistantMessage(text="x"))
    await store.append(row.id, [TurnStarted(turn=1), *[text] * 500, TurnEnded(turn=1, outcome="answered")])
    await store.append(row.id, [TurnStarted(turn=2), ContextShortened(what="summary", upto=500, summary="s"), text])
    assert len(needed_events(store, row.id)) < 10
    log = EventLog(store, row.id)
    await log.record(Rewound(to=400))
    assert len(log.history().messages) == 398
    store.close()


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


async def test_two_that_write_one_store_wait_for_each_other(tmp_path: Path) -> None:
    stores = [SessionStore(tmp_path / "sessions.sqlite") for _ in range(2)]  # as two processes do

    async def write(store: SessionStore) -> int:
        row = await store.create("default")
        for number in range(200):
            await store.append(row.id, [Noticed(text="word " * 100)], durable=number % 4 == 0)
        return len(store.events(row.id))

    assert await asyncio.gather(*map(write, stores)) == [200, 200]
    for store in stores:
        store.close()


async def test_events_are_told_in_their_order_however_they_are_written(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.sqlite")
    log = EventLog(store, (await store.create("default")).id)
    long = "x" * (SMALL + 1)  # which a thread writes, as what is durable
    events = [Noticed(text=long if number % 7 == 0 else str(number)) for number in range(60)]
    with log.listening() as heard:
        await asyncio.gather(*(log.record(one, durable=at % 5 == 0) for at, one in enumerate(events)))
        told = [heard.get_nowait() for _ in events]
    assert told == log.events == store.events(log.session)
    assert [one.seq for one in log.events] == list(range(1, 61))
    store.close()


async def test_an_event_whose_writer_is_cancelled_is_part_of_the_conversation(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.sqlite")
    log = EventLog(store, (await store.create("default")).id)
    writing = asyncio.create_task(log.record(PromptGiven(message=message_of("hello")), durable=True))
    await asyncio.sleep(0)  # it has begun
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await log.record(TurnStarted(turn=1))
    assert log.history().messages == read_history(store.events(log.session)).messages == [message_of("hello")]
    store.close()


async def test_the_log_of_a_store_does_not_grow_without_bound(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.sqlite")
    row = await store.create("default")
    for _ in range(400):  # sixteen megabytes, none of it durable
        await store.append(row.id, [Noticed(text="x" * 40_000)])
    assert (tmp_path / "sessions.sqlite-wal").stat().st_size < 8 << 20
    store.close()


async def test_half_a_character_in_an_event_is_kept(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.sqlite")
    row = await store.create(agent="default", workspace="/w")
    event = Noticed(text="a name with \udcff in it")
    await store.append(row.id, [event], durable=True)
    assert [one.event for one in store.events(row.id)] == [event]
    store.close()
