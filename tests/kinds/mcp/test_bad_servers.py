"""Servers that die, hang, flood, print what is no message, or list what cannot be used: each costs itself alone."""

from __future__ import annotations

import asyncio
import os

import pytest

from mcp_servers import ECHO_SERVER, logging_server, thin_server
from support import PATIENCE, command_lines, is_alive
from toolyard.kinds.mcp import source
from toolyard.kinds.mcp.health import FREE_TRIES, LONGEST_PAUSE, ServerHealth
from yard import Yard

pytestmark = pytest.mark.anyio


def names(app) -> list[str]:
    return [spec.name for spec in app.tool_specs()]


def problems(app, code: str) -> list[str]:
    return [problem.message for problem in app.problems() if problem.code == code]


async def test_a_bad_tool_costs_that_tool_only(yard: Yard):
    code = """
bad = [{"name": "text", "inputSchema": {"type": "string"}}, {"inputSchema": {}}, {"name": "none"}, "no tool"]
forgetful = {"name": "forgetful", "inputSchema": {"properties": {"value": {"type": "string"}}}}
listed = {"tools": [ECHO, *bad, forgetful]}
serve([(ECHO, echo), (forgetful, echo)], {"tools/list": lambda _: listed})
"""
    async with yard.app(thin_server(yard, code)) as app:
        assert names(app) == ["echo", "forgetful"]
        told = problems(app, "mcp_tool")
        assert len(told) == 4
        assert any("'text': type: arguments are always an object" in one for one in told)
        assert any("'none': inputSchema: Field required" in one for one in told)
        assert (await app.call_tool("forgetful", {"value": "x"})).text == "x"


async def test_a_server_that_cannot_start_is_a_problem_with_what_it_printed_and_others_work(yard: Yard):
    broken = thin_server(yard, "import sys; sys.exit('the key is missing')", file="broken.py")
    async with yard.app(broken, thin_server(yard, ECHO_SERVER)) as app:
        assert names(app) == ["echo"]
        (told,) = problems(app, "mcp_server")
        assert "the MCP server 'broken' cannot be used" in told
        assert "the key is missing" in told


async def test_a_program_that_is_not_there_is_a_problem(yard: Yard):
    async with yard.app({"mcp": {"command": ["no-such-program-anywhere"]}}) as app:
        (told,) = problems(app, "mcp_server")
        assert "there is no no-such-program-anywhere on PATH" in told


async def test_a_server_that_hangs_on_discovery_is_cut_at_its_limit_and_leaves_no_process(yard: Yard):
    hangs = thin_server(yard, "import time\ntime.sleep(3600)", file="hangs-for-ever.py")
    async with yard.app(hangs, policy={"mcp_start_timeout_seconds": 1}) as app:
        (told,) = problems(app, "mcp_server")
        assert "within 1 seconds" in told
        assert command_lines(str(yard.folder / "hangs-for-ever.py")) == []


async def test_a_server_that_is_not_there_any_more_is_a_problem_for_its_tools_alone(yard: Yard):
    async with yard.app({"mcp": {"url": "http://127.0.0.1:9/mcp"}}, thin_server(yard, ECHO_SERVER)) as app:
        assert names(app) == ["echo"]
        assert len(problems(app, "mcp_server")) == 1


async def test_lines_that_are_no_messages_are_passed_over(yard: Yard):
    code = "print('Welcome!'); print('{\"half\": '); print('[]'); print('\\x00\\xff')\n" + ECHO_SERVER
    async with yard.app(thin_server(yard, code)) as app:
        assert (await app.call_tool("echo", {"value": "x"})).text == "x"


async def test_a_server_may_flood_its_log_and_its_errors(yard: Yard):
    code = """
def flood(arguments, call):
    for number in range(50_000):
        send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 50}})
    sys.stderr.write("y" * 5_000_000)
    return text("done")
serve([({"name": "flood", "inputSchema": {"type": "object"}}, flood)])
"""
    async with yard.app(thin_server(yard, code)) as app:
        result = await app.call_tool("flood", {})
        assert result.text == "done"


async def test_a_server_that_is_killed_during_a_call_is_started_again_by_the_next(yard: Yard):
    code = """
import os, signal
def crash(arguments, call):
    sys.stderr.write("out of luck\\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
serve([(ECHO, echo), ({"name": "crash", "inputSchema": {"type": "object"}}, crash)])
"""
    async with yard.app(thin_server(yard, code)) as app:
        lost = await app.call_tool("crash", {})
        assert (lost.failure, lost.exit_code) == ("exit_code", 137)
        assert "out of luck" in lost.text
        assert (await app.call_tool("echo", {"value": "again"})).text == "again"
        (source,) = await app.servers()
        status = await source.status(start=False)
        assert (status.state, status.restarts) == ("running", 2)
        assert ("signal 9" in status.last_error, status.printed) == (True, "out of luck")


async def test_all_calls_of_a_server_that_dies_are_told(yard: Yard):
    code = """
import os, signal, threading
here = threading.Barrier(4)
def die(arguments, call):
    here.wait(60)
    os.kill(os.getpid(), signal.SIGKILL)
serve([({"name": "die", "inputSchema": {"type": "object"}}, die)])
"""
    async with yard.app(thin_server(yard, code)) as app:
        results = await asyncio.gather(*(app.call_tool("die", {}) for _ in range(4)))
        assert {(result.failure, result.exit_code) for result in results} == {("exit_code", 137)}
        (source,) = await app.servers()
        assert "signal 9" in (await source.status(start=False)).last_error


