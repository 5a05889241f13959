"""A bash that outlives its commands: one shell, its state kept from call to call, whatever the calls do to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.core.tool import Truncation  # noqa: TC001 - the struct's fields are looked at while it is made
from toolyard.errors import ShellError
from toolyard.process.child import read_wait_status
from toolyard.process.environment import NON_INTERACTIVE, ParentEnvironment, as_bytes
from toolyard.process.limits import NO_LIMITS
from toolyard.shell.bash import NOTHING_TO_READ, TERMINAL, Bash, BashSetup, ShellGone
from toolyard.shell.channels import OutputChannel, Transcript
from toolyard.shell.ending import bring_back, end_processes
from toolyard.shell.jobs import Job, watch_process
from toolyard.shell.keepers import borrow_keeper, return_keeper
from toolyard.shell.waiting import waits_for_terminal
from toolyard.shell.wire import is_builtin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from toolyard.process.child import Children
    from toolyard.process.limits import Limits
    from toolyard.shell.bash import Command
    from toolyard.shell.wire import Record

__all__ = ["BashSession", "Reply", "why_not"]

TIMEOUT = 120.0
OUTPUT_LIMIT = 1 << 20
MOST_JOBS = 64
LETTING_GO = 0.1
"""How long what runs in a process substitution may take to print its last."""
LOOKS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""How long to wait between looks at what a command waits for; the last for ever."""
CLOSE_GRACE = 0.2
SWIFT_OUTPUT = 1 << 16
"""More than a builtin that is run swiftly can print."""
START_PATIENCE = 5.0
ANSWER_PATIENCE = 5.0
"""How long a busy shell is waited for to tell how a job ended."""
LOOK_AFTER = 0.002
"""After a pause of this length the shell's end may have come without our hearing of it."""
PARENT = ParentEnvironment()
OUR_OWN = frozenset({
    b"COLUMNS", b"HISTFILE", b"IGNOREEOF", b"LINES", b"MAIL", b"MAILCHECK", b"MAILPATH", b"PROMPT_COMMAND", b"PS0",
    b"PS1", b"PS2", b"PS4", b"TMOUT",
})  # fmt: skip
"""Variables that mean something only to a shell with a person before it, or could read what we tell it (PS4, which
root's bash takes from nobody)."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one command."""

    output: str
    exit_code: int | None
    """None while it still runs."""
    cwd: str
    duration: float
    timed_out: bool = False
    restarted: bool = False
    """Whether it ran in a fresh shell because the one before had ended."""
    truncated: Truncation | None = None
    waiting_for_input: bool = False
    ended: bool = False
    """Whether it ended its shell."""
    note: str | None = None
    job: str | None = None


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
        self._cwd = os.path.abspath(cwd)
        self._env = env
        self._limits = limits or NO_LIMITS
        self._tty = tty
        self._timeout = timeout
        self._output_limit = output_limit
        self._spill_dir = Path(spill_dir) if spill_dir else None
        self._max_jobs = max_jobs
        self._on_timeout = on_timeout
        self._children = children
        self._parent = parent or PARENT
        self._borrowed: Children | None = None
        self._lock = Turns()
        self._bash: Bash | None = None
        self._past: list[Bash] = []
        self._waiting: Command | None = None
        self._recovery: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_note: str | None = None
        self._next_state: bytes | None = None
        self._next_cwd: str | None = None
        self._spills = 0
        self._name = secrets.token_hex(4)
        self._look_after = 0.0
        self._job_numbers = 0
        self._closed = False
        self.jobs: dict[str, Job] = {}
        """What was left running, by id, until it has ended and been read."""

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
        return self._bash.pid if self._bash and self._bash.exit_status is None else None

    @property
    def cwd(self) -> str:
        """The working directory after the last command."""
        return self._bash.cwd if self._bash else self._next_cwd or self._cwd

    # --- what callers do

    async def start(self) -> None:
        """Start the shell now; otherwise the first command does."""
        async with self._lock:
            await self._ready()

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
        async with self._lock:
            if heard is not None and self._bash:
                running = self._bash.adopt(command, self._transcript(on_output), heard)
                return await self._attend(self._bash, running, timeout)
            if self._recovery:
                await self._recovered()
            if self._waiting:
                raise ShellError("a command waits for input: answer it, or interrupt it, before the next")
            if background:
                return await self._start_job(command, interactive=interactive, limits=limits)
            transcript = self._transcript(on_output, limits)
            stdin = TERMINAL if interactive or self._tty else NOTHING_TO_READ
            snapshot = interactive or self._on_timeout == "background"
            bash = self._bash
            try:
                if bash is None or bash.exit_status is not None or time.monotonic() > self._look_after:
                    bash = await self._ready()
                bash.limit(self._limits_of(limits))
                running = bash.submit(command, transcript, stdin=stdin, snapshot=snapshot)
            except ShellGone:
                bash = await self._ready(bash)
                bash.limit(self._limits_of(limits))
                running = bash.submit(command, transcript, stdin=stdin, snapshot=snapshot)
            running.news, self._next_note = self._next_note, None
            if bash.wait_briefly(running) and running.channel and not running.channel.drain(transcript):
                return self._reply(running, bash) if bash.trouble is None else await self._replace(bash, running)
            return await self._attend(bash, running, timeout)

    async def write(self, text: str, *, timeout: float | None = None) -> Reply:
        """Answer a command that waits for input, and wait for it again."""
        async with self._lock:
            bash, command = self._who_waits()
            self._waiting = None
            bash.type(text)
            return await self._attend(bash, command, timeout)

    async def interrupt(self) -> Reply:
        """End a command that waits for input."""
        async with self._lock:
            bash, command = self._who_waits()
            self._waiting = None
            await self._end(bash, command)
            return await self._conclude(bash, command)

    async def settled(self) -> None:
        """Wait until a command whose call was cancelled has been ended."""
        if self._recovery:
            await asyncio.wait([self._recovery])

    async def restart(self) -> None:
        """A fresh shell with nothing of the old one: no state, no processes, no jobs."""
        async with self._lock:
            await self._drop_everything()
            self._next_note = self._next_state = self._next_cwd = None
            await self._ready()

    async def wait_any(self, timeout: float | None = None) -> Job | None:
        """Wait until one of the running jobs has ended."""
        running = [job for job in self.jobs.values() if job.running]
        waits = {asyncio.ensure_future(job.wait()): job for job in running}
        if not waits:
            return None
        try:
            done, _ = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return waits[done.pop()] if done else None

    async def aclose(self) -> None:
        """End the shell and everything it started; nothing is left when this returns."""
        self._closed = True
        await self._drop_everything()
        if self._borrowed:
            children, self._borrowed = self._borrowed, None
            await return_keeper(children)

    # --- the shell

    async def _ready(self, gone: Bash | None = None) -> Bash:
        """The shell, a fresh one if there is none, or the one there was is gone."""
        if self._closed:
            raise ShellError("the session is closed")
        if gone:
            await gone.has_exited()
        elif self._bash:
            await asyncio.sleep(0)  # we may have been away for long: hear what became of it
        if self._bash and self._bash.exit_status is None:
            return self._bash
        if self._bash:
            self._retire(self._bash)
        try:
            self._bash = await self._start_bash(self._next_state)
        except ShellError:
            if self._next_state is None:
                raise
            self._bash = await self._start_bash(None)
            self._next_note = "The shell ended, and its state cannot be taken over; this is a fresh one."
        self._next_state = None
        return self._bash

    async def _start_bash(self, state: bytes | None) -> Bash:
        program = shutil.which("bash")
        if program is None:
            raise ShellError("there is no bash on the PATH; a session needs bash 4.4 or later")
        children = self._children or self._borrowed
        if children is None:
            children = self._borrowed = borrow_keeper()
        cwd = self._next_cwd or self._cwd
        if self._next_cwd and not os.path.isdir(cwd):  # noqa: ASYNC240 - a moment, once for each shell
            cwd = self._cwd
        env, extra = self._variables()
        setup = BashSetup(program=program, cwd=cwd, env=env, extra_env=extra, limits=self._limits, tty=self._tty)
        return await Bash.start(children.keeper, setup, state=state)

    def _variables(self) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """What the shell sees: the application's variables less credentials, or those it was given."""
        if self._env is None:
            given = self._parent.current()
        else:
            given = {as_bytes(name): as_bytes(value) for name, value in self._env.items()}
        given = {name: value for name, value in given.items() if name not in OUR_OWN}
        quiet = {as_bytes(name): as_bytes(value) for name, value in NON_INTERACTIVE.items()}
        return given, {name: value for name, value in quiet.items() if self._env is None or name not in given}

    def _retire(self, bash: Bash) -> None:
        """A shell that has ended: what it left running goes on, and the next shell begins where it was."""
        self._next_cwd = bash.cwd
        self._next_state = bash.state()
        code, number = read_wait_status(bash.exit_status or 0)
        how = f"was killed by signal {number}" if number else f"ended with status {code}"
        kept = (
            "variables, functions, aliases, options and directory were taken over"
            if self._next_state
            else "its state could not be taken over"
        )
        self._next_note = self._next_note or f"The shell {how}; this is a fresh one, {kept}."
        self._past = [*(past for past in self._past if not past.is_gone), bash]
        bash.close()
        self._bash = None

    async def _drop_everything(self) -> None:
        if self._recovery:
            self._recovery.cancel()
            self._recovery = None
        for job in self.jobs.values():
            job.close()
        self.jobs.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        shells = [*self._past, *([self._bash] if self._bash else [])]
        self._past, self._bash, self._waiting = [], None, None
        for bash in shells:
            bash.kill(grace=CLOSE_GRACE)
        for bash in shells:
            await bash.gone()
            bash.close()

    # --- one command

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
        bash = self._bash
        return (
            bash is not None
            and bash.is_swift
            and bash.exit_status is None
            and self._lock.is_free
            and self._waiting is None
            and self._recovery is None
            and self._next_note is None
            and self._on_timeout == "kill"
            and self._limits is NO_LIMITS
            and self._output_limit >= SWIFT_OUTPUT
        )

    def _swiftly(self, text: str) -> tuple[int | None, bytes | None]:
        """Run a builtin with no call in between; nothing at all when the shell has just gone."""
        try:
            return self._bash.run_swiftly(text) if self._bash else (None, None)
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
            if not self._closed:
                self._recovery = asyncio.ensure_future(self._recover(bash, command))
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
            self._waiting = command
            return self._waiting_reply(bash, command)
        if change == "timeout":
            if self._on_timeout == "background":
                return await self._leave_running(bash, command)
            await self._end(bash, command)
            return await self._conclude(bash, command, timed_out=True)
        if change == "too_much":
            await self._end(bash, command)
            note = f"The output limit of {command.transcript.stop_at} bytes was reached, so the command was ended."
            return await self._conclude(bash, command, note=note)
        return await self._conclude(bash, command)

    async def _end(self, bash: Bash, command: Command) -> None:
        """End a command; the shell with it, if it does not come back."""
        if not await bring_back(bash, command) and bash.exit_status is None:
            self._next_note = "The shell could not be brought back from its last command; this is a fresh one."
            bash.kill(grace=0)
            await bash.gone()

    async def _conclude(
        self, bash: Bash, command: Command, *, timed_out: bool = False, note: str | None = None
    ) -> Reply:
        """The command is over, or its shell is: collect what it printed."""
        if bash.trouble:
            return await self._replace(bash, command)
        channel, transcript = command.channel, command.transcript
        if self._tty or "/dev/tty" in command.text:
            bash.drain_terminal()
        if channel is None or not channel.drain(transcript):
            return self._reply(command, bash, timed_out=timed_out, note=note)
        if (
            ">(" in command.text
            and isinstance(channel, OutputChannel)
            and await channel.at_end(transcript, within=LETTING_GO)
        ):
            return self._reply(command, bash, timed_out=timed_out, note=note)
        reply = self._reply(command, bash, timed_out=timed_out, note=note)
        self._leave_job(bash, command)
        return reply

    async def _replace(self, bash: Bash, command: Command) -> Reply:
        """A shell that lives but can run nothing more: the command was not run."""
        bash.kill(grace=0)
        await bash.gone()
        note = f"The command was not run: {bash.trouble}. The next gets a fresh shell."
        reply = self._reply(command, bash, note=note)
        self._next_note = "The last shell could run no more commands; this is a fresh one."
        return reply

    def _reply(self, command: Command, bash: Bash, *, timed_out: bool = False, note: str | None = None) -> Reply:
        captured = command.transcript.finish()
        record = command.record
        self._look_after = command.ended + LOOK_AFTER
        restarted = command.news
        if record is None:
            command.ended = time.monotonic()
            if note is None and not timed_out:
                note = f"This ended the shell with status {bash.status}; the next command gets a fresh one."
        status = bash.status if record is None else record.status
        if bash.is_limited and (hit := bash.limits_hit(status, captured.text)):
            note = f"{hit} {note}" if note else hit
        return Reply(
            output=captured.text,
            exit_code=status,
            cwd=bash.cwd,
            duration=command.ended - command.started,
            timed_out=timed_out,
            restarted=restarted is not None,
            truncated=captured.truncated,
            ended=record is None,
            note=f"{restarted} {note}" if restarted and note else restarted or note,
        )

    def _waiting_reply(self, bash: Bash, command: Command) -> Reply:
        bash.drain_terminal()
        if command.channel:
            command.channel.drain(command.transcript)
        captured = command.transcript.take()
        restarted, command.news = command.news, None
        return Reply(
            output=captured.text,
            exit_code=None,
            cwd=bash.cwd,
            duration=time.monotonic() - command.started,
            restarted=restarted is not None,
            truncated=captured.truncated,
            waiting_for_input=True,
            note=restarted,
        )

    def _who_waits(self) -> tuple[Bash, Command]:
        if self._waiting is None or self._bash is None:
            raise ShellError("no command waits for input")
        return self._bash, self._waiting

    async def _recover(self, bash: Bash, command: Command) -> None:
        """After a cancellation: end the command and forget what it printed."""
        await self._end(bash, command)
        if command.channel and command.channel.drain(command.transcript):
            self._leave_job(bash, command)

    async def _recovered(self) -> None:
        recovery = self._recovery
        if recovery:
            await asyncio.shield(recovery)
            self._recovery = None

    # --- jobs

    async def _start_job(self, text: str, *, interactive: bool, limits: Limits | None) -> Reply:
        if sum(job.running for job in self.jobs.values()) >= self._max_jobs:
            raise ShellError(f"{self._max_jobs} jobs run already, and that is the most: stop one, or wait for one")
        bash = await self._ready()
        finished: list[Record] = []
        early: Callable[[Record], None] = finished.append
        holder: list[Job] = []

        def on_end(record: Record) -> None:
            if holder:
                holder[0].finish(record.status)
            else:
                early(record)

        transcript = self._transcript(None, limits)
        bash.limit(self._limits_of(limits))
        command = bash.start_job(text, transcript, interactive=interactive, on_end=on_end)
        try:
            await self._until_done(bash, command)
        except BaseException:
            bash.forget_job(on_end)
            self._drop(bash, command)
            raise
        pid = command.record.status if command.record else 0
        job = self._add_job(command, bash, pid=pid)
        holder.append(job)
        if isinstance(command.channel, OutputChannel):
            command.channel.follow(transcript, lambda: not job.running)
        for record in finished:
            job.finish(record.status)
        watch_process(bash.pid_here(pid), lambda: self._job_process_ended(job))
        self._forget_old_jobs()
        restarted, self._next_note = self._next_note, None
        return Reply(
            output="",
            exit_code=None,
            cwd=bash.cwd,
            duration=time.monotonic() - command.started,
            restarted=restarted is not None,
            note=restarted,
            job=job.id,
        )

    async def _until_done(self, bash: Bash, command: Command) -> None:
        if command.record is None and await command.next_change(within=self._timeout) != "done":
            await self._end(bash, command)
            raise ShellError("the shell did not start the job")

    def _drop(self, bash: Bash, command: Command) -> None:
        """Nobody wants a job any more that is just being started: let it go, and end what may have begun already."""
        if isinstance(command.channel, OutputChannel):
            command.channel.close()
        if command.input is not None:
            os.close(command.input)
            command.input = None
        if not self._closed:
            self._recovery = asyncio.ensure_future(self._end_dropped(bash, command))

    async def _end_dropped(self, bash: Bash, command: Command) -> None:
        with contextlib.suppress(ShellError):
            if command.record is None:
                await command.next_change(within=START_PATIENCE)
        await end_processes(bash, command)

    def _add_job(self, command: Command, bash: Bash, *, pid: int = 0) -> Job:
        self._job_numbers += 1
        job = Job(str(self._job_numbers), command, bash, pid=pid)
        self.jobs[job.id] = job
        return job

    def _job_process_ended(self, job: Job) -> None:
        """Its own word of its end comes a moment before; without it, the shell is asked how it ended."""
        if job.running and not self._closed:
            task = asyncio.ensure_future(self._ask_how_it_ended(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask_how_it_ended(self, job: Job) -> None:
        """A job that left its shell by `exit` or a signal says nothing itself; the shell knows, once it is free."""
        await asyncio.sleep(0.02)
        if not job.running:
            return
        status = None
        try:
            with contextlib.suppress(TimeoutError, ShellError, ShellGone):
                async with asyncio.timeout(ANSWER_PATIENCE), self._lock:
                    if self._bash is job.bash and not self._waiting:
                        status = await job.bash.ask_status(job.pid)
        finally:
            job.finish(status)

    def _leave_job(self, bash: Bash, command: Command) -> None:
        """Something of a command that is over still holds its output: what it prints from now on is its own."""
        channel = bash.keep_channel(command)
        if channel is None:
            return
        command.transcript.forget()
        job = self._add_job(command, bash)

        def ended() -> bool:
            job.finish(None)
            channel.close()
            self._forget_old_jobs()
            return True

        channel.follow(command.transcript, ended)
        self._forget_old_jobs()

    def _forget_old_jobs(self) -> None:
        """Drop what has ended with nothing left to read, and of the others that have ended the oldest."""
        for id, job in list(self.jobs.items()):
            if not job.running and job.pid == 0 and not job.unread:
                del self.jobs[id]
        ended = [id for id, job in self.jobs.items() if not job.running]
        for id in ended[: max(0, len(ended) - self._max_jobs)]:
            self.jobs.pop(id).close()

    async def _leave_running(self, bash: Bash, command: Command) -> Reply:
        """Past its time a command goes on as a job, shell and all; a fresh shell takes over the state before it."""
        state = bash.state()
        job = self._add_job(command, bash, pid=bash.pid)
        captured = command.transcript.take()
        self._past.append(bash)
        self._bash = None
        self._next_state, self._next_cwd = state, bash.cwd
        self._next_note = "The last command still runs as a job, in its own shell; this is a fresh one" + (
            " with the state from before it." if state else "."
        )
        task = asyncio.ensure_future(self._attend_job(bash, command, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return Reply(
            output=captured.text,
            exit_code=None,
            cwd=bash.cwd,
            duration=time.monotonic() - command.started,
            timed_out=True,
            truncated=captured.truncated,
            job=job.id,
        )

    async def _attend_job(self, bash: Bash, command: Command, job: Job) -> None:
        while await command.next_change() not in ("done", "ended"):
            pass
        if command.channel:
            command.channel.drain(command.transcript)
        job.finish(bash.status)


class Look:
    """Looks from time to time whether a command waits for somebody to type."""

    def __init__(self, bash: Bash, command: Command) -> None:
        self._bash = bash
        self._command = command
        self._loop = asyncio.get_running_loop()
        self._seen = False
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(LOOKS[0], self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer:
            self._timer.cancel()

    def _look(self) -> None:
        """Twice in a row is no accident."""
        waits = self._bash.exit_status is None and waits_for_terminal(self._bash.pid, self._bash.terminal_name)
        if waits and self._seen:
            self._command.tell("waiting")
            return
        self._turn = 0 if waits != self._seen else min(self._turn + 1, len(LOOKS) - 1)
        self._seen = waits
        self._timer = self._loop.call_later(LOOKS[self._turn], self._look)


def why_not(command: str) -> str | None:
    """Why bash could not even be given a command."""
    if "\x00" in command:
        return "a command cannot have a NUL character in it"
    if not command.isascii():
        try:
            command.encode("utf-8")
        except UnicodeEncodeError as error:
            return f"the command is not text: {error.reason} at {error.start}"
    return None
