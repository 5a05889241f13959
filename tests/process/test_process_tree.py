"""The whole tree of a call ends with it: by itself, at its deadline, when it is cancelled; and no other's does."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from support import until
from toolyard.process.waiting import printed_before

pytestmark = pytest.mark.anyio

GO = "while [ ! -e go ]; do sleep 0.01; done"
TREES = {
    "one process": "echo ready; sleep $1",
    "a shell that ignores SIGTERM": "trap '' TERM; echo ready; while :; do sleep $1; done",
    "children that ignore SIGTERM": "(trap '' TERM; sleep $1) & (trap '' TERM; sleep $1) & echo ready; wait",
    "a pipeline": "sleep $1 | cat | tr a b | { echo ready >&3; sleep $1; } 3>&1 >/dev/null",
    "another session that holds the pipes": "setsid sleep $1 & echo ready; wait",
    "another session that ignores SIGTERM": "(trap '' TERM; setsid bash -c 'sleep $0; :' $1) & echo ready; wait",
    "a daemon without variables or descriptors": (
        "( setsid env -i /bin/bash -c 'sleep $0; :' $1 <&- >&- 2>&- & ); sleep 0.1; echo ready; sleep $1"
    ),
    "a daemon that forked twice": "( ( setsid sleep $1 & ) & ); echo ready; sleep $1",
    "nohup": "nohup sleep $1 >/dev/null 2>&1 & disown; echo ready; sleep $1",
    "a stopped child": "sleep $1 & kill -STOP $!; echo ready; wait",
    "a stopped shell": "setsid sleep $1 & echo ready; kill -STOP $$",
    "a stopped daemon": "( setsid bash -c 'kill -STOP $$; sleep $1' x $1 & ); echo ready; sleep $1",
    "fifty at once": "for i in {1..50}; do sleep $1 & done; echo ready; wait",
    "a deep tree": "f() { if [ $2 = 0 ]; then echo ready; sleep $1; else ( f $1 $(($2 - 1)); : ); fi; }; f $1 20",
    "jobs in groups of their own": "set -m; sleep $1 & sleep $1 | sleep $1 & echo ready; wait",
    "a coprocess": "coproc sleep $1; echo ready; sleep $1",
}
LEFT_BEHIND = {
    "in the background": "sleep $1 & echo done",
    "holding the pipes from another session": "setsid sleep $1 & echo done",
    "holding the pipes and ignoring SIGTERM": "(trap '' TERM; exec setsid sleep $1) & echo done",
    "a daemon without variables or descriptors": "( setsid env -i /bin/sleep $1 <&- >&- 2>&- & ); echo done",
    "writing all the time": "echo done; ( setsid yes $1 & ); ( setsid yes $1 >&2 & ); sleep 0.1",
    "stopped": "setsid sleep $1 & kill -STOP $!; echo done",
    "many": "for i in {1..40}; do setsid sleep $1 & done; echo done",
}
THREADED = """
import subprocess, sys, threading
threads = [threading.Thread(target=lambda: subprocess.Popen(["setsid", "sleep", sys.argv[1]]).wait()) for _ in range(8)]
for thread in threads: thread.start()
print("ready", flush=True)
for thread in threads: thread.join()
"""
FORK_CHAIN = "$SIG{TERM} = 'IGNORE'; for (1 .. 30000) { exit if fork }"
"""Processes that live only long enough to fork the next; in Perl, whose forks are quick, and ending by itself."""


def tables(scripts: dict[str, str]):
    return pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in scripts.items()])


async def test_at_the_deadline_the_whole_tree_ends(desk):
    calls = [desk.run(script, timeout=2.0, grace=0.2) for script in TREES.values()]
    outcomes = dict(zip(TREES, await asyncio.gather(*calls), strict=True))
    assert desk.alive() == []
    assert {name for name, outcome in outcomes.items() if not outcome.timed_out or outcome.exit_code < 128} == set()
    assert {name: outcome.stdout.text for name, outcome in outcomes.items()} == dict.fromkeys(TREES, "ready\n")


@tables(TREES)
async def test_a_cancelled_call_leaves_nothing(desk, script):
    running = desk.start(script, grace=0.2)
    await running.until_heard("ready\n")
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.outcome()
    assert desk.alive() == []


@tables(LEFT_BEHIND)
async def test_what_a_child_leaves_behind_ends_with_it_and_does_not_hold_up_its_answer(desk, script):
    outcome = await desk.run(script)
    assert desk.alive() == []
    assert (outcome.exit_code, outcome.timed_out) == (0, False)
    assert "done\n" in outcome.stdout.text


async def test_children_of_threads_are_part_of_the_tree(desk):
    outcome = await desk.run_request(desk.python_request(THREADED, timeout=1.0, grace=0.2))
    assert desk.alive() == []
    assert (outcome.timed_out, outcome.stdout.text) == (True, "ready\n")


@pytest.mark.parametrize("root", ["echo ready", "echo ready; sleep $1"])
async def test_a_chain_of_forks_is_caught_up_with(desk, root):
    for _ in range(2):
        chain = f'setsid perl -e "$2" $1 >/dev/null 2>&1 & sleep 0.05; {root}'
        outcome = await desk.run(chain, FORK_CHAIN, timeout=2, grace=0.1)
        assert [desk.alive() for _ in range(5)] == [[]] * 5
        assert outcome.stdout.text == "ready\n"


async def test_the_shell_may_clean_up_when_it_is_asked_to_end(desk):
    outcome = await desk.run("trap 'echo bye; exit 3' TERM; echo ready; sleep $1", timeout=0.8, grace=10)
    assert (outcome.timed_out, outcome.exit_code, outcome.signal) == (True, 3, None)
    assert outcome.stdout.text == "ready\nbye\n"


async def test_a_deadline_of_nothing_ends_the_child_at_once(desk):
    outcome = await desk.run("sleep $1", timeout=0, grace=0)
    assert (outcome.timed_out, desk.alive()) == (True, [])


async def test_a_hundred_calls_at_once_each_end_their_own_escapee(desk):
    script = "setsid sleep $1 & echo $2; exit $(($2 % 7))"
    async with asyncio.timeout(desk.patience):
        outcomes = await asyncio.gather(*(desk.run(script, str(number)) for number in range(100)))
    assert desk.alive() == []
    assert [(outcome.stdout.text, outcome.exit_code) for outcome in outcomes] == [
        (f"{number}\n", number % 7) for number in range(100)
    ]


async def test_the_end_of_a_call_leaves_the_processes_of_others_alone(desk):
    daemons = "( setsid sleep $1.0 & ); ( setsid env -i /bin/sleep $1.0 <&- >&- 2>&- & ); (sleep $1.0 &)"
    long = desk.start(f"{daemons}; echo ready; {GO}".replace("$1.0", "$1"))
    await long.until_heard("ready\n")
    await desk.until(lambda: sum("sleep" in found.split()[1] for found in desk.alive()) == 3)
    before = [found for found in desk.alive() if "sleep" in found.split()[1]]
    others = ["setsid sleep 97.5 & exit 0", "sleep 97.5 & exit 1", "kill -9 $$", "sleep 97.5"]
    await asyncio.gather(*(desk.run(script, timeout=0.5, grace=0.1) for script in others * 5))
    assert [found for found in desk.alive() if "sleep" in found.split()[1]] == before
    (desk.cwd / "go").touch()
    assert (await long.outcome()).exit_code == 0
    assert desk.alive() == []


@pytest.mark.parametrize("seed", range(3))
async def test_a_cancellation_at_any_moment_leaves_nothing(desk, seed):
    moment = random.Random(seed)
    for _ in range(15):
        running = desk.start("setsid sleep $1 & (trap '' TERM; sleep $1) & sleep $1", grace=0.05)
        await asyncio.sleep(moment.choice([0, moment.random() * 0.01, moment.random() * 0.05]))
        running.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running.outcome()
        assert desk.alive() == []


async def test_a_call_cancelled_again_and_again_still_ends_its_tree_first(desk):
    running = desk.start("trap '' TERM; echo ready; while :; do sleep $1; done", grace=0.4)
    await running.until_heard("ready\n")
    for _ in range(20):
        running.task.cancel()
        await asyncio.sleep(0.01)
    assert not running.task.done()
    with pytest.raises(asyncio.CancelledError):
        await running.outcome()
    assert desk.alive() == []


async def test_a_call_cancelled_after_its_deadline_still_ends_its_tree_first(desk):
    running = desk.start("trap 'echo asked' TERM; echo ready; while :; do sleep $1; done", timeout=0.8, grace=1.0)
    await running.until_heard("asked\n")
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.outcome()
    assert desk.alive() == []


async def test_a_timeout_around_the_call_ends_the_tree_too(desk):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await desk.children.run(desk.request("setsid sleep $1 & sleep $1", grace=0.1))
    assert desk.alive() == []


async def test_a_cancelled_call_keeps_what_was_printed(desk):
    heard = []
    request = desk.request("echo out; echo err >&2; sleep $1", grace=0.1, on_output=lambda _, text: heard.append(text))
    running = asyncio.ensure_future(desk.children.run(request))
    await until(lambda: sorted(heard) == ["err\n", "out\n"])
    running.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await running
    so_far = printed_before(cancelled.value)
    assert (so_far.text, so_far.total_bytes) == ("out\nerr\n", 8)


async def test_a_call_that_ended_before_its_deadline_did_not_time_out(desk):
    """What it left behind may need longer than the deadline; that is not the call's fault."""
    outcome = await desk.run("(trap '' TERM; sleep $1) & sleep 0.1; exit 0", timeout=0.5)
    assert (outcome.exit_code, outcome.timed_out) == (0, False)
    assert desk.alive() == []


HEADLESS = """
import ctypes, os, sys, threading, time
if os.fork():
    time.sleep(97)
os.setsid()
threading.Thread(target=time.sleep, args=(97,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""


async def test_a_process_whose_first_thread_has_ended_is_not_taken_for_a_dead_one(desk):
    outcome = await desk.run_request(desk.python_request(HEADLESS, timeout=1.0, grace=0.1))
    assert (outcome.timed_out, outcome.left) == (True, [])
    assert not Path("/proc", outcome.stdout.text.strip()).exists()
