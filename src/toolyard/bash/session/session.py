"""A bash that outlives its commands: one shell, its state kept from call to call, whatever the calls do to it."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toolyard.bash.session.channels import OutputChannel
from toolyard.bash.session.control_channel import ShellGone
from toolyard.bash.session.input_wait import Look
from toolyard.bash.session.jobs import JobList
from toolyard.bash.session.protocol import is_builtin, why_not
from toolyard.bash.session.reply import Reply, reply_at_end, reply_before_end
from toolyard.bash.session.restarts import Succession
from toolyard.bash.session.shell import NOTHING_TO_READ, TERMINAL
from toolyard.errors import ShellError
from toolyard.process.limits import NO_LIMITS
from toolyard.process.output import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from toolyard.bash.session.command import Command
    from toolyard.bash.session.jobs import Job
    from toolyard.bash.session.shell import Bash
    from toolyard.process.child import Children
    from toolyard.process.environment import ParentEnvironment
    from toolyard.process.limits import Limits


TIMEOUT = 120.0
OUTPUT_LIMIT = 1 << 20
MOST_JOBS = 64
LETTING_GO = 0.1
"""How long what runs in a process substitution may take to print its last."""
SWIFT_OUTPUT = 1 << 16
"""More than a builtin that is run swiftly can print."""
LOOK_AFTER = 0.002
"""After a pause of this length the shell's end may have come without our hearing of it."""


