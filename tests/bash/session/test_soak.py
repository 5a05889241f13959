"""Long use: many commands in one session, many sessions at once, many cancellations, and in the end all is as before.

The sizes are moderate. `TOOLYARD_SOAK=full` makes them large, which takes some minutes, and `-s` shows the figures:

    TOOLYARD_SOAK=full pytest tests/bash/session/test_soak.py -s --timeout 1800
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from console import PATIENCE
from marks import end_marked, fresh_mark, marked
from support import memory
from toolyard.bash import BashSession
from toolyard.process.process_tree import children_of

pytestmark = pytest.mark.anyio

FULL = os.environ.get("TOOLYARD_SOAK") == "full"
COMMANDS = 100_000 if FULL else 3_000
SESSIONS = 500 if FULL else 60
CANCELLATIONS = 2_000 if FULL else 200
MIB = 1 << 20
LONGEST = 1700 if FULL else 100
"""No soak takes longer in all, however busy the machine is."""


class Holdings(NamedTuple):
    """What a process has that it should not gather."""

    descriptors: int
    tasks: int
    children: list[int]

    @classmethod
    def now(cls) -> Holdings:
        return cls(len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), children_of(os.getpid()))


@pytest.fixture
async def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Whatever a test opens is gone at its end: descriptors, tasks, processes, files."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = Holdings.now()
    yield
    assert Holdings.now() == before
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def mark() -> Iterator[str]:
    mark = fresh_mark()
    yield mark
    left = marked(mark)
    end_marked(mark)
    assert left == []


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """A session has several in our process and in the keeper's, which gets our limits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def one_of_many_kinds(shell: BashSession, n: int) -> None:
    """A command of a kind that depends on its number, and its reply, which is its own."""
    match n % 50:
        case 0:
            reply = await shell.run(f"/bin/echo {n}")
            expected, status = f"{n}\n", 0
        case 10:
            reply = await shell.run(f"seq {n} {n + 99}")
            expected, status = "".join(f"{k}\n" for k in range(n, n + 100)), 0
        case 20:
            reply = await shell.run(f"echo {n} >&2; (exit {n % 150})")
            expected, status = f"{n}\n", n % 150
        case 30:
            reply = await shell.run(f"echo '{n}")
            assert reply.output
            expected, status = reply.output, 2
        case 40:
            reply = await shell.run(f"x={n}; f() {{ echo $x; }}; f | cat")
            expected, status = f"{n}\n", 0
        case k if k % 2:
            reply = await shell.run(f"echo {n}")
            expected, status = f"{n}\n", 0
        case _:
            reply = await shell.run(f"true {n}; printf '%s\\n' {n}")
            expected, status = f"{n}\n", 0
    assert (reply.output, reply.exit_code, reply.restarted) == (expected, status, False), n


