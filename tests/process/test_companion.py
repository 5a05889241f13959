"""A child that outlives a call: its lines, its log, its end, and nothing of it left."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from toolyard.errors import CannotStart
from toolyard.process import companion as companion_module
from toolyard.process.child import Children
from toolyard.process.companion import Companion, CompanionEnd, CompanionRequest

pytestmark = pytest.mark.anyio

ECHO = 'while read -r line; do echo "got $line"; done'
PRIVATE_ECHO = 'while read -r line <&3; do echo noise; echo more >&2; echo "got $line" >&4; done'


class Heard:
    """What a companion said, and how it ended."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.log = b""
        self.ends: list[CompanionEnd] = []
        self._changed = asyncio.Event()

    def line(self, line: bytes) -> None:
        self.lines.append(line)
        self._changed.set()

    def logged(self, data: bytes) -> None:
        self.log += data
        self._changed.set()

    def ended(self, end: CompanionEnd) -> None:
        self.ends.append(end)
        self._changed.set()

    async def until(self, desk, claim) -> None:
        async with asyncio.timeout(desk.patience):
            while not claim():
                self._changed.clear()
                await self._changed.wait()


def start(desk, script: str, *, private: bool = False, **more) -> tuple[Companion, Heard]:
    heard = Heard()
    argv = [desk.bash, "-c", script, "companion", desk.mark]
    request = CompanionRequest(**{"argv": argv, "cwd": desk.cwd, "env": desk.env, "private": private, **more})
    keeper = desk.children.keeper
    return Companion(keeper, request, on_line=heard.line, on_log=heard.logged, on_end=heard.ended), heard


@pytest.mark.parametrize("private", [False, True])
async def test_lines_go_in_and_come_out_one_by_one(desk, private):
    companion, heard = start(desk, PRIVATE_ECHO if private else ECHO, private=private)
    for word in (b"one", "zwölf".encode(), b"", b"three"):
        companion.send(word)
    await heard.until(desk, lambda: len(heard.lines) == 4)
    assert heard.lines == [b"got one", "got zwölf".encode(), b"got ", b"got three"]
    await companion.aclose()
    assert [str(end) for end in heard.ends] == ["signal 15"]


async def test_what_a_private_one_and_its_children_print_is_only_log(desk):
    companion, heard = start(desk, f"echo out; bash -c 'echo child; echo err >&2'; {PRIVATE_ECHO}", private=True)
    companion.send(b"x")
    await heard.until(desk, lambda: heard.lines and b"more" in heard.log)
    assert heard.lines == [b"got x"]
    assert sorted(heard.log.split()) == [b"child", b"err", b"more", b"noise", b"out"]
    await companion.aclose()


async def test_standard_input_of_a_private_one_is_at_its_end(desk):
    companion, heard = start(desk, "wc -c >&4; read -r _ <&3", private=True)
    await heard.until(desk, lambda: heard.lines)
    assert heard.lines[0].strip() == b"0"
    await companion.aclose()


async def test_a_long_line_and_much_input_pass_whole(desk):
    companion, heard = start(desk, "exec cat")
    line = os.urandom(3_000_000).replace(b"\n", b"x")
    companion.send(line)
    companion.send(b"after")
    await heard.until(desk, lambda: len(heard.lines) == 2)
    assert heard.lines == [line, b"after"]
    await companion.aclose()


async def test_a_line_without_end_is_not_waited_for(desk, monkeypatch):
    monkeypatch.setattr(companion_module, "LONGEST_LINE", 1 << 20)
    _, heard = start(desk, "exec tr '\\0' x </dev/zero")
    await heard.until(desk, lambda: heard.ends)
    assert (heard.lines, heard.ends[0].signal) == ([], 15)


