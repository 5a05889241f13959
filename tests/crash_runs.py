"""Sessions whose process is killed again and again, at moments by chance; and what must be true after each time.

python tests/crash_runs.py 500        # so many kills, and what was found
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from toolyard import AgentApplication
from toolyard.agents.sessions.claim import SessionClaim, SessionTaken
from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import (
    CallAnswered,
    CallBegan,
    ContextShortened,
    QuestionAsked,
    Stored,
    TurnEnded,
    TurnStarted,
)
from toolyard.agents.sessions.history import INTERRUPTED, read_history
from toolyard.agents.sessions.questions import open_questions
from toolyard.agents.sessions.store import SessionStore
from toolyard.core.conversation import AssistantMessage
from toolyard.core.events import CallFinished
from toolyard.core.model import Answered, ModelEvent, ModelRequest, TextDelta
from toolyard.core.tool import ToolCall
from toolyard.permissions.verdict import Answer, PermissionRequest, Verdict

PATIENCE = 120.0
KILLS_IN_A_FOLDER = 10
CONFIG = {
    "provider": "chance",
    "plugins": ["shell:session"],
    "context": {"window": 2500},
    "permissions": {"preset": "workspace", "allow": ["echo **", "seq **", "sleep **"], "ask": ["touch **"]},
    "agents": {"default": {"subagents": ["helper"]}, "helper": {"subagents": ["helper"]}},
}


class ChanceProvider:
    """Calls what chance says, in pieces, each call under a name that no other has."""

    id = "chance"
    default_model = "dice"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for piece in range(random.randrange(4)):
            yield TextDelta(text=f"piece {piece} ")
            await asyncio.sleep(random.random() * 0.004)
        calls = answered = request.may_call and random.random() < 0.8
        made = [chance_call() for _ in range(random.randrange(1, 4))] if calls else []
        yield Answered(message=AssistantMessage(text="" if answered else "Done.", calls=tuple(made)))


def chance_call() -> ToolCall:
    id = os.urandom(6).hex()
    kind = random.random()
    if kind < 0.15:
        return ToolCall(id=id, name="agent", arguments={"agent": "helper", "prompt": f"work {id}"})
    command = f"echo {id} >> ran; echo {id} > changed; sleep 0.0{random.randrange(9)}; seq 300"
    return ToolCall(id=id, name="bash", arguments={"command": command if kind < 0.75 else f"touch asked-{id}"})


class ChanceApprover:
    """Says yes, no, or not yet, after a while."""

    async def approve(self, request: PermissionRequest, verdict: Verdict) -> Answer:
        say("asked", request.session, request.call_id)
        await asyncio.sleep(random.random() * 0.03)
        chance = random.random()
        return Answer(allowed=chance < 0.6, later=chance > 0.85, reason="by chance")


def say(*words: str) -> None:
    print(*words, flush=True)


async def work(sessions: str, id: str, *, to_the_end: bool) -> None:
    """Go on with the session, turn after turn; to the end means until its turn ends."""
    async with AgentApplication(CONFIG, sessions, tools=[ChanceProvider()], approver=ChanceApprover()) as app:
        session = await app.open_session(id=id or None)
        say("open", session.id)
        while True:
            async for update in session.send(None if session.history().is_open else "go on"):
                hear(session.id, update)
            if to_the_end and not session.history().is_open:
                break
    say("end")


def hear(session: str, update: Any) -> None:
    while isinstance(update, SubagentTold):
        session, update = update.session, update.update
    if isinstance(update, CallFinished):
        say("told", session, update.call_id)
    elif isinstance(update, Stored) and isinstance(update.event, ContextShortened):
        say("shortened", session)


class CrashRun:
    """One session, its folder, and what its processes told before they were killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.session = ""
        self.seen: Counter[str] = Counter()
        self._told: set[tuple[str, str]] = set()
        self._asked: set[tuple[str, str]] = set()
        (folder / "work").mkdir(parents=True)

    def kill_once(self) -> None:
        """Start the session, kill its process after some lines of its and a moment, and look at what is left."""
        lines = self.chance.randrange(1, 40)
        with self._started("crash") as process:
            for number, line in enumerate(self._lines(process)):
                self._note(line)
                if number == 0 and self.chance.random() < 0.3:
                    self._try_second(process.pid)
                if number >= lines:
                    break
            time.sleep(self.chance.random() * 0.02)  # a moment by chance, which is the point
            process.kill()
            for line in self._lines(process):
                self._note(line)
        assert process.returncode == -signal.SIGKILL
        self.seen["kills"] += 1
        self.check()

    def finish(self) -> None:
        """Let it go on until its turn ends; nothing is left to answer then."""
        with self._started("finish") as process:
            for line in self._lines(process):
                self._note(line)
        assert process.returncode == 0
        self.check()
        with self._store() as store:
            history = read_history(store.events(self.session))
            assert not history.unanswered
            assert not history.is_open
            assert isinstance(store.events(self.session)[-1].event, TurnEnded)
            assert open_questions(store, self.session) == []
            assert store.session(self.session).state == "idle"

    def check(self) -> None:
        """What must be true whenever the process was killed."""
        with self._store() as store:
            rows = store.sessions(subagents=True)
            events = {row.id: [one.event for one in store.events(row.id)] for row in rows}
            waiting = {one.call_id for one in open_questions(store, self.session)} if self.session else set()
        results = {(id, one.answer.call_id): one for id, all in events.items() for one in kept(all, CallAnswered)}
        began = Counter((id, one.call.id) for id, all in events.items() for one in kept(all, CallBegan))
        asked = {(id, one.call_id) for id, all in events.items() for one in kept(all, QuestionAsked)}
        lost = self._told - results.keys()
        assert not lost, f"results were told that are not kept: {lost}"
        assert self._asked <= asked, f"questions were lost: {self._asked - asked}"
        ran = Counter((self.folder / "work" / "ran").read_text().split()) if self._path("ran").exists() else Counter()
        assert not ran or max(ran.values()) == 1, f"a call ran twice: {ran.most_common(1)}"
        begun_ids = {call for _, call in began}
        made = {file.name.removeprefix("asked-") for file in (self.folder / "work").glob("asked-*")}
        assert ran.keys() | made <= begun_ids, "a call ran that is not on record"
        self._check_audit(began, results)
        self.seen["waiting questions"] += len(waiting)
        self.seen["interrupted calls"] = sum(one.answer.text == INTERRUPTED for one in results.values())
        self.seen["calls"] = len(ran) + len(made)
        self.seen["turns"] = sum(len(kept(all, TurnStarted)) for all in events.values())
        self.seen["summaries"] = sum(len(kept(all, ContextShortened)) for all in events.values())
        self.seen["subagents"] = len(rows) - 1
        states = {one.checkpoint for all in events.values() for one in kept(all, CallBegan)}
        self.seen["states kept"] = len(states - {None})

    def _check_audit(self, began: Counter[tuple[str, str]], results: dict[tuple[str, str], Any]) -> None:
        starts: Counter[tuple[str, str]] = Counter()
        ends: set[tuple[str, str]] = set()
        for file in (self.folder / "sessions" / "audit").glob("*.ndjson"):
            for text in file.read_text().splitlines():
                line = json.loads(text)
                if line.get("event") == "start":
                    starts[line["session"], line["call_id"]] += 1
                elif line.get("event") == "end":
                    ends.add((line["session"], line["call_id"]))
        more = {key: number for key, number in starts.items() if number > began[key]}
        assert not more, f"the audit has starts that the store does not know: {more}"
        unknown = {key for key, one in results.items() if key not in ends and one.answer.text != INTERRUPTED}
        assert not unknown, f"the store has results that the audit does not know: {unknown}"

    def _try_second(self, pid: int) -> None:
        try:
            SessionClaim(self.folder / "sessions" / "locks", self.session).release()
        except SessionTaken as taken:
            assert f"process {pid}" in str(taken)  # noqa: PT017 - which process it says is what matters
            self.seen["second processes told"] += 1
        else:
            raise AssertionError("a second process was let in")

    @contextlib.contextmanager
    def _started(self, what: str) -> Iterator[subprocess.Popen[str]]:
        """A process of the session, which is killed when it takes longer than any should."""
        with subprocess.Popen(
            [sys.executable, __file__, what, str(self.folder / "sessions"), self.session],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder / "work",
            env={**os.environ, "XDG_STATE_HOME": str(self.folder / "state"), "XDG_CONFIG_HOME": str(self.folder)},
        ) as process:
            watch = threading.Timer(PATIENCE, process.terminate)
            watch.start()
            try:
                yield process
            finally:
                watch.cancel()

    def _lines(self, process: subprocess.Popen[str]) -> Iterator[list[str]]:
        assert process.stdout
        for line in process.stdout:
            yield line.split()

    def _note(self, line: list[str]) -> None:
        match line:
            case ["open", id]:
                self.session = id
            case ["told", session, call]:
                self._told.add((session, call))
            case ["asked", session, call]:
                self._asked.add((session, call))
            case _:
                pass

    def _path(self, name: str) -> Path:
        return self.folder / "work" / name

    @contextlib.contextmanager
    def _store(self) -> Iterator[SessionStore]:
        store = SessionStore(self.folder / "sessions" / "sessions.sqlite")
        try:
            yield store
        finally:
            store.close()


def kept(events: list[Any], form: type[Any]) -> list[Any]:
    return [one for one in events if isinstance(one, form)]


def crash(folder: Path, seed: int, kills: int) -> Counter[str]:
    """Kill a session so many times, then let it end; what there was to see. AssertionError when something was lost."""
    run = CrashRun(folder, seed)
    for _ in range(kills):
        run.kill_once()
    run.finish()
    return run.seen


def main(kills: int) -> None:
    seen: Counter[str] = Counter()
    started = time.monotonic()
    for seed in range((kills + KILLS_IN_A_FOLDER - 1) // KILLS_IN_A_FOLDER):
        with tempfile.TemporaryDirectory(prefix="crash-") as folder:
            seen += crash(Path(folder) / "run", seed, KILLS_IN_A_FOLDER)
        print(f"{seen['kills']} kills, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(json.dumps(seen, indent=2))


if __name__ == "__main__":
    if sys.argv[1] in ("crash", "finish"):
        asyncio.run(work(sys.argv[2], sys.argv[3], to_the_end=sys.argv[1] == "finish"))
    else:
        main(int(sys.argv[1]))
