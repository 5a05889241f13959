"""A session goes on after its process was killed, at whatever moment."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripted_provider import ScriptedProvider, bash, texts_of
from toolyard import AgentApplication
from toolyard.agents.sessions.claim import SessionTaken
from toolyard.agents.sessions.events import CallAnswered, CallBegan, QuestionAsked, TurnEnded
from toolyard.agents.sessions.history import INTERRUPTED, read_history
from toolyard.agents.sessions.store import SessionStore

pytestmark = pytest.mark.anyio
SECONDS = 60
CONFIG = {"provider": "scripted", "plugins": ["shell:session"], "checkpoints": {"largest_file_bytes": 10_000_000}}
ASKING = {**CONFIG, "permissions": {"preset": "workspace", "ask": ["touch **"]}}
TESTS = Path(__file__).parent.parent
PROGRAM = """
import asyncio, json, sys
from scripted_provider import ScriptedProvider, bash, endless
from toolyard import AgentApplication
from toolyard.permissions.verdict import Answer

class Never:
    async def approve(self, request, verdict):
        print("asked", flush=True)
        await asyncio.Event().wait()

async def main(config, sessions, what):
    steps = {
        "call": [bash("echo x >> ran; echo started; sleep 600")],
        "stream": [endless],
        "question": [bash("touch asked")],
        "many": [bash(f"echo {n} >> ran; seq 2000") for n in range(400)],
    }[what]
    provider = ScriptedProvider(*steps)
    async with AgentApplication(json.loads(config), sessions, tools=[provider], approver=Never()) as app:
        session = await app.open_session()
        async for update in session.send("go"):
            print(type(update).__name__, getattr(update, "text", ""), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def start(folder: Path, what: str, config: object = CONFIG) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(config), str(folder / "sessions"), what],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder / "work",
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )


def kill_at(process: subprocess.Popen[str], line: str) -> None:
    """Kill it when it has printed a line."""
    assert process.stdout
    for printed in process.stdout:
        if line in printed:
            break
    else:
        raise AssertionError(f"it ended without '{line}'")
    process.kill()
    process.wait(SECONDS)
    process.stdout.close()


def only_session(folder: Path) -> str:
    store = SessionStore(folder / "sessions" / "sessions.sqlite")
    try:
        return store.sessions()[0].id
    finally:
        store.close()


async def test_a_call_that_ran_when_the_process_was_killed_is_told_and_not_run_again(folder: Path) -> None:
    kill_at(start(folder, "call"), "OutputChunk started")
    provider = ScriptedProvider("I see.")
    async with AgentApplication(CONFIG, folder / "sessions", tools=[provider]) as app, asyncio.timeout(SECONDS):
        session = await app.open_session(id=only_session(folder))
        updates = [update async for update in session.send(None)]
    assert updates[-1].event.outcome == "answered"  # type: ignore[union-attr]
    assert texts_of(provider.requests[0])[-1] == f"tool: {INTERRUPTED}"
    assert (folder / "work" / "ran").read_text() == "x\n"


async def test_what_was_received_of_an_answer_is_there(folder: Path) -> None:
    kill_at(start(folder, "stream"), "TextDelta so far")
    provider = ScriptedProvider("Going on.")
    async with AgentApplication(CONFIG, folder / "sessions", tools=[provider]) as app, asyncio.timeout(SECONDS):
        session = await app.open_session(id=only_session(folder))
        async for _ in session.send("and?"):
            pass
    assert texts_of(provider.requests[0])[0] == "user: go"
    assert texts_of(provider.requests[0])[-1] == "user: and?"


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_question_that_waited_waits_again(folder: Path, allowed: bool) -> None:
    from toolyard.permissions.verdict import answer_always

    kill_at(start(folder, "question", ASKING), "asked")
    id = only_session(folder)
    store = SessionStore(folder / "sessions" / "sessions.sqlite")
    assert store.session(id).state == "waiting"
    assert any(isinstance(one.event, QuestionAsked) for one in store.events(id))
    store.close()
    provider = ScriptedProvider("Done.")
    approver = answer_always(allowed=allowed, reason="so it be")
    async with AgentApplication(ASKING, folder / "sessions", tools=[provider], approver=approver) as app:
        async with asyncio.timeout(SECONDS):
            session = await app.open_session(id=id)
            async for _ in session.send(None):
                pass
    assert (folder / "work" / "asked").exists() == allowed


