"""`BashSession`: a bash whose state stays from command to command, whatever the commands do to it."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec.structs import replace

from toolyard.bash.session.channels import OutputChannel
from toolyard.bash.session.command_text import why_not_runnable
from toolyard.bash.session.control_channel import ShellGone
from toolyard.bash.session.handover import listed
from toolyard.bash.session.input_watch import InputWatch
from toolyard.bash.session.interrupt import processes_of
from toolyard.bash.session.jobs import JobList
from toolyard.bash.session.reply import Reply, reply_at_end, reply_before_end
from toolyard.bash.session.shell import NOTHING_TO_READ, TERMINAL
from toolyard.bash.session.supervisor import ShellSupervisor
from toolyard.bash.syntax.full_screen import NEEDS_A_TERMINAL, full_screen_program
from toolyard.errors import ShellError
from toolyard.process.limits import NO_LIMITS
from toolyard.process.output import NO_OUTPUT, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from toolyard.bash.session.command import Command
    from toolyard.bash.session.handover import CarriedState
    from toolyard.bash.session.jobs import Job
    from toolyard.bash.session.shell import Shell
    from toolyard.core.tool import OutputRedactor
    from toolyard.process.child import Children
    from toolyard.process.environment import ParentEnvironment
    from toolyard.process.limits import Limits
    from toolyard.process.output import Captured


TIMEOUT = 120.0
OUTPUT_LIMIT = 1 << 20
MOST_JOBS = 64
LAST_OUTPUT = 5.0
"""How long a process substitution may take to print the rest of its output."""
INTERRUPT_PATIENCE = 5.0
"""How long a command's own trap may take after an interrupt that its caller asked for."""
ALIVE_FOR = 0.002
"""After a longer pause the shell may have ended without our knowing."""


