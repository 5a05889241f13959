"""The host of Node tools: noise, crashes, hangs, cancellation, many calls at once, and nothing left at the end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
from pathlib import Path

import pytest

from node_yard import IGNORANT, NodeYard, call
from support import PATIENCE, is_alive
from toolyard.kinds.node_module import hosts as node_hosts

pytestmark = pytest.mark.anyio

LIMIT = 5
"""Seconds: a time limit that even a slow machine meets for what is quick."""

LOG = "(await import('node:fs')).appendFileSync(`${context.cwd}/log`, `%s\\n`);"
"""Write a line to the yard's log."""
SLEEPER = (
    "const { spawn } = await import('node:child_process'); const child = spawn('sleep', ['600'], { stdio: 'ignore' });"
)
PAUSE = "await new Promise((go) => setTimeout(go, 10))"
CASES = {
    "pid": "return process.pid",
    "wait": f"{LOG % '${process.pid}'} await new Promise((go) => context.signal.addEventListener('abort', go)); "
    + f"{LOG % 'stopped'} throw context.signal.reason",
    "slow": f"{LOG % 'slow'} const {{ existsSync }} = await import('node:fs'); "
    f"while (!existsSync(`${{context.cwd}}/go`)) {PAUSE}; return `done in ${{process.pid}}`",
    "stubborn": f"{SLEEPER} {LOG % '${process.pid} ${child.pid}'} {IGNORANT}",
    "spin": f"{SLEEPER} {LOG % '${process.pid} ${child.pid}'} for (;;) {{}}",
    "die": f"{SLEEPER} {LOG % '${child.pid}'} console.error('my last words'); {PAUSE}; "
    "process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})",
}
SWITCH = "switch (args.value) { " + " ".join(f"case {name!r}: {{ {body} }}" for name, body in CASES.items()) + " }"


