"""The shells that are measured: bash over two pipes, ours, and the peers, as shipped and tuned."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.shell_answers import PATIENCE, READ_SIZE, Answer, Session
from benchmarks.shell_peers import Libtmux, LibtmuxTuned, Replwrap, ReplwrapTuned, SweRex, SweRexTuned


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A way to run commands, and what may be asked of it."""

    name: str
    label: str
    make: Callable[[], Session]
    needs: str = ""
    """The module that must be installed."""
    program: str = "bash"
    tuned: bool = False
    persistent: bool = True
    tells_status: bool = True


class Floor:
    """Bash reading commands from a pipe; its output is read, blocking, until the mark."""

    mark = "E0"

    async def open(self) -> None:
        argv = ["bash", "--norc", "--noprofile"]
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.input, self.output = self.child.stdin.fileno(), self.child.stdout.fileno()

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:  # noqa: ARG002 (the floor waits)
        os.write(self.input, f"{command}\necho E$?\n".encode())
        data = os.read(self.output, READ_SIZE)
        while not data.endswith(b"E0\n"):
            data += os.read(self.output, READ_SIZE)
        return Answer(output=data[:-3].decode(), exit_code=0)

    async def converse(self, command: str, prompt: str, reply: str) -> Answer:
        raise NotImplementedError

    async def close(self) -> None:
        self.child.kill()
        self.child.communicate()


class PlainReader(Floor):
    """A bash for each command, its output read from a pipe and thrown away: the floor of throughput."""

    async def open(self) -> None:
        pass

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:  # noqa: ARG002 (the floor waits)
        with subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            last = b""
            while data := os.read(child.stdout.fileno(), READ_SIZE):
                last = data
        return Answer(output=last.decode(), exit_code=child.returncode)

    async def close(self) -> None:
        pass


class Ours:
    """`toolyard.bash.BashSession` through its own interface."""

    mark = ""

    def __init__(self) -> None:
        from toolyard.bash import BashSession  # the peers' environment has no toolyard

        self.shell = BashSession()

    async def open(self) -> None:
        await self.shell.__aenter__()

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:
        reply = await self.shell.run(command, timeout=timeout)
        return Answer(output=reply.output, exit_code=reply.exit_code, timed_out=reply.timed_out)

    async def converse(self, command: str, prompt: str, reply: str) -> Answer:
        asked = await self.shell.run(command, interactive=True, timeout=PATIENCE)
        if not asked.waiting_for_input or prompt not in asked.output:
            return Answer(error="no prompt was seen")
        answered = await self.shell.write(reply + "\n")
        return Answer(output=answered.output, exit_code=answered.exit_code)

    async def close(self) -> None:
        await self.shell.aclose()


class OneShot:
    """`subprocess.run` of a new bash for each command: nothing is kept between two."""

    mark = ""

    async def open(self) -> None:
        pass

    async def run(self, command: str, timeout: float = PATIENCE) -> Answer:
        try:
            done = subprocess.run(
                ["bash", "-c", command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            return Answer(output=(error.output or b"").decode(errors="replace"), timed_out=True)
        return Answer(output=done.stdout, exit_code=done.returncode)

    async def converse(self, command: str, prompt: str, reply: str) -> Answer:
        raise NotImplementedError

    async def close(self) -> None:
        pass


FLOOR = Contestant(name="floor", label="bash over two pipes", make=Floor)
READER = Contestant(name="reader", label="os.read in a loop", make=PlainReader, persistent=False)
OURS = Contestant(name="ours", label="ours", make=Ours)
PEERS = (
    Contestant(
        name="replwrap",
        label="pexpect.replwrap as shipped",
        make=Replwrap,
        needs="pexpect",
        tells_status=False,
    ),
    Contestant(
        name="replwrap-tuned",
        label="pexpect.replwrap tuned",
        make=ReplwrapTuned,
        needs="pexpect",
        tuned=True,
        tells_status=False,
    ),
    Contestant(name="swe-rex", label="SWE-ReX as shipped", make=SweRex, needs="swerex"),
    Contestant(name="swe-rex-tuned", label="SWE-ReX tuned", make=SweRexTuned, needs="swerex", tuned=True),
    Contestant(name="libtmux", label="libtmux as documented", make=Libtmux, needs="libtmux", program="tmux"),
    Contestant(
        name="libtmux-tuned",
        label="libtmux tuned",
        make=LibtmuxTuned,
        needs="libtmux",
        program="tmux",
        tuned=True,
    ),
    Contestant(name="one-shot", label="subprocess.run each time", make=OneShot, persistent=False),
)
ALL = {contestant.name: contestant for contestant in (FLOOR, READER, OURS, *PEERS)}


def lacking(contestant: Contestant) -> str:
    """Why it cannot run here; empty when it can."""
    if contestant.needs and importlib.util.find_spec(contestant.needs) is None:
        return f"{contestant.needs} is not installed"
    if shutil.which(contestant.program) is None:
        return f"{contestant.program} is not installed"
    return ""


async def both(session: Session, first: str, second: str) -> list[Answer]:
    """Two calls at once, from two threads when the session blocks the loop."""
    if isinstance(session, Ours | SweRex):
        return list(await asyncio.gather(session.run(first), session.run(second)))

    def in_a_thread(command: str) -> Answer:
        return asyncio.run(session.run(command))

    threads = (asyncio.to_thread(in_a_thread, command) for command in (first, second))
    return list(await asyncio.gather(*threads))