class RunSettings(NamedTuple):
    """How one command is run."""

    timeout: float | None
    on_output: Callable[[str], None] | None
    interactive: bool
    background: bool
    limits: Limits | None
    redactor: OutputRedactor | None


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
        self._lock = asyncio.Lock()
        self._supervisor = ShellSupervisor(
            cwd=os.path.abspath(cwd), env=env, limits=self._limits, tty=tty, children=children, parent=parent
        )
        self._jobs = JobList(self._supervisor, self._lock, max_jobs)
        self._spills = 0
        self._name = secrets.token_hex(4)
        self._alive_until = 0.0
        self._cancelled = NO_OUTPUT

    async def __aenter__(self) -> BashSession:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def pid(self) -> int | None:
        """The process id of the shell, while there is one."""
        shell = self._supervisor.current
        return shell.process.pid if shell and shell.process.exit_status is None else None

    @property
    def cwd(self) -> str:
        """The working directory after the last command."""
        return self._supervisor.cwd

    @property
    def children(self) -> Children | None:
        """Among whose children it runs, unless that was left to it."""
        return self._supervisor.children

    @property
    def jobs(self) -> dict[str, Job]:
        """The commands that were left running, by id, until they have ended and been read."""
        return self._jobs.by_id

    def shell_of(self, job: str | None = None) -> Shell | None:
        """The shell of a job, or without one of a command that waits for input; None when there is no such."""
        if job is not None:
            return self.jobs[job].shell if job in self.jobs else None
        shell = self._supervisor.current
        return shell if shell and shell.waiting else None

    async def start(self) -> None:
        """Start the shell now; otherwise the first command does."""
        async with self._lock:
            await self._supervisor.ready()

    async def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        on_output: Callable[[str], None] | None = None,
        interactive: bool = False,
        background: bool = False,
        limits: Limits | None = None,
        redactor: OutputRedactor | None = None,
        within: Children | None = None,
        carrying: CarriedState | None = None,
    ) -> Reply:
        """Run a command to its end, its time limit, or the moment it asks for input.

        Its `limits` replace those of the session where they set something, and are never wider. With `within` it runs
        in a shell of its own among those children, which goes on with the state that is given, or else with that of
        the session as it is now. Folder, variables and options come back; from those who reach less far, only the
        folder and plain variables that nobody obeys.

        What it prints is kept without the secrets that a `redactor` knows, also if it comes in several replies, or goes
        on as a job.
        """
        if reason := why_not_runnable(command):
            raise ShellError(reason)
        async with self._lock:
            await self._supervisor.wait_recovered()
            if (shell := self._supervisor.current) and shell.waiting:
                raise ShellError("a command waits for input: answer it, or interrupt it, before the next")
            how = RunSettings(timeout, on_output, interactive, background, limits, redactor)
            if within is not None and within is not self._supervisor.children:
                return await self._run_away(command, how, within, carrying)
            return await self._run_here(command, how)

    async def state(self) -> CarriedState | None:
        """What a command elsewhere would go on with; None while a command waits for input."""
        async with self._lock:
            await self._supervisor.wait_recovered()
            shell = await self._supervisor.ready()
            return None if shell.waiting else await shell.tell_state()

    async def move(self, children: Children, *, unseen: bool = False) -> None:
        """Go on among other children, with folder, variables and options; what runs goes on where it is.

        `unseen` means that nobody has looked at the variables, so that programs get none that changed.
        """
        async with self._lock:
            await self._supervisor.wait_recovered()
            if (shell := self._supervisor.current) and shell.waiting:
                raise ShellError("a command waits for input: answer it, or interrupt it, before the next")
            if children is not self._supervisor.children:
                if self._supervisor.holds_state:
                    await self._supervisor.ready()  # what it holds is code, which is for a shell here only
                keep = self._jobs.needs(self._supervisor.current)
                await self._supervisor.move(children, keep=keep, unseen=unseen)

    async def give_back(self) -> bool:
        """End a shell that has nothing to do; the next command gets one that goes on with its state, and is told so.

        False when there is none, or when something would be lost: a job, a process, an open file, an EXIT trap.
        """
        if self._lock.locked():
            return False
        async with self._lock:
            await self._supervisor.wait_recovered()
            shell = self._supervisor.current
            if shell is None or shell.waiting or any(job.running for job in self.jobs.values()):
                return False
            return await self._supervisor.give_back()

    async def _run_away(self, command: str, how: RunSettings, within: Children, carrying: CarriedState | None) -> Reply:
        """Run it in a shell elsewhere, and come back unless it still waits for something."""
        shell = await self._supervisor.ready()
        await self._supervisor.go_away(within, carrying or await shell.tell_state(), command)
        return await self._and_back(self._run_here(command, how))

    async def _and_back(self, command: Coroutine[None, None, Reply]) -> Reply:
        """The reply of a command that may run elsewhere, after coming back from there, unless it waits for input.

        However the call ends, the next command does not run there.
        """
        try:
            return await self._back_with(await command)
        except asyncio.CancelledError:
            self._supervisor.recover_by(self._come_back_after(self._supervisor.take_recovery()))
            raise
        except BaseException:
            await self._come_back()
            raise

    async def _back_with(self, reply: Reply) -> Reply:
        if not self._supervisor.is_away or reply.waiting_for_input:
            return reply
        self._supervisor.recover_by(self._come_back())
        await self._supervisor.wait_recovered()
        if (here := self._supervisor.current) is not None and reply.exit_code is not None:
            here.status = reply.exit_code
        if reply.ended and not reply.timed_out:  # the shell that it may have ended was its own
            reply = replace(reply, ended=False, note=None)
        if left := self._supervisor.take_left_away():
            said = f"This ran in a shell that may less than the session's; there stays: {listed(list(left))}."
            reply = replace(reply, note=f"{reply.note} {said}" if reply.note else said)
        return reply

    async def _come_back(self) -> None:
        if self._supervisor.is_away:
            await self._supervisor.come_back(keep=self._jobs.needs(self._supervisor.current))

    async def _come_back_after(self, recovery: asyncio.Task[None] | None) -> None:
        if recovery:
            await asyncio.wait([recovery])
        await self._come_back()

    async def _run_here(self, command: str, how: RunSettings) -> Reply:
        if not (how.interactive or self._tty) and (program := full_screen_program(command)):
            return self._without_screen(program)
        if how.background:
            return await self._start_job(command, how)
        transcript = self._transcript(how)
        shell, running = await self._submit(command, transcript, interactive=how.interactive, limits=how.limits)
        if shell.wait_briefly(running) and running.channel and not running.channel.drain(transcript):
            return self._reply(running, shell) if shell.trouble is None else await self._replace(shell, running)
        reply = await self._attend(shell, running, self._wait_for_change(shell, running, self._time_for(how.timeout)))
        return await self._run_here(command, how) if reply.ended and shell.has_missed(running) else reply

    def _without_screen(self, program: str) -> Reply:
        """What such a program has to say where nobody sits before it; it would wait until its time is over."""
        said = f"{program}: {NEEDS_A_TERMINAL}\n"
        return Reply(output=said, exit_code=1, cwd=self.cwd, duration=0.0, printed_bytes=len(said))

    async def write(self, text: str, *, timeout: float | None = None) -> Reply:
        """Answer a command that waits for input, and wait for it again."""
        async with self._lock:
            shell, command = self._waiting_command()
            shell.waiting = None
            shell.terminal.write(text.encode("utf-8", "surrogateescape"))
            answered = self._wait_for_change(shell, command, self._time_for(timeout))
            return await self._and_back(self._attend(shell, command, answered))

    async def interrupt(self) -> Reply | None:
        """End a command as Ctrl-C does: what it printed is kept, and a trap of its own on SIGINT decides its status.

        The reply of one that runs goes to whoever runs it; only that of one that waits for input is given here.
        One that has just come to its own end is left at that.
        """
        shell = self._supervisor.current
        if shell and shell.waiting:
            return await self.end_waiting()
        if shell and shell.current:
            shell.current.notify("interrupted")
        return None

    async def end_waiting(self) -> Reply:
        """End a command that waits for input."""
        async with self._lock:
            shell, command = self._waiting_command()
            shell.waiting = None
            return await self._and_back(self._attend(shell, command, self._end(shell, command)))

    async def _end(self, shell: Shell, command: Command) -> Reply:
        await self._supervisor.end_command(shell, command)
        return await self._conclude(shell, command)

    async def settled(self) -> None:
        """Wait until a command whose call was cancelled has been ended."""
        await self._supervisor.settled()

    def take_cancelled(self) -> Captured:
        """What the last command printed whose call was cancelled, once it has been ended."""
        taken, self._cancelled = self._cancelled, NO_OUTPUT
        return taken

    async def restart(self) -> None:
        """Start a fresh shell with nothing of the old one: no state, no processes, no jobs."""
        async with self._lock:
            await self._drop_everything()
            self._supervisor.forget()
            await self._supervisor.ready()

    async def wait_any(self, timeout: float | None = None) -> Job | None:
        """Wait until one of the running jobs has ended."""
        return await self._jobs.wait_any(timeout)

    async def aclose(self) -> None:
        """End the shell and everything it started; nothing is left when this returns."""
        self._supervisor.is_closed = True
        await self._drop_everything()
        await self._supervisor.aclose()

    async def _drop_everything(self) -> None:
        self._supervisor.cancel_recovery()
        await self._jobs.aclose()
        await self._supervisor.end_all()

    async def _submit(
        self, text: str, transcript: Transcript, *, interactive: bool, limits: Limits | None
    ) -> tuple[Shell, Command]:
        """Send it to the shell, or to a fresh one when that turns out to be gone."""
        stdin = TERMINAL if interactive or self._tty else NOTHING_TO_READ
        snapshot = interactive or self._on_timeout == "background"

        def send(shell: Shell) -> Command:
            shell.limit(self._limits_of(limits))
            return shell.submit(text, transcript, stdin=stdin, snapshot=snapshot)

        shell = self._supervisor.current
        if shell is None or shell.process.exit_status is not None or time.monotonic() > self._alive_until:
            shell = await self._supervisor.ready()
        try:
            command = send(shell)
        except ShellGone:
            shell = await self._supervisor.ready(shell)
            command = send(shell)
        command.notice = self._supervisor.take_notice()
        return shell, command

    async def _start_job(self, text: str, how: RunSettings) -> Reply:
        self._jobs.check_room()
        shell = await (self._supervisor.start_beside() if how.interactive else self._supervisor.ready())
        shell.limit(self._limits_of(how.limits))
        transcript = self._transcript(how._replace(on_output=None))
        if how.interactive:
            return self._jobs.start_at_terminal(shell, shell.submit(text, transcript, stdin=TERMINAL))
        return await self._jobs.start(shell, text, transcript, within=self._timeout)

    def _limits_of(self, own: Limits | None) -> Limits:
        return self._limits.replaced_by(own) if own else self._limits

    def _transcript(self, how: RunSettings) -> Transcript:
        spill_to = None
        if self._spill_dir:
            self._spills += 1
            spill_to = f"{self._spill_dir}/output-{self._name}-{self._spills}.txt"
        return Transcript(
            self._output_limit,
            listener=how.on_output,
            spill_to=spill_to,
            stop_at=self._limits_of(how.limits).output_bytes,
            redactor=how.redactor,
        )

    def _time_for(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    async def _attend(self, shell: Shell, command: Command, change: Coroutine[None, None, Reply]) -> Reply:
        """Wait for what happens to a command; when the call is cancelled, end it in the background."""
        try:
            return await change
        except asyncio.CancelledError:
            self._supervisor.recover_by(self._recover(shell, command))
            raise

    async def _wait_for_change(self, shell: Shell, command: Command, timeout: float, *, again: bool = False) -> Reply:
        command.transcript.on_too_much = lambda: command.notify("too_much")
        shell.follow(command)
        watch = InputWatch(shell, command)
        try:
            change = command.record is None and await command.next_change(within=timeout)
        finally:
            watch.stop()
        match change:
            case "waiting":
                shell.waiting = command
                shell.terminal.drain()
                if command.channel:
                    command.channel.drain(command.transcript)
                return reply_before_end(command, shell, command.transcript.take(), waiting_for_input=True)
            case "timeout" if self._on_timeout == "background":
                return self._jobs.keep_running(shell, command)
            case "timeout":
                await self._supervisor.end_command(shell, command)
                return await self._conclude(shell, command, timed_out=True)
            case "lost" if again:
                return await self._replace(shell, command, "bash has stopped running what it reads")
            case "lost":
                shell.find_again(command)
                return await self._wait_for_change(shell, command, timeout, again=True)
            case "interrupted":
                await self._supervisor.end_command(shell, command, patience=INTERRUPT_PATIENCE)
                return await self._conclude(shell, command)
            case "too_much":
                await self._supervisor.end_command(shell, command)
                note = f"The output limit of {command.transcript.stop_at} bytes was reached, so the command was ended."
                return await self._conclude(shell, command, note=note)
            case _:
                return await self._conclude(shell, command)

    async def _conclude(
        self, shell: Shell, command: Command, *, timed_out: bool = False, note: str | None = None
    ) -> Reply:
        """Collect what a command printed that is over, or whose shell has ended."""
        if shell.trouble:
            return await self._replace(shell, command)
        channel, transcript = command.channel, command.transcript
        if self._tty or "/dev/tty" in command.text:
            shell.terminal.drain()
        is_held = channel is not None and channel.drain(transcript)
        if is_held and ">(" in command.text and isinstance(channel, OutputChannel):
            rest = partial(processes_of, shell, command)
            is_held = not await channel.wait_for_end(transcript, rest, within=LAST_OUTPUT)
        reply = self._reply(command, shell, timed_out=timed_out, note=note, goes_on=is_held)
        if is_held:
            self._jobs.keep_rest(shell, command)
        return reply

    async def _replace(self, shell: Shell, command: Command, why: str | None = None) -> Reply:
        """Discard a shell that lives but can run nothing more, and has not run this command, or not all of it."""
        await self._supervisor.discard(shell)
        what = f"What became of the command is not known: {why}" if why else f"The command was not run: {shell.trouble}"
        return self._reply(command, shell, note=f"{what}. The next gets a fresh shell.")

    def _reply(
        self,
        command: Command,
        shell: Shell,
        *,
        timed_out: bool = False,
        note: str | None = None,
        goes_on: bool = False,
    ) -> Reply:
        self._alive_until = command.ended + ALIVE_FOR
        return reply_at_end(command, shell, timed_out=timed_out, note=note, goes_on=goes_on)

    def _waiting_command(self) -> tuple[Shell, Command]:
        shell = self._supervisor.current
        if shell is None or shell.waiting is None:
            raise ShellError("no command waits for input")
        return shell, shell.waiting

    async def _recover(self, shell: Shell, command: Command) -> None:
        """After a cancellation, end the command."""
        await self._supervisor.end_command(shell, command)
        is_held = command.channel is not None and command.channel.drain(command.transcript)
        self._cancelled = command.transcript.finish(goes_on=is_held)
        if is_held:
            self._jobs.keep_rest(shell, command)
