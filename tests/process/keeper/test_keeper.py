"""The keeper: whoever dies, and however, no process is left and the next call works."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from support import AS_FROM_A_SHELL, memory
from toolyard.errors import CannotStart, KeeperLost
from toolyard.process import child
from toolyard.process.child import Children
from toolyard.process.keeper import keeper_process
from toolyard.process.keeper.guard import GUARD_SCRIPT

WORLD = {
    "plain": "echo ready; sleep $1",
    "ignoring": "trap '' TERM; echo ready; while :; do sleep $1; done",
    "session": "setsid sleep $1 & echo ready; wait",
    "daemon": "( setsid env -i /bin/bash -c 'trap \"\" TERM; sleep $0; :' $1 <&- >&- 2>&- & ); echo ready; sleep $1",
    "stopped": "setsid sleep $1 & kill -STOP $!; echo ready; wait",
}
APPLICATION = """
import asyncio, json, os, signal, sys, time
from pathlib import Path
from toolyard.process.child import Children, ChildRequest

async def main(bash, mark, scripts):
    children = Children()
    say = lambda stream, text: print(text.replace("ready", f"ready {children.keeper_pid}"), end="", flush=True)
    async with asyncio.TaskGroup() as group:
        for script in scripts:
            env = {b"PATH": os.environb[b"PATH"]}
            request = ChildRequest(argv=[bash, "-c", script, "tool", mark], cwd=Path("/"), env=env, on_output=say)
            group.create_task(children.run(request))
        told = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(0, lambda: told.done() or told.set_result(os.read(0, 100)))
        match await told:
            case b"raise\\n": raise RuntimeError("on purpose")
            case b"exit\\n": os._exit(3)
            case b"abort\\n": os.abort()
            case b"fork\\n":
                if (forked := os.fork()) == 0:
                    time.sleep(60)
                    os._exit(0)
                print("forked", forked, flush=True)
        await asyncio.sleep(60)

asyncio.run(main(**json.load(open(os.environ["SETTING"]))))
"""


class Application:
    """A program of its own that runs children until something happens to it."""

    def __init__(self, folder: Path, desk_bash: str, mark: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", AS_FROM_A_SHELL, sys.executable, "-c", APPLICATION],
            env=os.environ | {"SETTING": write_setting(folder, desk_bash, mark)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        self.keeper = {int(self.line().split()[1]) for _ in WORLD}.pop()

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def tell(self, command: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(command + "\n")

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


def write_setting(folder: Path, bash: str, mark: str) -> str:
    setting = folder / "setting.json"
    setting.write_text(json.dumps({"bash": bash, "mark": mark, "scripts": list(WORLD.values())}))
    return str(setting)


@pytest.fixture
def application(tmp_path, mark, bash):
    application = Application(tmp_path, bash, mark)
    yield application
    application.close()


def runs(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("end", [
    pytest.param(lambda application: application.process.kill(),                        id="SIGKILL"),
    pytest.param(lambda application: application.process.terminate(),                   id="SIGTERM"),
    pytest.param(lambda application: application.process.send_signal(signal.SIGINT),    id="SIGINT"),
    pytest.param(lambda application: application.process.send_signal(signal.SIGHUP),    id="SIGHUP"),
    pytest.param(lambda application: application.tell("raise"),                         id="an exception"),
    pytest.param(lambda application: application.tell("exit"),                          id="an exit without goodbye"),
    pytest.param(lambda application: application.tell("abort"),                         id="a crash"),
])  # fmt: skip
def test_however_the_application_ends_nothing_is_left(application, mark, end, find_marked, wait_until):
    assert len(find_marked(mark)) > len(WORLD)
    end(application)
    application.process.wait(30)
    wait_until(lambda: not find_marked(mark) and not runs(application.keeper))


def test_a_fork_of_the_application_keeps_nothing_alive(application, mark, find_marked, wait_until):
    application.tell("fork")
    forked = int(application.line().split()[1])
    try:
        application.process.kill()
        application.process.wait(30)
        wait_until(lambda: not find_marked(mark) and not runs(application.keeper))
        assert runs(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


def test_an_application_that_ends_with_its_keeper_stopped_leaves_nothing_once_that_goes_on(
    application, mark, find_marked, wait_until
):
    os.kill(application.keeper, signal.SIGSTOP)
    application.process.kill()
    application.process.wait(30)
    os.kill(application.keeper, signal.SIGCONT)
    wait_until(lambda: not find_marked(mark) and not runs(application.keeper))


def run_application(source: str, *words: str, shell: str = 'exec "$@"') -> str:
    """What a small program prints; `shell` may set the scene for it."""
    done = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", sys.executable, "-c", source, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


ONE_CALL = """
import asyncio, os, resource, select, signal, sys
from pathlib import Path
from toolyard.process.child import Children, ChildRequest
def request(script):
    env = {b"PATH": os.environb[b"PATH"]}
    return ChildRequest(argv=["/bin/bash", "-c", script], cwd=Path("/"), env=env, timeout=20)
