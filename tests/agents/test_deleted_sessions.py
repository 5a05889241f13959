"""With a session go the states that no other names, and never one that another does."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from file_trees import change_by_chance, facts_of
from scripted_provider import ScriptedProvider, bash
from toolyard import AgentApplication
from toolyard.agents.checkpoints.store import CheckpointStore
from toolyard.agents.sessions.copying import fork_session
from toolyard.agents.sessions.deletion import collect_states, delete_session
from toolyard.agents.sessions.events import CallBegan
from toolyard.agents.sessions.store import SessionStore
from toolyard.core.tool import ToolCall

pytestmark = pytest.mark.anyio
CONFIG = {"provider": "scripted", "plugins": ["shell:session"]}
CALL = ToolCall(id="c", name="bash", arguments={})
SECONDS = 90


class Place:
    """A workspace with sessions beside it."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.file = folder / "sessions" / "sessions.sqlite"
        self.sessions = SessionStore(self.file)
        self.states = self.open_states()

    def open_states(self) -> CheckpointStore:
        return CheckpointStore(self.file.parent / "checkpoints", self.work, home=Path("/nonexistent-home"))

    async def session_with_state(self, *, named: bool = True) -> tuple[str, str]:
        """A new session, for which the state of now is kept, and mostly named."""
        id = (await self.sessions.create("default", workspace=str(self.work))).id
        state = self.states.keep(session=id).id
        if named:
            await self.sessions.append(id, [CallBegan(call=CALL, checkpoint=state)], durable=True)
        return id, state

    def kept(self) -> set[str]:
        return {one.id for one in self.states.checkpoints()}

    def release(self) -> None:
        """Nobody works here any more."""
        self.states.close()


@pytest.fixture
def place(tmp_path: Path):
    place = Place(tmp_path)
    yield place
    place.sessions.close()
    place.states.close()


async def test_its_states_go_and_those_of_others_stay(place: Place):
    chance, made = random.Random(1), []
    for _ in range(3):
        (place.work / "large").write_bytes(chance.randbytes(500_000))
        made.append((*await place.session_with_state(), facts_of(place.work)))
    fork = await fork_session(place.sessions, made[1][0])
    place.release()
    assert await delete_session(place.sessions, made[0][0]) > 400_000
    assert place.kept() == {made[1][1], made[2][1]}
    assert await delete_session(place.sessions, made[1][0]) == 0, "its fork names the same state"
    assert place.kept() == {made[1][1], made[2][1]}
    for _, state, facts in made[1:]:
        place.states.restore(place.states.find(state))
        assert facts_of(place.work) == facts
    place.release()
    assert await delete_session(place.sessions, fork.id) > 0
    assert made[1][1] not in place.kept()


async def test_what_was_kept_for_a_session_stays_with_it_though_nothing_names_it(place: Place):
    (place.work / "a").write_text("before a way back")
    _, state = await place.session_with_state(named=False)
    (place.work / "a").write_text("looked at")
    looked_at = place.states.keep().id
    place.release()
    collect_states(place.file, str(place.work))
    assert place.kept() == {state}
    assert looked_at != state


async def test_a_state_that_another_process_is_about_to_name_is_spared(place: Place):
    (place.work / "a").write_text("one")
    unneeded, state = await place.session_with_state()
    (place.work / "a").write_text("two")
    old = place.states.keep().id
    record = next(file for file in place.file.parent.rglob("states/*.json") if old in file.read_text())
    os.utime(record, (1, 1))
    assert await delete_session(place.sessions, unneeded) >= 0
    assert place.kept() == {state}, "the store is open here, so that only the old one goes"
    (place.work / "a").write_text("one")
    os.utime(next(place.file.parent.rglob("states/*.json")), (1, 1))
    assert place.states.keep().id == state, "kept once more, as it is the same"
    collect_states(place.file, str(place.work))
    assert place.kept() == {state}
    place.release()
    collect_states(place.file, str(place.work))
    assert place.kept() == set()


COLLECTS = """
import os, random, sys, threading, time
from pathlib import Path
from toolyard.agents.sessions.deletion import collect_states
file, work, seed = sys.argv[1:]
pause = random.Random(int(seed)).random() * 0.15
threading.Thread(target=lambda: (time.sleep(pause), os.kill(os.getpid(), 9)), daemon=True).start()
while True:
    collect_states(Path(file), work)
"""


async def test_nothing_that_is_named_is_lost_by_a_kill_while_collecting(place: Place):
    chance, named = random.Random(3), []
    for number in range(8):
        change_by_chance(place.work, chance, 40)
        (place.work / "large").write_bytes(chance.randbytes(200_000))
        if number % 2:
            named.append(((await place.session_with_state())[1], facts_of(place.work)))
        else:
            place.states.keep()
    place.release()
    for seed in range(8):
        command = [sys.executable, "-c", COLLECTS, str(place.file), str(place.work), str(seed)]
        ended = await asyncio.to_thread(subprocess.run, command, timeout=SECONDS, check=False)
        assert ended.returncode == -9
    assert collect_states(place.file, str(place.work)) >= 0
    assert place.kept() == {state for state, _ in named}
    for state, facts in named:
        place.states.restore(place.states.find(state))
        assert facts_of(place.work) == facts


async def test_a_session_of_an_application_can_go_and_the_other_go_back(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "a").write_text("first")
    provider = ScriptedProvider(bash("echo second >a"), "Done.", bash("echo third >a"), "Done.")
    async with asyncio.timeout(SECONDS), AgentApplication(CONFIG, tmp_path / "sessions", tools=[provider]) as app:
        one = await app.open_session()
        _ = [update async for update in one.send("go")]
        other = await app.open_session()
        _ = [update async for update in other.send("go")]
        await one.aclose()
        await delete_session(app.session_store(), one.id)
        await other.rewind()
        assert (work / "a").read_text() == "second\n"
