"""Commands left running beside the session's foreground: what they print, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

from toolyard.bash.session.channels import OutputChannel
from toolyard.bash.session.control_channel import ShellGone
from toolyard.bash.session.interrupt import end_processes, processes_of
from toolyard.bash.session.reply import reply_before_end
from toolyard.errors import ShellError
from toolyard.process.output import NO_OUTPUT
from toolyard.process.process_tree import signal_all

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from toolyard.bash.session.command import Command
    from toolyard.bash.session.reply import Reply
    from toolyard.bash.session.shell import Shell
    from toolyard.bash.session.supervisor import ShellSupervisor
    from toolyard.process.output import Captured, Transcript


START_PATIENCE = 5.0
STOP_PATIENCE = 1.0
WRITE_AGAIN_AFTER = 0.01
ANSWER_PATIENCE = 5.0
"""How long to wait for a busy shell to tell how a job ended."""
LAST_RECORD = 0.02
"""How long a job's own record of its end may take after its process is gone."""


class Job:
    """One command that runs beside the session's foreground."""

    def __init__(self, command: Command, shell: Shell) -> None:
        self.id = ""
        """Empty until the session has it in its list."""
        self.command = command.text
        self.shell = shell
        self.pid = 0
        """Its process id; zero for what a foreground command left behind."""
        self.exit_code: int | None = None
        """None while it runs, and where bash does not tell."""
        self._command = command
        self._ended = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether it still runs; for what a foreground command left, whether that still holds the command's output."""
        return not self._ended.is_set()

    @property
    def unread(self) -> bool:
        """Whether it printed something since the last read."""
        return self._command.transcript.unread

    def read(self) -> str:
        """What it printed since the last time."""
        return self.take().text

    def take(self) -> Captured:
        """The same, with what was left out of it, and where the whole of it is kept."""
        self._catch_up()
        return self._command.transcript.take()

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end; tell whether it has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._ended.wait()
        return not self.running

    async def write(self, text: str) -> None:
        """Type something at its terminal."""
        if not self._command.has_terminal or not self.running:
            raise ShellError(f"job {self.id} reads nothing: start a command with `interactive` to be able to answer it")
        data = self.shell.terminal.write(text.encode("utf-8", "surrogateescape"))
        while data:
            await asyncio.sleep(WRITE_AGAIN_AFTER)
            data = self.shell.terminal.write(data)

    async def stop(self) -> None:
        """End it with all its processes, and with its shell if that is its own."""
        if self.pid == self.shell.process.pid:
            self.shell.process.kill(grace=STOP_PATIENCE)
        signal_all(processes_of(self.shell, self._command), signal.SIGTERM)
        await self.wait(STOP_PATIENCE)
        await end_processes(self.shell, self._command)
        await self.wait(STOP_PATIENCE)

    def close(self) -> None:
        self.finish(None)
        if self._command.channel:
            self._command.channel.close()

    def _catch_up(self) -> None:
        """Take what was printed by now, without waiting for the event loop to report it."""
        channel, transcript = self._command.channel, self._command.transcript
        is_held = isinstance(channel, OutputChannel) and channel.catch_up(transcript)
        if not (self.running or is_held):  # a process that it left behind may print the rest of a secret
            transcript.release()

    def finish(self, exit_code: int | None) -> None:
        """Note its end, and its exit code unless another is known already."""
        if self.exit_code is None:
            self.exit_code = exit_code
        self._ended.set()
        self._catch_up()


