"""E10: a tool cannot switch recording off, block it, or keep a gap in it from being seen."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from support import TOOLYARD, need_backend
from toolyard.plugins.contract import tool
from toolyard.runtime import sandbox_policy
from toolyard.runtime.audit import writers as audit_writers
from toolyard.runtime.audit.verify import check_log
from toolyard.runtime.audit.writers import own_place
from yard import Yard, inhabit

pytestmark = pytest.mark.anyio
PATIENCE = 60.0
LOCK_ALL = """
import fcntl, os, pathlib, sys, time
held, places = [], [pathlib.Path(place) for place in sys.argv[1:]]
for place in places:
    for path in (place, *place.rglob("*")) if place.exists() else ():
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.append(fd)
            print("locked", path)
        except OSError:
            continue
        for lock in (lambda: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB),
                     lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)):
            try:
                lock()
            except OSError:
                pass
print("all", flush=True)
time.sleep(600)
"""


@pytest.fixture
def yard(tmp_path, monkeypatch) -> Yard:
    return Yard(inhabit(tmp_path, monkeypatch) / "project")


@pytest.mark.parametrize("backend", ["bubblewrap", "bubblewrap-pids", "landlock"])
async def test_E10_a_job_that_locks_all_it_can_open_neither_stops_recording_nor_reaches_our_lock(
    yard, backend, monkeypatch
):
    need_backend(backend)
    monkeypatch.setattr(sandbox_policy, "backends", lambda _: (backend,))
    waits: list[str] = []
    waited_for = audit_writers.try_lock
    monkeypatch.setattr(
        audit_writers,
        "try_lock",
        lambda fd, kind, patience: waited_for(fd, kind, patience) or bool(patience and waits.append("in vain")),
    )
    config = yard.config("shell:session", "shell:command")
    script = yard.file("lock.py", LOCK_ALL)
    sessions = yard.folder / "sessions"
    async with asyncio.timeout(PATIENCE), yard.open(config) as app:
        await app.call_tool("bash", {"command": "true"})
        place = own_place(sessions / "audit")
        assert place is not None
        words = " ".join(map(str, (sys.executable, "-S", script, place, sessions, f"{sessions}/audit.head")))
        await app.call_tool("bash", {"command": f"{words} > locks & while ! grep -qx all locks; do sleep 0.1; done"})
        found = (await app.call_tool("bash", {"command": "cat locks"})).text
        for _ in range(3):
            assert (await app.call_tool("shell", {"command": "true"})).ok
    assert "all" in found.split(), "it tried"
    assert place not in found, "our lock cannot be opened from inside"
    assert len(waits) <= 1, "a lock on the head is waited for once, and then done without"
    checked = check_log(sessions / "audit")
    assert (checked.broken, checked.gaps) == (None, ())
    assert [line["event"] for line in yard.audit() if line.get("tool") == "shell"] == ["start", "end"] * 3


@contextmanager
def room_for(size):
    """A disk on which a file can have so many bytes; Python ignores the signal that comes with the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def say(text: str) -> str:
    """Gives a text back."""
    return text


def audit(yard, *words) -> tuple[int, str]:
    argv = [str(TOOLYARD), "--sessions", str(yard.folder / "sessions"), "audit", *words]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    return ran.returncode, ran.stdout + ran.stderr


async def test_E10_calls_that_a_full_disk_kept_from_the_log_are_a_line_that_verify_names(yard):
    config = yard.config()
    async with yard.open(config, tools=[tool(say)]) as app:
        await app.call_tool("say", {"text": "first"})
        (file,) = (yard.folder / "sessions" / "audit").iterdir()
        with room_for(file.stat().st_size):
            for number in range(3):
                assert (await app.call_tool("say", {"text": "unseen"}, call_id=f"call-{number}")).ok
        await app.call_tool("say", {"text": "last"})
    gap = yard.audit()[2]
    assert (gap["event"], gap["calls"], gap["lines"]) == ("gap", 3, 6)
    assert gap["call_ids"] == ["call-0", "call-1", "call-2"]
    code, said = audit(yard, "verify")
    assert (code, f"{file}:3: 6 lines of 3 calls could not be written: File too large" in said) == (1, True)
    code, shown = audit(yard, "show")
    assert " gap " in shown
    assert "3 calls: File too large" in shown


KILLED = """
import asyncio, os, signal, sys
from toolyard import AgentApplication, tool

async def end(text: str) -> str:
    "Never answers."
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with AgentApplication({}, sys.argv[1], tools=[tool(end)]) as app:
        await app.call_tool("end", {"text": "x"}, call_id="the-last-call")

asyncio.run(main())
"""


async def test_E10_the_call_that_an_application_was_killed_in_is_a_line_that_verify_names(yard):
    config = yard.config()
    sessions = yard.folder / "sessions"
    ran = subprocess.run([sys.executable, "-c", KILLED, sessions], timeout=PATIENCE)
    assert ran.returncode == -signal.SIGKILL
    async with yard.open(config, tools=[tool(say)]) as app:
        await app.call_tool("say", {"text": "after"})
    events = [line["event"] for line in yard.audit()]
    assert events == ["start", "gap", "start", "end"]
    gap = yard.audit()[1]
    assert (gap["calls"], gap["call_ids"]) == (1, ["the-last-call"])
    code, said = audit(yard, "verify")
    assert (code, "1 call has no end: an application ended before it recorded the end of its calls" in said) == (
        0,
        True,
    )
    assert json.loads(audit(yard, "verify", "--json")[1])["gaps"][0]["calls"] == 1


async def test_E10_with_the_policy_to_stop_nothing_runs_unrecorded_and_the_refusals_are_counted(yard):
    config = yard.config(audit={"on_failure": "stop"})
    async with yard.open(config, tools=[tool(say)]) as app:
        await app.call_tool("say", {"text": "first"})
        (file,) = (yard.folder / "sessions" / "audit").iterdir()
        with room_for(file.stat().st_size):
            refused = await app.call_tool("say", {"text": "unseen"})
        assert (refused.failure, "cannot be written" in refused.text) == ("denied", True)
    assert [(line["event"], line.get("calls")) for line in yard.audit()][2:] == [("gap", 1)]