async def test_nothing_of_a_server_outlives_the_application(yard: Yard):
    code = "note(str(os.getpid()))\n" + ECHO_SERVER
    async with yard.app(logging_server(yard, code)) as app:
        await app.call_tool("echo", {"value": "x"})
        started = [int(line) for line in yard.log()]
        assert [is_alive(pid) for pid in started] == [False, True]
    assert not any(is_alive(pid) for pid in started)


def test_a_server_that_keeps_failing_waits_longer_and_longer(monkeypatch: pytest.MonkeyPatch):
    now = 1000.0
    monkeypatch.setattr("toolyard.kinds.mcp.health.time.monotonic", lambda: now)
    health, pauses = ServerHealth(), []
    for _ in range(FREE_TRIES + 8):
        health.started()
        health.failed("it ended", b"why")
        pauses.append(health.pause)
        now += health.pause
    assert pauses[: FREE_TRIES - 1] == [0.0] * (FREE_TRIES - 1)
    assert pauses[FREE_TRIES - 1 : FREE_TRIES + 2] == [1.0, 2.0, 4.0]
    assert pauses[-1] == LONGEST_PAUSE
    health.started()
    now += 3600
    health.failed("it ended", b"")
    assert health.pause == 0, "it had lived long"


async def test_a_server_that_dies_at_every_start_is_not_started_at_every_call(yard: Yard, monkeypatch):
    monkeypatch.setattr("toolyard.kinds.mcp.health.LONGEST_PAUSE", 0.1)
    code = "note('start')\nif len(open('@/log').readlines()) > 1: sys.exit('no more')\n" + ECHO_SERVER
    async with yard.app(logging_server(yard, code)) as app:
        for _ in range(FREE_TRIES + 1):
            result = await app.call_tool("echo", {"value": "x"})
            assert "no more" in result.text
        (source,) = await app.servers()
        assert (await source.status(start=False)).state == "failed"
    assert len(yard.log()) <= FREE_TRIES + 2


async def test_a_wait_for_its_answer_ends_with_the_call(yard: Yard):
    """A cancelled call ends what it started, and another call of the same server is let finish first."""
    os.mkfifo(yard.folder / "go")
    code = """
def wait(arguments, call):
    note("waiting")
    return text(open("@/go").read())
def hang(arguments, call):
    note("hanging")
    import time; time.sleep(3600)
serve([({"name": run.__name__, "inputSchema": {"type": "object"}}, run) for run in (wait, hang)])
"""
    async with yard.app(logging_server(yard, code)) as app:
        waiting = asyncio.create_task(app.call_tool("wait", {}))
        hanging = asyncio.create_task(app.call_tool("hang", {}))
        async with asyncio.timeout(PATIENCE):
            while len(yard.log()) < 2:
                await asyncio.sleep(0.05)
            hanging.cancel()
            await asyncio.wait([hanging])
            await asyncio.to_thread((yard.folder / "go").write_text, "went on")
            assert (await waiting).text == "went on"
        assert command_lines(str(yard.folder / "server.py")) == []


async def test_a_server_that_does_not_say_what_it_offers_holds_up_nobody(yard: Yard, monkeypatch):
    hangs = thin_server(yard, "import time\ntime.sleep(3600)", file="hangs.py", name="hangs")
    sound = thin_server(yard, ECHO_SERVER, file="sound.py", name="sound")
    monkeypatch.setattr(source, "FIRST_ANSWER", 0.1)
    async with yard.app(hangs) as app:
        (problem,) = app.problems()
        assert "'hangs' has not said yet what it offers" in problem.message
        (server,) = await app.servers()
        assert (await server.status(start=False)).state == "asked"
    monkeypatch.setattr(source, "FIRST_ANSWER", 3600)  # from now on it is known, and not waited for
    async with asyncio.timeout(PATIENCE), yard.app(sound, hangs) as app:
        assert [spec.name for spec in app.tool_specs()] == ["echo"]
        await app.refresh()
        assert [problem.severity for problem in app.problems()] == ["warning"]
    assert command_lines(str(yard.folder / "hangs.py")) == []


async def test_the_status_of_a_server_that_answered_while_others_were_asked_has_its_tools(yard: Yard, monkeypatch):
    late = "import os, time\nwhile not os.path.exists('@/go'):\n    time.sleep(0.01)\n" + ECHO_SERVER
    monkeypatch.setattr(source, "FIRST_ANSWER", 0.1)
    async with asyncio.timeout(PATIENCE), yard.app(logging_server(yard, late)) as app:
        (server,) = await app.servers()
        yard.file("go", "")
        while (status := await server.status(start=False)).state == "asked":
            await asyncio.sleep(0.01)
        assert (status.state, status.tools) == ("ready", 1)
        assert status.speaks


async def test_a_server_that_answers_late_is_taken_in_when_it_does(yard: Yard, monkeypatch):
    late = "import os, time\nwhile not os.path.exists('@/go'):\n    time.sleep(0.01)\n" + ECHO_SERVER
    monkeypatch.setattr(source, "FIRST_ANSWER", 0.1)
    async with asyncio.timeout(PATIENCE), yard.app(logging_server(yard, late)) as app:
        assert app.tool_specs() == []
        changes = app.watch(seconds=PATIENCE)
        yard.file("go", "")
        await anext(changes)
        assert [spec.name for spec in app.tool_specs()] == ["echo"]
        assert app.problems() == []