async def main(*scripts):
    children = Children()
    outcomes = await asyncio.gather(*(children.run(request(script)) for script in scripts))
    await children.aclose()
    return outcomes
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_an_application_without_standard_streams_can_run_children(closed, tmp_path):
    source = ONE_CALL + (
        "outcome, = asyncio.run(main('cat; echo out; echo err >&2; exit 3'))\n"
        "Path(sys.argv[1]).write_text(f'{outcome.exit_code} {outcome.stdout.text}{outcome.stderr.text}')"
    )
    answer = tmp_path / "answer"
    run_application(source, str(answer), shell=f'exec "$@" {closed}')
    assert answer.read_text() == "3 out\nerr\n"


def test_blocked_and_ignored_signals_of_the_application_reach_neither_keeper_nor_children():
    source = ONE_CALL + (
        "ignored = [signal.SIGQUIT, signal.SIGCHLD, signal.SIGUSR1, signal.SIGXCPU, signal.SIGTSTP]\n"
        "[signal.signal(number, signal.SIG_IGN) for number in ignored]\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "outcome, = asyncio.run(main('grep -E \"^Sig(Blk|Ign)\" /proc/self/status; exit 3'))\n"
        "print(outcome.exit_code, outcome.timed_out, outcome.stdout.text)"
    )
    answer = run_application(source).split()
    libc_own = 1 << 31 | 1 << 32  # posix_spawn of glibc ignores the two signals that its threads use
    assert answer[:2] == ["3", "False"]
    assert [int(mask, 16) & ~libc_own for mask in (answer[3], answer[5])] == [0, 0]


WITHOUT_MARKS = "resource.setrlimit(resource.RLIMIT_RTTIME, (10**9, 10**9))\n"
"""A machine that limits real-time processor time leaves no room to mark processes by it."""


def test_where_processes_cannot_be_marked_what_a_lone_call_leaves_still_ends_with_it(mark, find_marked):
    source = ONE_CALL + WITHOUT_MARKS + (
        "outcome, = asyncio.run(main(f'setsid sleep {sys.argv[1]} & exit 4'))\n"
        "print(outcome.exit_code)"
    )  # fmt: skip
    assert run_application(source, mark) == "4\n"
    assert find_marked(mark) == []


def test_where_processes_cannot_be_marked_a_flood_from_what_one_call_left_holds_up_nobody(mark, find_marked, tmp_path):
    source = ONE_CALL + WITHOUT_MARKS + (
        "async def flood(mark, go):\n"
        "    children = Children()\n"
        "    second = f'for i in {{1..1000}}; do [ -e {go} ] && exit 5; sleep 0.01; done; exit 9'\n"
        "    waiting = asyncio.ensure_future(children.run(request(second)))\n"
        "    first = await children.run(request(f'setsid yes {mark} & sleep 0.1; exit 4'))\n"
        "    Path(go).touch()\n"
        "    codes = first.exit_code, (await waiting).exit_code\n"
        "    await children.aclose()\n"
        "    return codes\n"
        "print(asyncio.run(flood(*sys.argv[1:])))"
    )  # fmt: skip
    assert run_application(source, mark, str(tmp_path / "go")) == "(4, 5)\n"
    assert find_marked(mark) == []


def test_an_application_that_wants_sigpipe_survives_the_loss_of_its_keeper():
    source = ONE_CALL + (
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "async def lose():\n"
        "    children = Children()\n"
        "    await children.run(request('true'))\n"
        "    end = os.pidfd_open(children.keeper_pid)\n"
        "    os.kill(children.keeper_pid, signal.SIGKILL)\n"
        "    select.select([end], [], [], 30)\n"
        "    try: await children.run(request('true'))\n"
        "    except Exception: pass\n"
        "    return await children.run(request('exit 6'))\n"
        "print(asyncio.run(lose()).exit_code)"
    )
    assert run_application(source) == "6\n"