@pytest.mark.parametrize(
    ("script", "words"),
    [("echo last; echo words >&2; exit 3", "exit code 3"), ("echo last; echo words >&2; kill -9 $$", "signal 9")],
)
async def test_an_end_is_told_once_after_the_last_words(desk, script, words):
    companion, heard = start(desk, script)
    await heard.until(desk, lambda: heard.ends)
    assert (heard.lines, heard.log, [str(end) for end in heard.ends]) == ([b"last"], b"words\n", [words])
    companion.send(b"too late")
    await companion.aclose()
    assert companion.end is heard.ends[0]
    assert len(heard.ends) == 1


async def test_what_it_started_ends_with_it_however_it_ends(desk):
    companion, heard = start(desk, 'sleep "$1" & setsid sleep "$1" & echo ready; wait')
    await heard.until(desk, lambda: heard.lines)
    await desk.until(lambda: len(desk.alive()) == 3)
    await companion.aclose()
    assert desk.alive() == []
    _, heard = start(desk, 'setsid sleep "$1" & exit 0')
    await heard.until(desk, lambda: heard.ends)
    assert desk.alive() == []


async def test_one_that_ignores_the_signal_is_killed(desk):
    companion, heard = start(desk, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    await heard.until(desk, lambda: heard.lines)
    await companion.aclose(grace=0.1)
    assert heard.ends[0].signal == signal.SIGKILL


async def test_one_that_closes_its_side_is_of_no_use_and_ended(desk):
    _, heard = start(desk, 'exec >&-; sleep "$1"')
    await heard.until(desk, lambda: heard.ends)
    assert desk.alive() == []


async def test_closing_is_finished_though_it_is_cancelled(desk):
    companion, heard = start(desk, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    await heard.until(desk, lambda: heard.lines)
    closing = asyncio.ensure_future(companion.aclose(grace=0.2))
    for _ in range(3):
        await asyncio.sleep(0)
        closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert len(heard.ends) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"argv": ["/no/such"]}, "program: No such file"), ({"cwd": "/no/such"}, "working directory: No such")],
)
async def test_one_that_cannot_start_is_an_end_with_its_reason(desk, wrong, words):
    _, heard = start(desk, "", **wrong)
    await heard.until(desk, lambda: heard.ends)
    assert str(heard.ends[0]).startswith(words)
    assert heard.ends[0].exit_code is None


async def test_words_that_are_no_text_start_nothing_and_leave_nothing_open(desk):
    companion, heard = start(desk, ECHO)
    await companion.aclose()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CannotStart, match="not text"):
        start(desk, "", argv=[desk.bash, "\ud800"])
    assert len(os.listdir("/proc/self/fd")) == before
    assert heard.ends


async def test_the_end_of_the_owner_is_told_too(desk):
    children = Children()
    heard = Heard()
    request = CompanionRequest(argv=[desk.bash, "-c", ECHO, "x", desk.mark], cwd=desk.cwd, env=desk.env)
    Companion(children.keeper, request, on_line=heard.line, on_log=heard.logged, on_end=heard.ended)
    await children.aclose()
    await heard.until(desk, lambda: heard.ends)
    assert "closed" in heard.ends[0].trouble
    assert desk.alive() == []


async def test_a_keeper_that_dies_takes_its_companions_with_it(desk):
    _, heard = start(desk, 'echo ready; sleep "$1"')
    await heard.until(desk, lambda: heard.lines)
    os.kill(desk.children.keeper_pid, signal.SIGKILL)
    await heard.until(desk, lambda: heard.ends)
    assert "keeper ended unexpectedly" in heard.ends[0].trouble
    await desk.until(lambda: desk.alive() == [])


async def test_whoever_waits_for_its_end_does_not_wait_for_ever_when_the_loop_ends_first(desk):
    companion, heard = start(desk, ECHO)
    companion.send(b"one")
    await heard.until(desk, lambda: heard.lines)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        if "_watch" in repr(task.get_coro()):
            task.cancel()  # as `asyncio.run` does with all tasks at its end
    async with asyncio.timeout(desk.patience):
        await companion.aclose()
    assert [end.trouble for end in heard.ends] == ["the event loop was ended"]
