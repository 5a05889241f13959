"""T03 to T10, K01 to K05 and S15: turns, sessions that survive, and states that come back."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from file_trees import Facts, facts_of
from scripted_provider import ScriptedProvider, bash, calls, texts_of
from toolyard import AgentApplication
from toolyard.agents.session import AgentSession
from toolyard.agents.sessions.copying import export_lines, fork_session, import_lines
from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import CallAnswered, CallBegan, ContextShortened, Stored, TurnEnded
from toolyard.agents.sessions.store import SessionStore
from toolyard.core.conversation import Usage
from toolyard.errors import ProviderError

pytestmark = pytest.mark.anyio
SECONDS = 90
CONFIG = {"provider": "scripted", "plugins": ["shell:session"]}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@asynccontextmanager
async def opened(
    provider: ScriptedProvider, work: Path, config: dict[str, Any] | None = None, **given: Any
) -> AsyncIterator[AgentSession]:
    async with AgentApplication({**CONFIG, **(config or {})}, work.parent / "sessions", tools=[provider]) as app:
        async with asyncio.timeout(SECONDS):
            yield await app.open_session(**given)


async def say(session: AgentSession, prompt: str | None) -> TurnEnded:
    updates = [update async for update in session.send(prompt)]
    assert isinstance(updates[-1], Stored)
    assert isinstance(updates[-1].event, TurnEnded)
    return updates[-1].event


async def test_T03_a_turn_ends_by_an_answer_or_says_why(work: Path) -> None:
    provider = ScriptedProvider(bash("date +%N"), bash("date +%N"), "I came this far.", "Done.")
    async with opened(provider, work, {"budget": {"steps": 2}}) as session:
        bounded = await say(session, "first")
        assert (bounded.outcome, bounded.reason) == ("budget", "2 steps were taken")
        assert not provider.requests[2].may_call
        assert (await say(session, "second")).outcome == "answered"


async def test_T05_mistakes_go_back_as_results_and_repetition_is_said(work: Path) -> None:
    provider = ScriptedProvider(calls(("nothing", {}), ("bash", {"command": 1, "x": 2})))
    async with opened(provider, work) as session:
        assert (await say(session, "go")).outcome == "stuck"
    told = texts_of(provider.requests[3])
    assert any("no tool named 'nothing'" in text for text in told)
    assert "Repeating them will not help" in told[-1]


async def test_T06_what_a_call_will_do_is_on_disk_before_it_runs(work: Path) -> None:
    store_file = work.parent / "sessions" / "sessions.sqlite"
    seen = work / "seen"
    provider = ScriptedProvider(bash("touch began; while [ ! -e seen ]; do sleep 0.02; done"), "Done.")
    async with opened(provider, work) as session:
        running = asyncio.create_task(say(session, "go"))
        while not (work / "began").exists():
            await asyncio.sleep(0.02)
        reader = SessionStore(store_file)
        kinds = [type(one.event) for one in reader.events(session.id)]
        reader.close()
        seen.touch()
        await running
    assert kinds[-1] is CallBegan


async def test_T07_sessions_are_listed_searched_forked_and_copied(work: Path) -> None:
    provider = ScriptedProvider("The zebra is striped.", "Yes.")
    async with opened(provider, work) as session:
        await say(session, "Tell me of zebras")
        await say(session, "Really?")
        id, second = session.id, next(one.seq for one in session.events() if "Really" in str(one.event))
    store = SessionStore(work.parent / "sessions" / "sessions.sqlite")
    assert [(row.id, row.title, row.state) for row in store.sessions()] == [(id, "Tell me of zebras", "idle")]
    assert [hit.seq for hit in await store.search("striped zebra")] == [3]
    fork = await fork_session(store, id, second)
    assert len(store.events(fork.id)) == second - 1
    lines = [json.dumps(line, default=str) for line in export_lines(store, store.session(id))]
    copy = await import_lines(store, lines)
    assert [one.event for one in store.events(copy.id)] == [one.event for one in store.events(id)]
    await store.delete(fork.id)
    assert len(store.sessions()) == 2
    store.close()


async def test_T07_metadata_plugins_stays_with_the_session(work: Path) -> None:
    provider = ScriptedProvider("Hello.")
    async with opened(provider, work) as session:
        await session.set_metadata(plugins=["scripted"])
        id = session.id
    async with opened(provider, work, id=id) as session:
        await say(session, "What can you do?")
    assert provider.requests[0].tools == []


async def test_T08_the_context_stays_within_the_window_and_the_store_keeps_all(work: Path) -> None:
    def answer(request: Any) -> Any:
        if "Answer with the notes alone" in texts_of(request)[-1]:
            return "Notes."
        number = len(provider.requests)
        printing = calls(("bash", {"command": f"seq {number}0000 {number}0900"}), usage=Usage())
        return printing if number < 12 else "Done."

    provider = ScriptedProvider(answer)
    async with opened(provider, work, {"context": {"window": 6000}}) as session:
        assert (await say(session, "Never touch main.py.")).outcome == "answered"
        cuts = [one for one in session.events() if isinstance(one.event, ContextShortened)]
        results = [one.event.answer.text for one in session.events() if isinstance(one.event, CallAnswered)]
    assert cuts
    assert all(len(text) > 4000 for text in results)
    assert "Never touch main.py." in texts_of(provider.requests[-1])[0]


async def test_T09_a_person_steers_and_interrupts(work: Path) -> None:
    provider = ScriptedProvider(bash("echo one"), bash("echo begun; sleep 60"), "Done.")
    async with opened(provider, work) as session:
        async for update in session.send("go"):
            if type(update).__name__ == "CallStarted" and len(provider.requests) == 1:
                session.say("be quick")
            if type(update).__name__ == "OutputChunk" and "begun" in update.text:  # type: ignore[union-attr]
                session.interrupt()
        ended = session.events()[-1].event
        assert isinstance(ended, TurnEnded)
        assert ended.outcome == "interrupted"
        assert (await say(session, "and now?")).outcome == "answered"
    assert texts_of(provider.requests[1])[-1] == "user: be quick"


async def test_T10_a_subagent_has_its_own_context_and_its_callers_rules_and_budget(work: Path) -> None:
    agents = {
        "default": {"subagents": ["helper"], "budget": {"steps": 4}, "permissions": {"deny": ["touch **"]}},
        "helper": {},
    }
    give = calls(("agent", {"agent": "helper", "prompt": "Make a file."}))
    provider = ScriptedProvider(give, bash("touch made"), bash("date +%N"), "I was not let.", "So far.")
    async with opened(provider, work, {"agents": agents}) as session:
        updates = [update async for update in session.send("a secret")]
    ended = updates[-1].event  # type: ignore[union-attr]
    assert (ended.outcome, ended.reason) == ("budget", "4 steps were taken")  # type: ignore[union-attr]
    assert texts_of(provider.requests[1]) == ["user: Make a file."]
    assert "not allowed" in texts_of(provider.requests[2])[-1]
    assert not (work / "made").exists()
    assert "I was not let." in texts_of(provider.requests[4])[-2]
    told = [update for update in updates if isinstance(update, SubagentTold)]
    assert {one.call_id for one in told} == {"call_0"}
    store = SessionStore(work.parent / "sessions" / "sessions.sqlite")
    assert [row.parent for row in store.sessions(subagents=True) if row.agent == "helper"] == [session.id]
    store.close()


async def test_K01_a_state_is_kept_before_what_can_change_something_and_not_before_looking(work: Path) -> None:
    provider = ScriptedProvider(bash("ls"), "Seen.", bash("echo hi > a"), bash("echo ho > b"), "Made.")
    async with opened(provider, work) as session:
        session_app_preset(session, "read-only")
        await say(session, "look")
        assert [one.event.checkpoint for one in session.events() if isinstance(one.event, CallBegan)] == [None]
        session_app_preset(session, None)
        await say(session, "make")
        kept = [one.event.checkpoint for one in session.events() if isinstance(one.event, CallBegan)][1:]
    assert len(kept) == 2
    assert len(set(kept)) == 1
    assert None not in kept


def session_app_preset(session: AgentSession, preset: Any) -> None:
    session._parts.lifecycle.set_preset(preset, session.id)


async def test_K02_rewind_brings_back_files_and_conversation_and_redo_undoes_it(work: Path) -> None:
    (work / "mine").write_text("uncommitted work")
    (work / "empty").mkdir()
    (work / "link").symlink_to("mine")
    before = own_facts(work)
    changing = "rm -r mine empty link; mkdir new; echo x > new/file; chmod 600 new/file"
    provider = ScriptedProvider(bash(changing), "Done.", "Again.")
    async with opened(provider, work) as session:
        await say(session, "tidy up")
        after = own_facts(work)
        planned = await session.plan_rewind()
        assert {change.path for change in planned.changes} == {"mine", "empty", "link", "new", "new/file"}
        assert own_facts(work) == after
        done = await session.rewind()
        assert own_facts(work) == before
        assert done.restored
        assert session.history().messages == []
        await session.redo()
        assert own_facts(work) == after
        await session.rewind()
        await say(session, "hello")
        assert texts_of(provider.requests[-1]) == ["user: hello"]


async def test_K02_a_single_path_goes_back_and_comes_again(work: Path) -> None:
    provider = ScriptedProvider(bash("mkdir -p d/e; echo 1 > a; echo 1 > d/e/b"), "One.", bash("echo 2 | tee a d/e/b"))
    provider.steps += ("Two.", "Three.")
    async with opened(provider, work) as session:
        await say(session, "first")
        await say(session, "second")
        planned = await session.plan_rewind(paths=["d"])
        assert [change.path for change in planned.changes] == ["d/e/b"]
        await session.rewind(paths=["d/e/b"], conversation=False)
        assert [(work / name).read_text() for name in ("a", "d/e/b")] == ["2\n", "1\n"]
        assert len(session.history().messages) == 8
        await session.redo()
        assert [(work / name).read_text() for name in ("a", "d/e/b")] == ["2\n", "2\n"]
        await session.rewind(paths=["a"])
        await say(session, "third")
        assert texts_of(provider.requests[-1])[-2:] == ["assistant: One.", "user: third"]
        with pytest.raises(ProviderError, match="no path below the workspace"):
            await session.rewind(paths=["../elsewhere"])


async def test_K02_each_of_several_ways_back_is_taken_back_until_something_is_said(work: Path) -> None:
    provider = ScriptedProvider(bash("echo 1 > a"), "One.", bash("echo 2 > a"), "Two.", "Three.")
    async with opened(provider, work) as session:
        await say(session, "first")
        await say(session, "second")
        whole = session.history().messages
        await session.rewind()
        await session.rewind()
        assert not (work / "a").exists()
        await session.set_metadata(title="Other")
        await session.redo()
        assert (work / "a").read_text() == "1\n"
        assert session.history().messages == whole[:4]
        await session.redo()
        assert (work / "a").read_text() == "2\n"
        assert session.history().messages == whole
        with pytest.raises(ProviderError, match="nothing was gone back from"):
            await session.redo()
        await session.rewind()
        await say(session, "third")
        with pytest.raises(ProviderError, match="nothing was gone back from"):
            await session.redo()


@pytest.mark.parametrize("to", [0, -3, 99])
async def test_K02_there_is_no_way_back_to_what_never_was(work: Path, to: int) -> None:
    provider = ScriptedProvider(bash("echo 1 > a"), "One.")
    async with opened(provider, work) as session:
        await say(session, "first")
        with pytest.raises(ProviderError, match=f"no event {to}"):
            await session.rewind(to)
        with pytest.raises(ProviderError, match="no turn 9; the last is 1"):
            await session.turn_diff(9)
        assert (work / "a").exists()


async def test_S15_each_earlier_state_comes_back(work: Path) -> None:
    provider = ScriptedProvider(
        bash("echo one > a"), "Done.", bash("echo two > a; touch b"), "Done.", bash("rm a"), "Done."
    )
    async with opened(provider, work) as session:
        for prompt in ("first", "second", "third"):
            await say(session, prompt)
        states = [{}, {b"a": "one\n"}, {b"a": "two\n", b"b": ""}]
        for expected in reversed(states):
            await session.rewind()
            assert {name: facts[2].decode() for name, facts in own_facts(work).items()} == expected


def own_facts(work: Path) -> Facts:
    """What the workspace has, but for what a sandbox puts there while it lasts."""
    ours = (b".git", b".npmrc", b".yarnrc.yml", b".cargo")
    return {name: facts for name, facts in facts_of(work).items() if not name.startswith(ours)}


async def test_K03_the_users_repository_is_bit_identical(work: Path) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    who = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
    (work / "a").write_text("one\n")
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=work, check=True, env=environment)
    (work / "a").write_text("staged\n")
    subprocess.run(["git", "add", "a"], cwd=work, check=True, env=environment)
    provider = ScriptedProvider(bash("echo by an agent > a; echo more > b"), "Done.")
    async with opened(provider, work) as session:
        await say(session, "change a")
        repository = {name: facts for name, facts in facts_of(work).items() if name.startswith(b".git")}
        await session.rewind()
    assert (work / "a").read_text() == "staged\n"
    assert not (work / "b").exists()
    now = {name: facts for name, facts in facts_of(work).items() if name.startswith(b".git")}
    assert {name for name in now if now[name] != repository.get(name)} <= {b".git/config.lock"}


async def test_K04_bounds_hold_and_what_is_not_covered_is_said(work: Path) -> None:
    (work / "large").write_bytes(b"x" * 3000)
    (work / "node_modules").mkdir()
    provider = ScriptedProvider(bash("echo y >> large; echo small > small"), "Done.")
    async with opened(provider, work, {"checkpoints": {"largest_file_bytes": 2000}}) as session:
        await say(session, "change it")
        done = await session.rewind()
    assert done.restored
    named = {one.path: one.reason for one in done.restored.safety.left_out}
    assert "large" in named
    assert "node_modules" in named
    assert (work / "large").stat().st_size == 3002
    assert not (work / "small").exists()


async def test_K05_each_turn_has_its_diff(work: Path) -> None:
    (work / "a").write_text("one\ntwo\n")
    provider = ScriptedProvider(bash("sed -i s/two/three/ a"), "Done.", bash("echo new > b"), "Done.")
    async with opened(provider, work) as session:
        await say(session, "first")
        (work / "by-hand").write_text("between the turns\n")
        await say(session, "second")
        assert await session.turn_diff(1) == "diff a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
        assert await session.turn_diff() == "diff a/b b/b\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n"