@pytest.mark.anyio
async def test_a_killed_keeper_costs_the_running_calls_and_their_processes_but_not_the_next(desk):
    running = [desk.start(script) for script in WORLD.values()]
    for call in running:
        await call.until_heard("ready\n")
    first = desk.children.keeper_pid
    os.kill(first, signal.SIGKILL)
    for call in running:
        with pytest.raises(KeeperLost):
            await call.outcome()
    assert desk.alive() == []
    assert (await desk.run("exit 4")).exit_code == 4
    assert desk.children.keeper_pid != first


@pytest.mark.anyio
async def test_a_keeper_killed_while_idle_is_replaced_without_a_word(desk):
    for _ in range(3):
        assert (await desk.run("exit 4")).exit_code == 4
        keeper = desk.children.keeper_pid
        os.kill(keeper, signal.SIGKILL)
        await desk.until(lambda: not runs(keeper))  # noqa: B023 - awaited within the round


@pytest.mark.anyio
async def test_so_is_one_whose_guard_has_not_come_to_let_go_of_the_channel(desk, tmp_path, monkeypatch):
    """As on a machine that is busy with other things."""
    os.mkfifo(late := tmp_path / "late")
    waiting = GUARD_SCRIPT.replace('exec "$python"', f'read -r _ <{late}\nexec "$python"')
    monkeypatch.setattr(keeper_process, "GUARD_SCRIPT", waiting)
    assert (await desk.run("exit 4")).exit_code == 4
    os.kill(keeper := desk.children.keeper_pid, signal.SIGKILL)
    await desk.until(lambda: not runs(keeper))
    monkeypatch.setattr(keeper_process, "GUARD_SCRIPT", GUARD_SCRIPT)
    assert (await desk.run("exit 4")).exit_code == 4
    assert desk.children.keeper_pid != keeper


@pytest.mark.anyio
async def test_a_keeper_lost_in_the_midst_of_many_calls_is_replaced_once(desk):
    async def attempt() -> int | None:
        with contextlib.suppress(KeeperLost):
            return (await desk.run("exit 4")).exit_code
        return None

    for _ in range(5):
        await desk.run("true")
        calls = [asyncio.ensure_future(attempt()) for _ in range(10)]
        await asyncio.sleep(0)
        os.kill(desk.children.keeper_pid, signal.SIGKILL)
        calls += [asyncio.ensure_future(attempt()) for _ in range(10)]
        assert set(await asyncio.gather(*calls)) <= {4, None}
        assert (await desk.run("exit 4")).exit_code == 4


@pytest.mark.anyio
async def test_a_keeper_asked_to_end_ends_the_children_first(desk):
    running = [desk.start(script) for script in WORLD.values()]
    for call in running:
        await call.until_heard("ready\n")
    keeper = desk.children.keeper_pid
    os.kill(keeper, signal.SIGTERM)
    for call in running:
        with contextlib.suppress(KeeperLost):
            assert (await call.outcome()).exit_code >= 128
    await desk.until(lambda: not runs(keeper))
    assert desk.alive() == []


@pytest.mark.anyio
async def test_a_stopped_keeper_is_made_to_go_on_when_a_call_must_end(desk):
    running = desk.start("setsid sleep $1 & echo ready; sleep $1", timeout=0.8, grace=0.1)
    await running.until_heard("ready\n")
    keeper = desk.children.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    assert (await running.outcome()).timed_out
    assert desk.alive() == []
    assert desk.children.keeper_pid == keeper


@pytest.mark.anyio
async def test_a_keeper_that_hangs_is_ended_with_all_it_owns(desk, monkeypatch):
    monkeypatch.setattr(child, "ANSWER_PATIENCE", 0.3)
    monkeypatch.setattr(keeper_process.KeeperProcess, "wake", lambda self: None)
    running = desk.start("setsid sleep $1 & echo ready; sleep $1", timeout=0.8, grace=0.1)
    await running.until_heard("ready\n")
    os.kill(desk.children.keeper_pid, signal.SIGSTOP)
    with pytest.raises(KeeperLost):
        await running.outcome()
    assert desk.alive() == []
    assert (await desk.run("exit 4")).exit_code == 4


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_as_it_ends_costs_nobody_the_keeper(desk, monkeypatch):
    monkeypatch.setattr(child, "ANSWER_PATIENCE", 0.0)
    call = asyncio.ensure_future(desk.run("exit 0", grace=0.0))
    keeper = desk.children.keeper
    settle = keeper._settle

    def settle_and_cancel(id, outcome):
        settle(id, outcome)
        call.cancel()

    monkeypatch.setattr(keeper, "_settle", settle_and_cancel)
    with pytest.raises(asyncio.CancelledError):
        await call
    monkeypatch.undo()
    first = keeper.pid
    assert (await desk.run("exit 4")).exit_code == 4
    assert keeper.pid == first


