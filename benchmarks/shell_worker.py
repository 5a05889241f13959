"""Each contestant in a process of its own: it can hang, crash or leak there without disturbing the others.

`python -m benchmarks.shell_worker NAME` answers requests, one JSON line each, about the contestant of that name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.shell_answers import Session
from benchmarks.shell_awkward import try_case
from benchmarks.shell_processes import MARK, Memory, marked, memory
from benchmarks.shell_sessions import ALL, Contestant, lacking

ROOT = Path(__file__).parent.parent
PEERS_PYTHON = ROOT / ".venv-bench/bin/python"
LINE_LIMIT = 1 << 24


class Failed(Exception):
    """A contestant did not do what it was asked to, and is not asked again."""


class Worker:
    """The near end: asks, waits so long and no longer, and leaves nothing behind."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self.id = uuid4().hex
        self.failure = ""
        self.folder = tempfile.TemporaryDirectory()

    async def start(self) -> None:
        python = str(PEERS_PYTHON) if self.contestant.needs and PEERS_PYTHON.exists() else sys.executable
        self.process = await asyncio.create_subprocess_exec(
            *(python, "-m", "benchmarks.shell_worker", self.contestant.name),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, MARK: self.id, "SHELL": "/bin/bash", "TMUX_TMPDIR": self.folder.name},
            limit=LINE_LIMIT,
            start_new_session=True,
        )

    async def ask(self, what: str, *, within: float = 60.0, **arguments: Any) -> Any:
        """The answer; the first failure is remembered and ends the worker."""
        if self.failure:
            raise Failed(self.failure)
        try:
            async with asyncio.timeout(within):
                answer = await self.exchange({"what": what, **arguments})
        except TimeoutError:
            answer = {"error": f"no answer within {within:g} s"}
        if "error" in answer:
            self.failure = str(answer["error"])
            await self.end()
            raise Failed(self.failure)
        return answer["value"]

    async def tries(self, what: str, *, within: float = 60.0, **arguments: Any) -> Any:
        """The answer, or None; `failure` then says why."""
        with contextlib.suppress(Failed):
            return await self.ask(what, within=within, **arguments)

    async def exchange(self, request: dict[str, object]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            line = await self.process.stdout.readline()
        except ConnectionError:
            line = b""
        answer: dict[str, Any] = json.loads(line) if line else {"error": "its process ended"}
        return answer

    async def end(self) -> None:
        """Ask it to close, then kill whatever carries the mark of this worker."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), 0.1 if self.failure else 5)
        for pid in marked(self.id):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await self.process.wait()
        self.folder.cleanup()


class Desk:
    """The far end: does what is asked with its contestant's sessions."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self.sessions: list[Session] = []
        self.requests: dict[str, Callable[..., Awaitable[object]]] = {
            "ready": self.ready,
            "open": self.open,
            "close": self.close,
            "start": self.start,
            "latency": self.latency,
            "output": self.output,
            "memory": self.memory,
            "growth": self.growth,
            "case": self.case,
        }

    async def answer(self, request: dict[str, Any]) -> dict[str, object]:
        try:
            return {"value": await self.requests[request.pop("what")](**request)}
        except Failed as error:
            return {"error": str(error)}
        except Exception as error:
            first_line = next(iter(str(error).splitlines()), "")
            return {"error": f"{type(error).__name__}: {first_line}"[:120]}

    async def ready(self) -> str:
        return lacking(self.contestant)

    async def open(self, *, count: int) -> None:
        for _ in range(count):
            session = self.contestant.make()
            await session.open()
            await session.run("true")
            self.sessions.append(session)

    async def close(self) -> None:
        while self.sessions:
            await self.sessions.pop().close()

    async def start(self, *, count: int) -> list[float]:
        """How long it takes from nothing to the end of the first command."""
        times = []
        for _ in range(count):
            session = self.contestant.make()
            started = time.perf_counter()
            await session.open()
            await session.run("true")
            times.append(time.perf_counter() - started)
            await session.close()
        return times

    async def latency(self, *, command: str, count: int, seconds: float) -> list[float]:
        """At most so many commands and, but for a few, so much time."""
        run = self.sessions[0].run
        times: list[float] = []
        deadline = time.perf_counter() + seconds
        before = time.perf_counter()
        while len(times) < count and (before < deadline or len(times) < 3):
            await run(command)
            after = time.perf_counter()
            times.append(after - before)
            before = after
        return times

    async def output(self, *, command: str, timeout: float, end: str) -> float:
        """One command with much output, whose end must be there."""
        started = time.perf_counter()
        answer = await self.sessions[0].run(command, timeout)
        elapsed = time.perf_counter() - started
        if answer.timed_out or answer.error:
            raise Failed(answer.error or f"not done within {timeout:g} s")
        if end not in answer.output[-4096:]:
            raise Failed("the end of the output is missing")
        return elapsed

    async def memory(self) -> Memory:
        return memory(os.environ[MARK])

    async def growth(self, *, command: str, timeout: float) -> float:
        """By how many MiB the process was larger than before, at worst, while a command wrote much."""
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmHWM")
        await self.output(command=command, timeout=timeout, end="")
        return (status("VmHWM") - before) / 1024

    async def case(self, *, name: str) -> str:
        return await try_case(name, self.contestant)


def status(field: str) -> int:
    """A field of this process's status, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


async def serve(name: str) -> None:
    """Requests come and answers go by descriptors that no contestant can reach."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(requests, "rb", 0))
    desk = Desk(ALL[name])
    while line := await reader.readline():
        os.write(answers, json.dumps(await desk.answer(json.loads(line))).encode() + b"\n")
    await desk.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