async def test_a_question_that_is_kept_names_its_folder(folder: Path) -> None:
    from toolyard.permissions.verdict import answer_always

    (folder / "work" / "sub").mkdir()
    provider = ScriptedProvider(bash("cd sub"), bash("touch asked"), "Done.")
    approver = answer_always(allowed=False, reason="not there")
    async with AgentApplication(ASKING, folder / "sessions", tools=[provider], approver=approver) as app:
        async with asyncio.timeout(SECONDS):
            session = await app.open_session()
            async for _ in session.send("go"):
                pass
            asked = [one.event.question for one in session.events() if isinstance(one.event, QuestionAsked)]
    told = f"in a folder of the workspace: {folder}/work/sub"
    assert [question["where"] for question in asked] == [told]


async def test_a_second_process_is_told(folder: Path) -> None:
    process = start(folder, "call")
    assert process.stdout
    for line in process.stdout:
        if "OutputChunk" in line:
            break
    try:
        async with AgentApplication(CONFIG, folder / "sessions", tools=[ScriptedProvider("x")]) as app:
            with pytest.raises(SessionTaken, match=f"process {process.pid} works on the session"):
                await app.open_session(id=only_session(folder))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
        process.stdout.close()


@pytest.mark.parametrize("seed", range(6))
async def test_a_kill_at_any_moment_loses_nothing_and_repeats_nothing(folder: Path, seed: int) -> None:
    process = start(folder, "many")
    assert process.stdout
    process.stdout.readline()
    time.sleep(random.Random(seed).random() * 0.6)  # a moment by chance, which is the point
    process.kill()
    process.wait(SECONDS)
    reported = process.stdout.read().count("CallFinished")
    process.stdout.close()
    id = only_session(folder)
    provider = ScriptedProvider("That was all.")
    async with AgentApplication(CONFIG, folder / "sessions", tools=[provider]) as app, asyncio.timeout(SECONDS):
        session = await app.open_session(id=id)
        async for _ in session.send(None if session.history().is_open else "go on"):
            pass
        events = [one.event for one in session.events()]
    ran = [int(line) for line in (folder / "work" / "ran").read_text().split()] if reported else []
    results = [event for event in events if isinstance(event, CallAnswered)]
    began = [event for event in events if isinstance(event, CallBegan)]
    assert ran == sorted(set(ran)), "a call ran twice"
    assert len(results) >= reported, "a result that was told is not kept"
    assert len(began) >= len(ran)
    assert isinstance(events[-1], TurnEnded)
    assert read_history(session.events()).unanswered == []
    audited = [
        json.loads(line) for file in (folder / "sessions" / "audit").glob("*") for line in file.read_text().splitlines()
    ]
    assert {line["call_id"] for line in audited if line.get("event") == "start"} <= {event.call.id for event in began}


async def test_two_sessions_of_one_application_have_a_shell_each(folder: Path) -> None:
    provider = ScriptedProvider(bash("x=one; echo $x"), "ok", bash("echo [$x]"), "ok")
    async with AgentApplication(CONFIG, folder / "sessions", tools=[provider]) as app, asyncio.timeout(SECONDS):
        for _ in range(2):
            session = await app.open_session()
            async for _ in session.send("go"):
                pass
    assert texts_of(provider.requests[3])[-1] == "tool: []"


async def test_a_question_that_waited_can_be_put_off_and_answered_by_a_third_process(folder: Path) -> None:
    from toolyard.permissions.verdict import Answer, FixedAnswer, answer_always

    kill_at(start(folder, "question", ASKING), "asked")
    id = only_session(folder)
    later = FixedAnswer(answer=Answer(allowed=False, reason="not now", later=True))
    for approver, made in ((later, False), (later, False), (answer_always(allowed=True, reason="yes"), True)):
        async with AgentApplication(ASKING, folder / "sessions", tools=[ScriptedProvider("Done.")]) as app:
            session = await app.open_session(id=id, approver=approver)
            async with asyncio.timeout(SECONDS):
                async for _ in session.send(None):
                    pass
            assert bool(session.waiting_questions()) is not made
            assert app.session_store().session(id).state == ("idle" if made else "waiting")
        assert (folder / "work" / "asked").exists() == made