@pytest.fixture
def yard(tmp_path: Path) -> NodeYard:
    return NodeYard(tmp_path)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that minds its signal is waited for, however slow the machine."""
    monkeypatch.setattr(node_hosts, "SETTLE_PATIENCE", PATIENCE)


def switch(yard: NodeYard, **policy):
    return yard.probe(SWITCH, policy=policy, working_directory=str(yard.folder))


def start(app, value: str) -> asyncio.Task:
    return asyncio.ensure_future(app.call_tool("probe", {"value": value}))


NOISE = {
    "console.log": "console.log('noise')",
    "console.error": "console.error('noise')",
    "process.stdout.write": "process.stdout.write('noise without an end')",
    "an imitation": "for (let id = 0; id < 9; id++) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: FAKE }))",
    "a child that inherits it": "child.spawnSync('echo', ['noise'], { stdio: 'inherit' })",
    "a detached child": "child.spawn('echo', ['x'], { stdio: 'inherit', detached: true }).unref()",
    "the descriptor itself": "(await import('node:fs')).writeSync(1, 'noise\\n')",
    "bytes that are no text": "process.stdout.write(Buffer.from([0xff, 0, 10, 13]))",
    "a flood": "for (let i = 0; i < 3000; i++) console.log('x'.repeat(1000))",
    "a closed stream": "process.stdout.end('bye')",
    "reading standard input": "for await (const piece of process.stdin) throw new Error('there is something')",
    "a worker": "const { Worker } = await import('node:worker_threads'); "
    "await new Promise((go) => new Worker('console.log(1)', { eval: true }).on('exit', go))",
}


@pytest.mark.parametrize("kind", NOISE)
async def test_nothing_a_tool_does_to_its_streams_breaks_the_protocol(yard, kind):
    top = "import child from 'node:child_process'; const FAKE = { content: [{ type: 'text', text: 'fake' }] };"
    yard.module(f"{NOISE[kind]}; return 'the answer'", top=top)
    async with yard.app("node:probe.mjs") as app:
        assert await call(app) == "the answer"
        assert await call(app) == "the answer"


async def test_what_a_tool_prints_goes_to_the_log(yard, caplog):
    with caplog.at_level(logging.INFO, "toolyard.node"):
        async with yard.probe("console.log('to the log: %s', 'ünï'); return 'x'") as app:
            assert await call(app) == "x"
            await yard.until(lambda: "to the log: ünï" in caplog.messages)
        async with yard.probe("process.stdout.write('no end'); process.abort()") as app:
            await app.call_tool("probe", {})
            assert "no end" in caplog.text


async def test_fifty_calls_at_once_share_one_host_and_each_has_its_own_answer(yard):
    body = "context.write(args.value); await new Promise((go) => setTimeout(go, Math.random() * 20)); "
    async with yard.probe(body + "return JSON.stringify([args.value, process.pid])") as app:
        texts = await asyncio.gather(*(call(app, arguments={"value": f"{i} ü"}) for i in range(50)))
    answers = [json.loads(text) for text in texts]
    assert [value for value, _ in answers] == [f"{i} ü" for i in range(50)]
    assert len({pid for _, pid in answers}) == 1


async def test_a_host_keeps_its_state_between_calls_and_ends_with_the_application(yard):
    yard.module("count += 1; return `${count} ${process.pid}`", top="let count = 0;")
    async with yard.app("node:probe.mjs") as app:
        texts = [(await call(app)).split() for _ in range(3)]
    assert [count for count, _ in texts] == ["1", "2", "3"]
    (pid,) = {pid for _, pid in texts}
    assert not is_alive(int(pid))


async def test_a_crash_is_told_and_the_next_call_gets_a_new_host(yard):
    async with switch(yard) as app:
        first = await call(app, arguments={"value": "pid"})
        waiting = start(app, "wait")
        await yard.until_logged()
        died = await app.call_tool("probe", {"value": "die"})
        assert (died.failure, died.exit_code, died.signal) == ("exit_code", 137, 9)
        assert "it ended unexpectedly (signal 9)" in died.text
        assert "my last words" in died.text
        assert "The next call starts a new host" in died.text
        other = await waiting
        assert (other.failure, "it ended unexpectedly (signal 9)" in other.text) == ("exit_code", True)
        assert await call(app, arguments={"value": "pid"}) != first
        await yard.until_gone(yard.log()[1])


async def test_a_host_that_is_killed_from_outside_is_replaced(yard):
    async with switch(yard) as app:
        first = await call(app, arguments={"value": "pid"})
        waiting = start(app, "wait")
        await yard.until_logged()
        os.kill(int(first), signal.SIGKILL)
        assert (await waiting).exit_code == 137
        second = await call(app, arguments={"value": "pid"})
        os.kill(int(second), signal.SIGKILL)
        await yard.until_gone(second)
        # Whether this call meets the dead host or a new one, it has one answer, and the one after it works.
        assert (await app.call_tool("probe", {"value": "pid"})).exit_code in (0, 137)
        assert await call(app, arguments={"value": "pid"}) not in (first, second)


@pytest.mark.parametrize(
    ("ending", "code"),
    [("process.abort()", 134), ("process.reallyExit(5)", 5), ("process.kill(process.pid, 'SIGTERM')", 143)],
)
async def test_other_ways_to_die(yard, ending, code):
    async with yard.probe(f"if (args.value) {{ {ending}; await new Promise(() => {{}}) }} return 'alive'") as app:
        assert (await app.call_tool("probe", {"value": "now"})).exit_code == code
        assert await call(app) == "alive"


async def test_a_host_without_memory_is_told_from_one_without_time(yard):
    body = "const held = []; for (;;) held.push(new Array(1e5).fill(args.value + held.length));"
    async with yard.probe(body, limits={"memory_bytes": 64 << 20}) as app:
        result = await app.call_tool("probe", {"value": "x"})
        assert (result.failure, result.exit_code) == ("exit_code", 134)
        assert "heap out of memory" in result.text


async def test_a_hung_host_is_killed_at_its_limit_with_its_tree(yard):
    async with switch(yard, node_timeout_seconds=LIMIT) as app:
        result = await app.call_tool("probe", {"value": "spin"})
        assert (result.failure, result.text) == ("timeout", f"Error: 'probe' timed out after {LIMIT} seconds")
        host, child = yard.log()[0].split()
        assert not is_alive(int(host))
        assert not is_alive(int(child))
        assert await call(app, arguments={"value": "pid"}) != host


async def test_the_other_calls_of_a_hung_host_are_told_when_it_is_killed(yard, monkeypatch):
    monkeypatch.setattr(node_hosts, "PONG_PATIENCE", 1)
    async with switch(yard) as app:
        spinning = start(app, "spin")
        await yard.until_logged()
        other = start(app, "pid")
        await asyncio.sleep(0)
        spinning.cancel()
        told = await other
        assert told.failure == "crash"
        assert "it was ended because a call of 'probe' was cancelled and could not be stopped otherwise" in told.text
        with pytest.raises(asyncio.CancelledError):
            await spinning


async def test_a_call_past_its_limit_that_minds_its_signal_leaves_the_host_alone(yard, patient):
    async with switch(yard, node_timeout_seconds=LIMIT) as app:
        before = await call(app, arguments={"value": "pid"})
        result = await app.call_tool("probe", {"value": "wait"})
        assert result.failure == "timeout"
        assert yard.log()[1] == "stopped"
        assert await call(app, arguments={"value": "pid"}) == before


async def test_a_call_that_does_not_mind_its_signal_harms_no_other_call(yard, monkeypatch):
    monkeypatch.setattr(node_hosts, "PONG_PATIENCE", PATIENCE)
    async with switch(yard) as app:
        stubborn = start(app, "stubborn")
        host, child = (await yard.until_logged())[0].split()
        slow = start(app, "slow")
        await yard.until_logged(2)
        stubborn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stubborn
        assert await call(app, arguments={"value": "pid"}) != host, "it takes no more calls"
        yard.file("go", "")
        assert (await slow).text == f"done in {host}"
        await yard.until_gone(host, child)


async def test_cancelling_reaches_the_tool_by_its_signal(yard, patient):
    async with switch(yard) as app:
        running = start(app, "wait")
        host = (await yard.until_logged())[0]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert yard.log()[1] == "stopped"
        assert await call(app, arguments={"value": "pid"}) == host


@pytest.mark.parametrize("kind", ["stubborn", "spin"])
async def test_cancelling_a_tool_that_does_not_mind_ends_it_with_its_tree(yard, kind):
    async with switch(yard) as app:
        running = start(app, kind)
        host, child = (await yard.until_logged())[0].split()
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not is_alive(int(host))
        assert not is_alive(int(child))
        assert (await call(app, arguments={"value": "pid"})) != host


async def test_a_generator_that_never_ends_stops_at_its_next_piece(yard, patient):
    yard.file(
        "probe.mjs",
        "import { appendFileSync } from 'node:fs';\n"
        "const log = (cwd, text) => appendFileSync(`${cwd}/log`, `${text} ${process.pid}\\n`);\n"
        "export default { *run(args, { cwd }) { try { log(cwd, 'begun'); for (;;) yield 'more' }\n"
        "  finally { log(cwd, 'tidied') } } };",
    )
    async with yard.app("node:probe.mjs", working_directory=str(yard.folder)) as app:
        running = asyncio.ensure_future(app.call_tool("probe", {}))
        await yard.until_logged()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert is_alive(int(yard.log()[1].split()[1])), "the host lives on"


async def test_closing_the_application_ends_calls_hosts_and_what_they_started(yard):
    async with switch(yard) as app:
        running = start(app, "stubborn")
        pids = (await yard.until_logged())[0].split()
    assert (await running).failure == "crash"
    assert not any(is_alive(int(pid)) for pid in pids)


UNCAUGHT = {
    "a timer": ("setTimeout(() => { throw new Error('late') }, 1)", "late"),
    "a promise": ("Promise.reject(new Error('nobody cares'))", "nobody cares"),
    "an event": ("const { EventEmitter } = await import('node:events'); "
                 "setImmediate(() => new EventEmitter().emit('error', new Error('heard by none')))", "heard by none"),
    "a missing program": ("(await import('node:child_process')).spawn('/no/such')", "spawn /no/such ENOENT"),
    "an exit": ("process.exit(3)", "process.exit(3) was called"),
    "an exit in a timer": ("setTimeout(() => process.exit(), 1)", "process.exit() was called"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNCAUGHT)
async def test_what_nobody_catches_fails_its_own_call_and_not_the_host(yard, kind):
    code, words = UNCAUGHT[kind]
    body = f"if (args.value) {{ {code}; {IGNORANT} }}\n{CASES['slow']}"
    async with yard.probe(body, working_directory=str(yard.folder)) as app:
        slow = asyncio.ensure_future(app.call_tool("probe", {}))
        await yard.until_logged()
        result = await app.call_tool("probe", {"value": "now"})
        assert (result.failure, result.text) == ("exit_code", f"Error: 'probe' failed: {words}")
        yard.file("go", "")
        done = await slow
        assert done.text.startswith("done in"), done
        assert await call(app) == done.text, "in the same host"


async def test_a_flood_is_streamed_in_bounded_memory(yard):
    yard.file(
        "probe.mjs",
        "const piece = 'x'.repeat(262_143) + '\\n';\nexport default { async *run() {\n"
        "  yield 'first\\n'; for (let i = 0; i < 1024; i++) yield piece; yield 'last\\n'; } };",
    )
    async with yard.app("node:probe.mjs", output={"limit_bytes": 1000}, policy={"node_timeout_seconds": 100}) as app:
        Path("/proc/self/clear_refs").write_text("5")  # measure the peak from here on
        before = memory_peak()
        result = await app.call_tool("probe", {})
        assert memory_peak() - before < 64 << 10, "kilobytes"
    assert (result.failure, result.bytes_out) == (None, (256 << 20) + len("first\nlast\n"))
    assert result.text.startswith("first\n")
    assert result.text.endswith("\nlast\n")
    assert len(result.text) < 1300


def memory_peak() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize("way", ["return text", "context.write(text)", "yield"])
async def test_a_long_text_arrives_whole_however_it_is_given(yard, way):
    text = "const text = 'ü😀x'.repeat(1_000_000);"
    run = f"*run() {{ {text} yield text }}" if way == "yield" else f"async run(_, context) {{ {text} {way} }}"
    yard.file("probe.mjs", f"export default {{ {run} }};")
    async with yard.app("node:probe.mjs", output={"limit_bytes": 10_000_000}) as app:
        assert await call(app) == "ü😀x" * 1_000_000


async def test_a_long_output_is_cut_and_kept_in_a_file(yard):
    async with yard.probe("return 'x'.repeat(3_000_000)", output={"limit_bytes": 1000, "spill": True}) as app:
        result = await app.call_tool("probe", {})
    assert (result.bytes_out, result.truncated.omitted_bytes) == (3_000_000, 2_999_000)
    assert Path(result.truncated.kept_at).read_text() == "x" * 3_000_000


async def test_the_environment_has_no_credentials_but_those_that_policy_passes(yard, monkeypatch):
    for name in ("MY_API_KEY", "OTHER_TOKEN", "NODE_CHANNEL_FD"):
        monkeypatch.setenv(name, "3")
    names = ["MY_API_KEY", "OTHER_TOKEN", "NODE_CHANNEL_FD", "PATH"]
    body = f"return {names}.filter((name) => name in process.env).join()"
    async with yard.probe(body, policy={"pass_env": ["OTHER_TOKEN"]}) as app:
        assert await call(app) == "OTHER_TOKEN,PATH"
    start_line = yard.audit()[0]
    assert (start_line["kind"], start_line["envKeys"]) == ("node_module", ["OTHER_TOKEN"])
    assert start_line["argv"][1:] == [str(yard.folder / "probe.mjs"), "probe"]


async def test_a_tool_gets_the_settings_it_names_and_no_others(yard):
    async with yard.probe(
        "return context.config", more="configKeys: ['smtp', 'absent'],", smtp={"user": "ada"}, other="secret"
    ) as app:
        assert await call(app) == '{"smtp":{"user":"ada"}}'


async def test_every_call_runs_in_its_own_working_directory(yard):
    yard.module("await new Promise((go) => setTimeout(go, 20)); return [process.cwd(), context.cwd].join()")
    for name in ("a", "b"):
        (yard.folder / name).mkdir()
    agents = {name: {"working_directory": str(yard.folder / name)} for name in ("a", "b")}
    async with yard.app("node:probe.mjs", agents=agents) as app:
        order = ["a", "b", "a", "b", "b", "a"]
        texts = await asyncio.gather(*(call(app, agent=name) for name in order))
        assert texts == [",".join([str(yard.folder / name)] * 2) for name in order]
        (yard.folder / "a").rename(yard.folder / "c")
        missing = await app.call_tool("probe", {}, agent="a")
        assert (missing.failure, "ENOENT" in missing.text) == ("crash", True)
        assert await call(app, agent="b") == texts[1]


async def test_a_directory_that_was_made_anew_is_the_new_one(yard):
    yard.module("return (await import('node:fs')).existsSync('here')")
    where = yard.folder / "work"
    where.mkdir()
    async with yard.app("node:probe.mjs", working_directory=str(where)) as app:
        assert await call(app) == "false"
        shutil.rmtree(where)
        where.mkdir()
        (where / "here").touch()
        assert await call(app) == "true"