@pytest.mark.anyio
async def test_closing_ends_the_running_calls_and_their_processes(desk):
    running = [desk.start(script) for script in WORLD.values()]
    for call in running:
        await call.until_heard("ready\n")
    keeper = desk.children.keeper_pid
    await desk.children.aclose()
    assert desk.alive() == []
    assert not runs(keeper)
    for call in running:
        with pytest.raises(KeeperLost):
            await call.outcome()
    await desk.children.aclose()


@pytest.mark.anyio
async def test_a_process_that_lost_its_mark_ends_with_the_application(desk):
    other = desk.start("echo ready; sleep $1")
    await other.until_heard("ready\n")
    await desk.run("( ulimit -R 5000; setsid sleep $1 & )")
    await desk.children.aclose()
    assert desk.alive() == []


@pytest.mark.anyio
async def test_a_child_in_a_pid_namespace_of_its_own_is_no_exception(desk):
    """Only root may make one; for others it is one more child."""
    script = "unshare --pid --fork bash -c 'setsid sleep $1 & sleep $1' x $1 || sleep $1"
    outcome = await desk.run(script, timeout=0.8, grace=0.1)
    assert outcome.timed_out
    assert desk.alive() == []


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["exit", "abort", None])
async def test_a_child_that_is_such_an_application_itself_leaves_nothing_either(desk, end):
    env = os.environb | {b"SETTING": os.fsencode(write_setting(desk.cwd, desk.bash, desk.mark))}
    told = f"until [ -e go ]; do sleep 0.01; done; echo {end or ''}; sleep $1"
    script = f'exec "$2" -c "$3" < <({told})'
    inner = desk.start(script, desk.python, APPLICATION, env=env, timeout=None if end else 3.0, grace=0.2)
    await desk.until(lambda: inner.heard().count("ready") == len(WORLD))
    (desk.cwd / "go").touch()
    outcome = await inner.outcome()
    assert desk.alive() == []
    assert (outcome.exit_code in (3, 134), outcome.timed_out) == (end is not None, end is None)


def test_children_belong_to_one_event_loop_and_a_second_is_refused_without_a_leak(desk_request):
    children = Children()

    async def once() -> int:
        return (await children.run(desk_request)).exit_code

    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(once()) == 0
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(KeeperLost):
        asyncio.run(once())
    assert set(os.listdir("/proc/self/fd")) <= before
    loop.run_until_complete(children.aclose())
    loop.close()


def test_children_can_be_closed_after_their_event_loop(desk_request):
    children = Children()
    asyncio.run(children.run(desk_request))
    keeper = children.keeper_pid
    asyncio.run(children.aclose())
    assert not runs(keeper)


@pytest.mark.anyio
async def test_running_out_of_descriptors_fails_some_calls_and_leaks_none(desk):
    await desk.run("true")
    before = os.listdir("/proc/self/fd")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) + 30, hard))
    try:
        calls = (desk.run("sleep 0.2") for _ in range(40))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert {(type(error), error.errno) for error in refused} == {(CannotStart, errno.EMFILE)}
    assert 0 < len(refused) < 40
    assert len(os.listdir("/proc/self/fd")) <= len(before), "pipes may be open ahead of the next call, or not"


@pytest.mark.anyio
async def test_three_hundred_calls_leave_no_descriptor_task_zombie_or_memory(desk):
    async def batch() -> None:
        await asyncio.gather(*(desk.run("setsid sleep $1 & echo $2", str(n), stdin=b"x") for n in range(10)))
        with pytest.raises(CannotStart):
            await desk.run_request(desk.program("/no/such/program"))
        cancelled = asyncio.ensure_future(desk.run("sleep $1", grace=0.1))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])

    def state() -> tuple[set[str], int, str, int]:
        keeper = Path(f"/proc/{desk.children.keeper_pid}")
        children = (keeper / "task" / keeper.name / "children").read_text()
        return set(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), children, len(os.listdir(keeper / "fd"))

    for _ in range(3):
        await batch()
    before, memory_before = state(), memory(desk.children.keeper_pid)
    tracemalloc.start()
    for _ in range(27):
        await batch()
    gc.collect()
    grown = sum(trace.size for trace in tracemalloc.take_snapshot().statistics("filename") if here(trace))
    tracemalloc.stop()
    assert state() == before
    assert desk.alive() == []
    assert grown < 100_000
    assert memory(desk.children.keeper_pid) < memory_before + 2_000_000


def here(trace: tracemalloc.Statistic) -> bool:
    return "toolyard/process" in trace.traceback[0].filename