class BashSession:
    """One live bash; use it with `async with`."""

    def __init__(
        self,
        cwd: str | os.PathLike[str] = ".",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tty: bool = False,
        *,
        timeout: float = TIMEOUT,
        output_limit: int = OUTPUT_LIMIT,
        spill_dir: str | os.PathLike[str] | None = None,
        max_jobs: int = MOST_JOBS,
        on_timeout: Literal["kill", "background"] = "kill",
        children: Children | None = None,
        parent: ParentEnvironment | None = None,
    ) -> None:
        self._limits = limits or NO_LIMITS
        self._tty = tty
        self._timeout = timeout
        self._output_limit = output_limit
        self._spill_dir = Path(spill_dir) if spill_dir else None
        self._on_timeout = on_timeout
        self._turns = Turns()
        self._shells = Succession(
            cwd=os.path.abspath(cwd), env=env, limits=self._limits, tty=tty, children=children, parent=parent
        )
        self._jobs = JobList(self._shells, self._turns, max_jobs)
        self._spills = 0
        self._name = secrets.token_hex(4)
        self._look_after = 0.0

    async def __aenter__(self) -> BashSession:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def pid(self) -> int | None:
        """The process id of the shell, while there is one."""
        bash = self._shells.current
        return bash.process.pid if bash and bash.process.exit_status is None else None

    @property
    def cwd(self) -> str:
        """The working directory after the last command."""
        return self._shells.cwd

    @property
    def jobs(self) -> dict[str, Job]:
        """What was left running, by id, until it has ended and been read."""
        return self._jobs.by_id

    async def start(self) -> None:
        """Start the shell now; otherwise the first command does."""
        async with self._turns:
            await self._shells.ready()

    async def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        on_output: Callable[[str], None] | None = None,
        interactive: bool = False,
        background: bool = False,
        limits: Limits | None = None,
    ) -> Reply:
        """Run a command to its end, its time limit, or the moment it asks for input.

        Its `limits` are instead of those of the session, as far as they say something, and never wider.
        """
        if reason := why_not(command):
            raise ShellError(reason)
        started = time.monotonic()
        heard = None
        plain = not (interactive or background or limits)
        if started < self._look_after and self._is_free() and plain and is_builtin(command):
            status, heard = self._swiftly(command)
            if status is not None:
                return self._swift_reply(status, heard or b"", started, on_output)
        async with self._turns:
            if heard is not None and (bash := self._shells.current):
                running = bash.adopt(command, self._transcript(on_output), heard)
                return await self._attend(bash, running, timeout)
            if self._shells.is_recovering:
                await self._shells.recovered()
            if (bash := self._shells.current) and bash.waiting:
                raise ShellError("a command waits for input: answer it, or interrupt it, before the next")
            if background:
                return await self._start_job(command, interactive=interactive, limits=limits)
            transcript = self._transcript(on_output, limits)
            bash, running = await self._submit(command, transcript, interactive=interactive, limits=limits)
            if bash.wait_briefly(running) and running.channel and not running.channel.drain(transcript):
                return self._reply(running, bash) if bash.trouble is None else await self._replace(bash, running)
            return await self._attend(bash, running, timeout)

    async def write(self, text: str, *, timeout: float | None = None) -> Reply:
        """Answer a command that waits for input, and wait for it again."""
        async with self._turns:
            bash, command = self._who_waits()
            bash.waiting = None
            bash.terminal.write(text.encode("utf-8", "surrogateescape"))
            return await self._attend(bash, command, timeout)

    async def interrupt(self) -> Reply:
        """End a command that waits for input."""
        async with self._turns:
            bash, command = self._who_waits()
            bash.waiting = None
            await self._shells.end_command(bash, command)
            return await self._conclude(bash, command)

    async def settled(self) -> None:
        """Wait until a command whose call was cancelled has been ended."""
        await self._shells.settled()

    async def restart(self) -> None:
        """A fresh shell with nothing of the old one: no state, no processes, no jobs."""
        async with self._turns:
            await self._drop_everything()
            self._shells.forget()
            await self._shells.ready()

    async def wait_any(self, timeout: float | None = None) -> Job | None:
        """Wait until one of the running jobs has ended."""
        return await self._jobs.wait_any(timeout)

    async def aclose(self) -> None:
        """End the shell and everything it started; nothing is left when this returns."""
        self._shells.is_closed = True
        await self._drop_everything()
        await self._shells.aclose()

    async def _drop_everything(self) -> None:
        self._shells.give_up_recovery()
        await self._jobs.aclose()
        await self._shells.end_all()

    # --- one command

    async def _submit(
        self, text: str, transcript: Transcript, *, interactive: bool, limits: Limits | None
    ) -> tuple[Bash, Command]:
        """Send it to the shell, or to a fresh one when that turns out to be gone."""
        bash = self._shells.current
        if bash is None or bash.process.exit_status is not None or time.monotonic() > self._look_after:
            bash = await self._shells.ready()
        stdin = TERMINAL if interactive or self._tty else NOTHING_TO_READ
        snapshot = interactive or self._on_timeout == "background"
        try:
            bash.limit(self._limits_of(limits))
            command = bash.submit(text, transcript, stdin=stdin, snapshot=snapshot)
        except ShellGone:
            bash = await self._shells.ready(bash)
            bash.limit(self._limits_of(limits))
            command = bash.submit(text, transcript, stdin=stdin, snapshot=snapshot)
        command.news = self._shells.take_news()
        return bash, command

    async def _start_job(self, text: str, *, interactive: bool, limits: Limits | None) -> Reply:
        self._jobs.check_room()
        bash = await self._shells.ready()
        bash.limit(self._limits_of(limits))
        transcript = self._transcript(None, limits)
        return await self._jobs.start(bash, text, transcript, interactive=interactive, within=self._timeout)

    def _limits_of(self, own: Limits | None) -> Limits:
        return self._limits.replaced_by(own) if own else self._limits

    def _transcript(self, on_output: Callable[[str], None] | None, limits: Limits | None = None) -> Transcript:
        spill_to = None
        if self._spill_dir:
            self._spills += 1
            spill_to = self._spill_dir / f"output-{self._name}-{self._spills}.txt"
        stop_at = self._limits_of(limits).output_bytes
        return Transcript(self._output_limit, listener=on_output, spill_to=spill_to, stop_at=stop_at)

    def _is_free(self) -> bool:
        """Whether there is a shell that can take a command this moment, with nothing to say of it before."""
        shells, bash = self._shells, self._shells.current
        return (
            bash is not None
            and bash.is_swift
            and bash.process.exit_status is None
            and self._turns.is_free
            and bash.waiting is None
            and not shells.is_recovering
            and shells.news is None
            and self._on_timeout == "kill"
            and self._limits is NO_LIMITS
            and self._output_limit >= SWIFT_OUTPUT
        )

    def _swiftly(self, text: str) -> tuple[int | None, bytes | None]:
        """Run a builtin with no call in between; nothing at all when the shell has just gone."""
        bash = self._shells.current
        try:
            return bash.run_swiftly(text) if bash else (None, None)
        except ShellGone:
            return None, None

    def _swift_reply(
        self, status: int, output: bytes, started: float, on_output: Callable[[str], None] | None
    ) -> Reply:
        ended = time.monotonic()
        self._look_after = ended + LOOK_AFTER
        text = output.decode("utf-8", "replace")
        if text and on_output:
            on_output(text)
        return Reply(output=text, exit_code=status, cwd=self.cwd, duration=ended - started)

    async def _attend(self, bash: Bash, command: Command, timeout: float | None) -> Reply:
        """Stay with a command until it needs no more attention; if we are cancelled, it is ended in our absence."""
        try:
            return await self._attend_uncancelled(bash, command, self._timeout if timeout is None else timeout)
        except asyncio.CancelledError:
            self._shells.recover_by(self._recover(bash, command))
            raise

    async def _attend_uncancelled(self, bash: Bash, command: Command, timeout: float) -> Reply:
        command.transcript.on_too_much = lambda: command.tell("too_much")
        bash.follow(command)
        look = Look(bash, command)
        try:
            change = command.record is None and await command.next_change(within=timeout)
        finally:
            look.stop()
        if change == "waiting":
            bash.waiting = command
            bash.terminal.drain()
            if command.channel:
                command.channel.drain(command.transcript)
            return reply_before_end(command, bash, command.transcript.take(), waiting_for_input=True)
        if change == "timeout":
            if self._on_timeout == "background":
                return self._jobs.keep_running(bash, command)
            await self._shells.end_command(bash, command)
            return await self._conclude(bash, command, timed_out=True)
        if change == "too_much":
            await self._shells.end_command(bash, command)
            note = f"The output limit of {command.transcript.stop_at} bytes was reached, so the command was ended."
            return await self._conclude(bash, command, note=note)
        return await self._conclude(bash, command)

    async def _conclude(
        self, bash: Bash, command: Command, *, timed_out: bool = False, note: str | None = None
    ) -> Reply:
        """The command is over, or its shell is: collect what it printed."""
        if bash.trouble:
            return await self._replace(bash, command)
        channel, transcript = command.channel, command.transcript
        if self._tty or "/dev/tty" in command.text:
            bash.terminal.drain()
        if channel is None or not channel.drain(transcript):
            return self._reply(command, bash, timed_out=timed_out, note=note)
        if (
            ">(" in command.text
            and isinstance(channel, OutputChannel)
            and await channel.at_end(transcript, within=LETTING_GO)
        ):
            return self._reply(command, bash, timed_out=timed_out, note=note)
        reply = self._reply(command, bash, timed_out=timed_out, note=note)
        self._jobs.keep_rest(bash, command)
        return reply

    async def _replace(self, bash: Bash, command: Command) -> Reply:
        """A shell that lives but can run nothing more: the command was not run."""
        await self._shells.replace(bash)
        note = f"The command was not run: {bash.trouble}. The next gets a fresh shell."
        return self._reply(command, bash, note=note)

    def _reply(self, command: Command, bash: Bash, *, timed_out: bool = False, note: str | None = None) -> Reply:
        self._look_after = command.ended + LOOK_AFTER
        return reply_at_end(command, bash, timed_out=timed_out, note=note)

    def _who_waits(self) -> tuple[Bash, Command]:
        bash = self._shells.current
        if bash is None or bash.waiting is None:
            raise ShellError("no command waits for input")
        return bash, bash.waiting

    async def _recover(self, bash: Bash, command: Command) -> None:
        """After a cancellation: end the command and forget what it printed."""
        await self._shells.end_command(bash, command)
        if command.channel and command.channel.drain(command.transcript):
            self._jobs.keep_rest(bash, command)


class Turns:
    """A lock that knows of everybody who waits for it, also of the one who is just being woken."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._callers = 0

    @property
    def is_free(self) -> bool:
        """Whether nobody has it and nobody waits for it."""
        return self._callers == 0

    async def __aenter__(self) -> None:
        self._callers += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._callers -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._callers -= 1