async def test_one_session_runs_thousands_of_commands_in_the_same_memory(nothing_is_left: None, mark: str) -> None:
    async with asyncio.timeout(LONGEST), BashSession(env=environment(mark)) as shell:
        for n in range(COMMANDS // 10):
            await one_of_many_kinds(shell, n)
        assert shell.pid
        pid, ours, theirs, holdings = shell.pid, memory(), memory(shell.pid), Holdings.now()
        started = time.monotonic()
        for n in range(COMMANDS // 10):
            await one_of_many_kinds(shell, n)
        early = time.monotonic() - started
        for n in range(COMMANDS * 7 // 10):
            await one_of_many_kinds(shell, n)
        started = time.monotonic()
        for n in range(COMMANDS // 10):
            await one_of_many_kinds(shell, n)
        late = time.monotonic() - started
        gc.collect()
        grown = memory() - ours, memory(pid) - theirs
        assert (shell.pid, Holdings.now(), shell.jobs) == (pid, holdings, {})
        assert len(os.listdir(f"/proc/{pid}/fd")) < 10
    each = 1e6 / (COMMANDS // 10)
    say(f"{COMMANDS} commands: {early * each:.0f} µs each at first, {late * each:.0f} µs at last")
    say(f"memory grew by {grown[0] / MIB:.1f} MiB here and {grown[1] / MIB:.1f} MiB in bash")
    assert max(grown) < 16 * MIB


async def test_one_session_outlives_many_shells_jobs_and_time_outs(nothing_is_left: None, mark: str) -> None:
    rounds = COMMANDS // 100
    async with asyncio.timeout(LONGEST), BashSession(env=environment(mark)) as shell:
        await shell.run("keep=kept")
        for n in range(rounds):
            if n == rounds // 10:
                gc.collect()
                before, holdings = memory(), Holdings.now()
            reply = await shell.run(f"echo {n}; exit {n % 150}")
            assert (reply.output, reply.exit_code, reply.ended) == (f"{n}\n", n % 150, True)
            reply = await shell.run(f"echo {n} $keep; ( : ) & wait")
            assert (reply.output, reply.restarted) == (f"{n} kept\n", True)
            job = shell.jobs[(await shell.run(f"exit {n % 150}", background=True)).job or ""]
            assert await job.wait(PATIENCE)
            assert job.exit_code == n % 150
            if n % 10 == 0:
                assert (await shell.run(f"sleep {mark}", timeout=0.02)).timed_out
        gc.collect()
        grown = memory() - before
        now = Holdings.now()
        assert (now.tasks, now.children) == (holdings.tasks, holdings.children)
        assert now.descriptors <= holdings.descriptors + 2 * 64, "the last 64 jobs may still be read"
    say(f"{rounds} shells, one after the other: memory grew by {grown / MIB:.1f} MiB")
    assert grown < 16 * MIB


async def test_many_sessions_at_once(nothing_is_left: None, many_descriptors: None, mark: str) -> None:
    async with asyncio.timeout(LONGEST):
        first = BashSession(env=environment(mark))
        await first.run("true")
        gc.collect()
        ours, before = memory(), len(os.listdir("/proc/self/fd"))
        sessions = [BashSession(env=environment(mark)) for _ in range(SESSIONS)]
        try:
            started = time.monotonic()
            await asyncio.gather(*(session.start() for session in sessions))
            took = time.monotonic() - started
            assert len({session.pid for session in sessions}) == SESSIONS
            for turn in range(5):
                replies = await asyncio.gather(
                    *(
                        session.run(f"n=${{n:-{n}}}; echo {turn} $n; (exit {n % 150})")
                        for n, session in enumerate(sessions)
                    )
                )
                assert [(reply.output, reply.exit_code) for reply in replies] == [
                    (f"{turn} {n}\n", n % 150) for n in range(SESSIONS)
                ]
            descriptors = (len(os.listdir("/proc/self/fd")) - before) / SESSIONS
            here = (memory() - ours) / SESSIONS
            theirs = sum(private_memory(session.pid) for session in sessions if session.pid) / SESSIONS
        finally:
            started = time.monotonic()
            await asyncio.gather(*(session.aclose() for session in sessions))
            closing = time.monotonic() - started
            await first.aclose()
    say(f"{SESSIONS} sessions: started in {took:.2f} s, ended in {closing:.2f} s")
    say(f"each: {here / 1024:.0f} KiB here, {theirs / 1024:.0f} KiB of its bash's own, {descriptors:.1f} descriptors")
    assert here < MIB
    assert descriptors < 10


async def test_cancellations_at_any_moment_leave_the_next_reply_whole(nothing_is_left: None, mark: str) -> None:
    chance = random.Random(CANCELLATIONS)
    commands = ["echo {n}", "/bin/echo {n}", "echo {n}; echo {n}", "seq 20000", "sleep {mark}", "sleep 0.002; echo {n}"]
    async with asyncio.timeout(LONGEST), BashSession(env=environment(mark)) as shell:
        await shell.run("keep=kept")
        pid = shell.pid
        for n in range(CANCELLATIONS):
            text = chance.choice(commands).format(n=n, mark=mark)
            call = asyncio.ensure_future(shell.run(text))
            await asyncio.wait([call], timeout=chance.choice([0, 0.0002, 0.0005, 0.001, 0.002, 0.004]))
            call.cancel()
            reply = await shell.run(f'echo "next {n} $keep"')
            assert (reply.output, reply.exit_code) == (f"next {n} kept\n", 0), text
            await asyncio.wait([call])
            if n == CANCELLATIONS // 10:
                holdings = Holdings.now()
        assert (shell.pid, shell.jobs) == (pid, {})
        assert Holdings.now() == holdings
        assert [found for found in marked(mark) if not found.startswith(f"{pid} ")] == []


def environment(mark: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "CASE": mark}


def private_memory(pid: int) -> int:
    """What a process has for itself alone, in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024


def say(line: str) -> None:
    if FULL:
        sys.stdout.write(f"\n{line}")