class JobList:
    """The jobs of a session by id, until they have ended and been read."""

    def __init__(self, supervisor: ShellSupervisor, lock: asyncio.Lock, most: int) -> None:
        self.by_id: dict[str, Job] = {}
        self._supervisor = supervisor
        self._lock = lock
        self._most = most
        self._last_id = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, shell: Shell, text: str, transcript: Transcript, *, within: float) -> Reply:
        # Records are read by the event loop, so that none can come before `job` is assigned.
        command = shell.start_job(text, transcript, on_end=lambda record: job.finish(record.status))
        job = Job(command, shell)
        try:
            await self._begin(job, command, within)
        except BaseException:
            shell.forget_job(command)
            job.close()
            self._supervisor.recover_by(end_dropped(shell, command))
            raise
        command.notice = self._supervisor.take_notice()
        return reply_before_end(command, shell, NO_OUTPUT, job=job.id)

    def start_at_terminal(self, shell: Shell, command: Command) -> Reply:
        """Make a job of a command in a shell of its own, which ends with it; what it reads is typed at that shell."""
        job = self._add(Job(command, shell), pid=shell.process.pid)
        shell.follow(command)
        self._in_background(self._attend(job, command, leave=True))
        command.notice = self._supervisor.take_notice()
        return reply_before_end(command, shell, NO_OUTPUT, job=job.id)

    def needs(self, shell: Shell | None) -> bool:
        """Whether the end of a running job is told by that shell."""
        return any(job.running and job.pid and job.shell is shell for job in self.by_id.values())

    def check_room(self) -> None:
        if sum(job.running for job in self.by_id.values()) >= self._most:
            raise ShellError(f"{self._most} jobs run already, and that is the most: stop one, or wait for one")

    def keep_rest(self, shell: Shell, command: Command) -> None:
        """Make a job of the processes that still hold the output of a command that is over."""
        channel = shell.keep_channel(command)
        if channel is None:
            return
        command.transcript.forget()
        job = self._add(Job(command, shell))

        def ended() -> bool:
            job.finish(None)
            channel.close()
            self._forget_old()
            return True

        channel.follow(command.transcript, ended)
        self._forget_old()

    def keep_running(self, shell: Shell, command: Command) -> Reply:
        """Make a job of a command past its time, together with its shell; the session gets a fresh one."""
        job = self._add(Job(command, shell), pid=shell.process.pid)
        printed = command.transcript.take()
        self._supervisor.leave_behind(shell)
        self._in_background(self._attend(job, command))
        return reply_before_end(command, shell, printed, timed_out=True, job=job.id)

    async def wait_any(self, timeout: float | None = None) -> Job | None:
        running = [job for job in self.by_id.values() if job.running]
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
        """Close all jobs; their processes end with the shells."""
        for job in self.by_id.values():
            job.close()
        self.by_id.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, job: Job, command: Command, within: float) -> None:
        """Wait until the shell has started a job, and add it."""
        if command.record is None and await command.next_change(within=within) != "done":
            await self._supervisor.end_command(job.shell, command)
            raise ShellError("the shell did not start the job")
        self._add(job, pid=command.record.status if command.record else 0)
        if isinstance(command.channel, OutputChannel):
            command.channel.follow(command.transcript, lambda: not job.running)
        watch_process(job.shell.process.pid_here(job.pid), lambda: self._on_process_end(job))
        self._forget_old()

    def _add(self, job: Job, *, pid: int = 0) -> Job:
        self._last_id += 1
        job.id = str(self._last_id)
        job.pid = pid
        self.by_id[job.id] = job
        return job

    def _forget_old(self) -> None:
        """Drop ended jobs with nothing left to read, and the oldest of too many other ended ones."""
        for id, job in list(self.by_id.items()):
            if not job.running and job.pid == 0 and not job.unread:
                del self.by_id[id]
        ended = [id for id, job in self.by_id.items() if not job.running]
        for id in ended[: max(0, len(ended) - self._most)]:
            self.by_id.pop(id).close()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_process_end(self, job: Job) -> None:
        """Ask the shell how a job ended, unless its own record has told."""
        if job.running and not self._supervisor.is_closed:
            self._in_background(self._ask_how_it_ended(job))

    async def _ask_how_it_ended(self, job: Job) -> None:
        """A job that ended by `exit` or a signal sends no record; the shell knows its status, once it is free."""
        await asyncio.sleep(LAST_RECORD)
        if not job.running:
            return
        status = None
        try:
            with contextlib.suppress(TimeoutError, ShellError, ShellGone):
                async with asyncio.timeout(ANSWER_PATIENCE), self._lock:
                    await self._supervisor.wait_recovered()  # a shell that gives something up would skip the question
                    if self._can_be_asked(job.shell):
                        status = await job.shell.ask_status(job.pid)
        finally:
            job.finish(status)

    def _can_be_asked(self, shell: Shell) -> bool:
        """Whether a shell has nothing else to do: the session's own, or one that ran a command elsewhere."""
        if shell is self._supervisor.current:
            return not shell.waiting
        return shell.process.exit_status is None and shell.current is None

    async def _attend(self, job: Job, command: Command, *, leave: bool = False) -> None:
        while command.record is None and await command.next_change() not in ("done", "ended"):
            pass
        job.shell.terminal.drain()
        if command.channel:
            command.channel.drain(command.transcript)
        if leave:
            job.shell.leave()
        job.finish(job.shell.status)


async def end_dropped(shell: Shell, command: Command) -> None:
    """End what may have begun already of a job whose start failed or was cancelled."""
    with contextlib.suppress(ShellError):
        if command.record is None:
            await command.next_change(within=START_PATIENCE)
    await end_processes(shell, command)


def watch_process(pid: int, on_end: Callable[[], None]) -> None:
    """Call `on_end` at the end of a process that is not our child."""
    loop = asyncio.get_running_loop()
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        loop.call_soon(on_end)
        return

    def ended() -> None:
        loop.remove_reader(handle)
        os.close(handle)
        on_end()

    loop.add_reader(handle, ended)
