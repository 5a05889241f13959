"""What an agent costs beside its model: a turn beside those of peers, a hundred agents, the store, opening, memory."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from benchmarks.measure import Note, Row, compiling_environment, milliseconds
from toolyard import AgentApplication
from toolyard.agents.session import AgentSession
from toolyard.agents.sessions.event_log import EventLog
from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    CallBegan,
    ContextShortened,
    PromptGiven,
    TurnEnded,
    TurnStarted,
)
from toolyard.agents.sessions.store import SessionStore
from toolyard.core.content import TextPart
from toolyard.core.conversation import AssistantMessage, CallAnswer, UserMessage
from toolyard.core.tool import ToolCall

HERE = Path(__file__).parent
PEERS = ("openai-agents", "pydantic-ai", "mini-swe-agent")
PEERS_PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"
TURNS, AGENTS, TURNS_OF_EACH = 60, 100, 5
EVENTS, AT_ONCE, LONG_SESSION = 4_000, 50, 100_000
IDLE = """
import asyncio, json, sys
from pathlib import Path
from toolyard import AgentApplication
async def main():
    async with AgentApplication(json.loads(sys.argv[1]), sys.argv[2]) as app:
        session = await app.open_session()
        async for _ in session.send("Hi"):
            pass
        print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line))
asyncio.run(main())
"""


async def rows() -> AsyncIterator[Row | Note]:
    """Turns have one call of bash each."""
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as work, server() as origin, chdir(work):
        folder = Path(name)
        (Path(work) / "hello.txt").write_text("The workspace, of which states are kept.")
        async for row in one_turn(folder, origin):
            yield row
        yield await many_agents(folder, origin)
        yield idle_memory(folder, origin)
        async for row in storing(folder):
            yield row


@contextmanager
def server() -> Iterator[str]:
    argv = [sys.executable, str(HERE / "agent_server.py")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def config_for(origin: str) -> dict[str, Any]:
    provider = "path:${env:BUILTIN_PLUGINS}/openai-compatible"
    return {
        "plugins": ["shell:session", provider],
        "provider": "openai_compatible",
        "model": "m",
        "api_key": "k",
        "base_url": f"{origin}/v1",
    }


async def one_turn(folder: Path, origin: str) -> AsyncIterator[Row | Note]:
    """What a turn takes beyond two requests that do nothing with what they get."""
    ours, floor, cpu = await compared(folder, origin)
    mine = ours - floor
    peers = {name: peer_turn(name, origin) for name in PEERS if PEERS_PYTHON.exists()}
    theirs = {name: seconds - floor for name, (seconds, _) in peers.items()}
    yield Row(
        what="overhead of a turn with one call of bash",
        ours=milliseconds(ours),
        floor=f"{milliseconds(floor)} (two requests)",
        figure=f"{milliseconds(mine)} more",
        promise="≤ 5 ms more",
        kept=mine <= 0.005,
    )
    for name, more in theirs.items():
        yield Row(
            what=f"the same beside {name}",
            ours=milliseconds(mine),
            floor=milliseconds(more),
            figure=f"{mine / more:.2f} ×",
            promise="< 1 ×",
            kept=mine < more,
        )
    costs = {"ours": cpu, **{name: spent for name, (_, spent) in peers.items()}}
    told = ", ".join(f"{name} {milliseconds(one)}" for name, one in costs.items())
    yield Note(f"CPU of the process for a turn: {told}.")
    if not theirs:
        yield Note("The peers are not installed; `make bench` does it.")


async def compared(folder: Path, origin: str) -> tuple[float, float, float]:
    """The medians of our turns, and of two bare requests, in turn; and of the CPU that our turns took."""
    import httpx2

    ours, floor, cpu = [], [], []
    async with AgentApplication(config_for(origin), folder / "one") as app, httpx2.AsyncClient() as client:
        for number in range(TURNS):
            if number % TURNS_OF_EACH == 0:  # peers begin anew with each turn
                session = await app.open_session()
                await whole_turn(session)
            started, spent = time.perf_counter(), time.process_time()
            await whole_turn(session)
            between = time.perf_counter()
            cpu.append(time.process_time() - spent)
            for _ in range(2):
                await bare_request(client, origin)
            ours.append(between - started)
            floor.append(time.perf_counter() - between)
    return statistics.median(ours), statistics.median(floor), statistics.median(cpu)


async def whole_turn(session: AgentSession) -> None:
    async for _ in session.send("What is six times seven?"):
        pass


async def bare_request(client: Any, origin: str) -> None:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    async with client.stream("POST", f"{origin}/v1/chat/completions", json=body) as response:
        async for _ in response.aiter_bytes():
            pass


def peer_turn(name: str, origin: str) -> tuple[float, float]:
    """The medians of seconds and of CPU."""
    # Without its folder on the path, where mcp.py would stand for the package.
    argv = [str(PEERS_PYTHON), "-P", str(HERE / "agent_peer.py"), name, origin, str(TURNS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300)
    seconds, cpu = zip(*json.loads(done.stdout.splitlines()[-1]), strict=True)
    return float(statistics.median(seconds)), float(statistics.median(cpu))


async def many_agents(folder: Path, origin: str) -> Row:
    """Each with a conversation and a bash of its own, all in this process."""
    async with AgentApplication(config_for(origin), folder / "many") as app:
        sessions = [await app.open_session() for _ in range(AGENTS)]

        async def converse(session: AgentSession) -> None:
            for _ in range(TURNS_OF_EACH):
                await whole_turn(session)

        started = time.perf_counter()
        await asyncio.gather(*map(converse, sessions))
        seconds = time.perf_counter() - started
    per_minute = AGENTS * TURNS_OF_EACH / seconds * 60
    return Row(
        what=f"{AGENTS} agents at once in one process, each with its own bash",
        ours=f"{seconds:.1f} s for {AGENTS * TURNS_OF_EACH} turns",
        floor="-",
        figure=f"{per_minute:,.0f} turns a minute",
        promise="≥ 1,000",
        kept=per_minute >= 1000,
    )


def idle_memory(folder: Path, origin: str) -> Row:
    argv = [sys.executable, "-c", IDLE, json.dumps(config_for(origin)), str(folder / "idle")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=compiling_environment(), timeout=120)
    megabytes = int(done.stdout.splitlines()[-1]) * 1024 / 1e6
    return Row(
        what="memory of an idle application with one agent, after a turn",
        ours=f"{megabytes:.0f} MB",
        floor="-",
        figure=f"{megabytes:.0f} MB",
        promise="≤ 60 MB",
        kept=megabytes <= 60,
    )


async def storing(folder: Path) -> AsyncIterator[Row]:
    """Events as a turn has them, of some 750 bytes."""
    store = SessionStore(folder / "store" / "sessions.sqlite")
    step = events_of_a_turn()
    row = await store.create("default")
    for what, batch, promise in (("one by one", 1, 2_500), (f"in batches of {AT_ONCE}", AT_ONCE, 20_000)):
        made = [(step * AT_ONCE)[:batch]] * (EVENTS // batch)
        started = time.perf_counter()
        for events in made:
            await store.append(row.id, events, durable=True)
        between = time.perf_counter()
        bare_writes(folder / f"bare-{batch}.sqlite", made)
        rate, floor = EVENTS / (between - started), EVENTS / (time.perf_counter() - between)
        yield Row(
            what=f"durable events, {what}",
            ours=f"{rate:,.0f} a second",
            floor=f"{floor:,.0f} a second (SQLite alone)",
            figure=f"{rate:,.0f} a second",
            promise=f"≥ {promise:,}",
            kept=rate >= promise,
        )
    long = await store.create("default")
    for number in range(LONG_SESSION // 1000):  # a conversation of that length was summed up many times
        summary = ContextShortened(what="summary", upto=number * 1000 + 900, summary="word " * 300)
        await store.append(long.id, [*(step * 1000)[:999], summary])
    started = time.perf_counter()
    log = EventLog(store, long.id)
    seconds = time.perf_counter() - started
    assert log.history().turn > 0
    store.close()
    yield Row(
        what=f"a session of {LONG_SESSION:,} events opens, with {LONG_SESSION // 1000} summaries",
        ours=milliseconds(seconds),
        floor="-",
        figure=milliseconds(seconds),
        promise="≤ 200 ms",
        kept=seconds <= 0.2,
    )


def bare_writes(path: Path, batches: list[list[Any]]) -> None:
    """The same bytes into one table, each batch on the disk before the next."""
    connection = apsw.Connection(str(path))
    for sql in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE events (data BLOB)"):
        connection.execute(sql)
    for events in batches:
        with connection:
            connection.executemany("INSERT INTO events VALUES (?)", [(msgspec.json.encode(one),) for one in events])
    connection.close()


def events_of_a_turn() -> list[Any]:
    """A turn of ten calls."""
    text = "word " * 130
    call = ToolCall(id="call_1", name="bash", arguments={"command": f"echo {text}"})
    step = [
        AnswerReceived(message=AssistantMessage(text=text, calls=(call,))),
        CallBegan(call=call),
        CallAnswered(answer=CallAnswer(call_id="call_1", name="bash", text=text)),
    ]
    begin = [PromptGiven(message=UserMessage(content=(TextPart(text=text),))), TurnStarted(turn=1)]
    return [
        *begin,
        *step * 10,
        AnswerReceived(message=AssistantMessage(text=text)),
        TurnEnded(turn=1, outcome="answered"),
    ]


if __name__ == "__main__":

    async def show() -> None:
        async for line in rows():
            print(line, flush=True)

    asyncio.run(show())
