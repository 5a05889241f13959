"""Sessions for tests: opened in a folder of their own, every wait bounded, and whatever they leave behind is found."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marks import fresh_mark, marked
from support import until
from toolyard.bash import BashSession, Job, Reply

BASH = shutil.which("bash") or "/bin/bash"
PATIENCE = 60.0
"""No wait of any test is longer; a healthy one needs a fraction."""
A_MOMENT = 0.5
"""A time limit that is meant to be hit."""


def version_of(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")[:2]))


BASH_VERSION = version_of(subprocess.check_output([BASH, "-c", "echo $BASH_VERSION"], text=True))
SINCE_5_2 = pytest.mark.skipif(BASH_VERSION < (5, 2), reason="this bash does it otherwise by itself")

BASH_SAYS = re.compile(r"^(?:(?:environment|main): (?=line \d)|bash: (?:-c|eval): (?=line \d))", re.MULTILINE)
"""bash's own error prefix before the line number: `-c`, `eval` and functions each have their own."""


class Session:
    """One session, asked with short words."""

    def __init__(self, bash: BashSession, folder: Path, mark: str) -> None:
        self.bash = bash
        self.folder = folder
        self.mark = mark
        """A number of seconds that nobody else sleeps, by which processes are found."""

    async def run(self, command: str, **options: Any) -> Reply:
        async with asyncio.timeout(PATIENCE):
            return await self.bash.run(command, **options)

    async def answer(self, command: str, **options: Any) -> tuple[str, int | None]:
        """What it printed and its status."""
        reply = await self.run(command, **options)
        return reply.output, reply.exit_code

    async def output(self, command: str, **options: Any) -> str:
        return (await self.run(command, **options)).output

    async def past_its_limit(self, command: str, *, limit: float = A_MOMENT) -> Reply:
        """Run something that does not end by itself."""
        reply = await self.run(command, timeout=limit)
        assert reply.timed_out, reply
        return reply

    async def keeps_its_state(self) -> bool:
        """Whether it still is the session that was opened."""
        return await self.answer('echo "$KEEP"') == ("42\n", 0)

    async def write(self, text: str) -> Reply:
        async with asyncio.timeout(PATIENCE):
            return await self.bash.write(text)

    async def interrupt(self) -> Reply:
        async with asyncio.timeout(PATIENCE):
            return await self.bash.end_waiting()

    async def restart(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.bash.restart()

    async def start_job(self, command: str, **options: Any) -> Job:
        reply = await self.run(command, background=True, **options)
        assert reply.job is not None
        return self.bash.jobs[reply.job]

    def only_job(self) -> Job:
        (job,) = self.bash.jobs.values()
        return job

    async def close(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.bash.aclose()

    def alive(self) -> list[str]:
        return marked(self.mark)

    def sleepers(self) -> list[str]:
        """The living `sleep`s of this session."""
        return sorted(found for found in self.alive() if found.split()[1].endswith("sleep"))

    async def until_sleepers(self, count: int) -> list[str]:
        """Wait until so many have begun to sleep."""
        await until(lambda: len(self.sleepers()) == count)
        return self.sleepers()


class Console:
    """Opens sessions, and closes whatever a test leaves open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.mark = fresh_mark()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "dumb",
            "CASE": self.mark,
        }
        self._open: list[BashSession] = []

    async def open(self, **options: Any) -> Session:
        conditions: dict[str, Any] = {"cwd": self.folder, "env": self.env} | options
        bash = BashSession(**conditions)
        self._open.append(bash)
        async with asyncio.timeout(PATIENCE):
            await bash.__aenter__()
        return Session(bash, self.folder, self.mark)

    async def open_prepared(self, **options: Any) -> Session:
        """A session that has something to lose."""
        shell = await self.open(**options)
        assert await shell.answer(f"cd {self.folder}; export KEEP=42") == ("", 0)
        return shell

    async def close(self) -> None:
        for bash in self._open:
            async with asyncio.timeout(PATIENCE):
                await bash.aclose()

    async def bash_c(self, command: str, *, cwd: Path | None = None, **variables: str) -> tuple[str, int]:
        """What a bash of its own says to a command, and its status; for output that fits into a pipe."""
        return await asyncio.to_thread(bash_c, command, cwd or self.folder, self.env | variables)

    def folder_of(self, *names: object) -> Path:
        folder = self.folder.joinpath(*map(str, names))
        folder.mkdir(parents=True)
        return folder

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


def bash_c(command: str, cwd: Path, env: Mapping[str, str]) -> tuple[str, int]:
    """Run a command by `bash -c`. What it leaves running is ended, not waited for."""
    reading, writing = os.pipe()
    with open(reading, "rb") as output:
        bash = subprocess.Popen(
            ["bash", "-c", command],
            executable=BASH,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(writing)
        status = bash.wait(PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(bash.pid, signal.SIGKILL)
        return output.read().decode(errors="replace"), status if status >= 0 else 128 - status


def normalised(text: str) -> str:
    return BASH_SAYS.sub("bash: ", text)
