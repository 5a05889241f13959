"""Commands left running: what they print, how they end."""

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
    from toolyard.bash.session.restarts import Succession
    from toolyard.bash.session.session import Turns
    from toolyard.bash.session.shell import Bash
    from toolyard.process.output import Transcript


STOP_PATIENCE = 1.0
WRITE_AGAIN_AFTER = 0.01


class Job:
    """One command that runs beside the session's foreground."""

    def __init__(self, command: Command, bash: Bash) -> None:
        self.id = ""
        """By which the session knows it, once it is in its list."""
        self.command = command.text
        self.bash = bash
        self.pid = 0
        """Its process id; zero for what a foreground command left behind."""
        self.exit_code: int | None = None
        """None while it runs, and where bash does not tell."""
        self._command = command
        self._ended = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether it still runs; of what a foreground command left, whether it still holds that command's output."""
        return not self._ended.is_set()

    @property
    def unread(self) -> bool:
        """Whether it printed something since the last read."""
        return self._command.transcript.unread

    def read(self) -> str:
        """What it printed since the last time."""
        self._catch_up()
        return self._command.transcript.take().text

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end; tell whether it has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._ended.wait()
        return not self.running

    async def write(self, text: str) -> None:
        """Give it something to read."""
        if self._command.input is None or not self.running:
            raise ShellError(f"job {self.id} reads nothing: start a command with `interactive` to be able to answer it")
        data = text.encode("utf-8", "surrogateescape")
        while data:
            try:
                data = data[os.write(self._command.input, data) :]
            except BlockingIOError:
                await asyncio.sleep(WRITE_AGAIN_AFTER)

    async def stop(self) -> None:
        """End it with all its processes."""
        signal_all(processes_of(self.bash, self._command), signal.SIGTERM)
        await self.wait(STOP_PATIENCE)
        await end_processes(self.bash, self._command)
        await self.wait(STOP_PATIENCE)

    def close(self) -> None:
        """Let go of its channels."""
        self.finish(None)
        if self._command.channel:
            self._command.channel.close()
        if self._command.input is not None:
            os.close(self._command.input)
            self._command.input = None

    def _catch_up(self) -> None:
        """What was printed before we are asked has been printed, whether we have heard of it or not."""
        channel = self._command.channel
        if isinstance(channel, OutputChannel):
            channel.catch_up(self._command.transcript)

    def finish(self, exit_code: int | None) -> None:
        """It has ended."""
        self._catch_up()
        if self.exit_code is None:
            self.exit_code = exit_code
        self._ended.set()


def watch_process(pid: int, on_end: Callable[[], None]) -> None:
    """Hear of the end of a process that is not our child."""
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


START_PATIENCE = 5.0
ANSWER_PATIENCE = 5.0
"""How long a busy shell is waited for to tell how a job ended."""
LAST_WORD = 0.02
"""How long a job's own word of its end may take after its process is gone."""


class JobList:
    """What was left running, by id, until it has ended and been read."""

    def __init__(self, shells: Succession, turns: Turns, most: int) -> None:
        self.by_id: dict[str, Job] = {}
        self._shells = shells
        self._turns = turns
        self._most = most
        self._last_id = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, bash: Bash, text: str, transcript: Transcript, *, interactive: bool, within: float) -> Reply:
        """Start a command beside the shell."""
        # Records are heard between two turns of the loop, so that none can come before there is a job.
        command = bash.start_job(
            text, transcript, interactive=interactive, on_end=lambda record: job.finish(record.status)
        )
        job = Job(command, bash)
        try:
            await self._begin(job, command, within)
        except BaseException:
            bash.forget_job(command)
            job.close()
            self._shells.recover_by(end_dropped(bash, command))
            raise
        command.news = self._shells.take_news()
        return reply_before_end(command, bash, NO_OUTPUT, job=job.id)

    def check_room(self) -> None:
        """Refuse one more than there may be."""
        if sum(job.running for job in self.by_id.values()) >= self._most:
            raise ShellError(f"{self._most} jobs run already, and that is the most: stop one, or wait for one")

    def keep_rest(self, bash: Bash, command: Command) -> None:
        """Something of a command that is over still holds its output: what it prints from now on is its own."""
        channel = bash.keep_channel(command)
        if channel is None:
            return
        command.transcript.forget()
        job = self._add(Job(command, bash))

        def ended() -> bool:
            job.finish(None)
            channel.close()
            self._forget_old()
            return True

        channel.follow(command.transcript, ended)
        self._forget_old()

    def keep_running(self, bash: Bash, command: Command) -> Reply:
        """Past its time a command goes on as a job, shell and all; a fresh shell takes over the state before it."""
        job = self._add(Job(command, bash), pid=bash.process.pid)
        printed = command.transcript.take()
        self._shells.leave_behind(bash)
        self._in_background(self._attend(job, command))
        return reply_before_end(command, bash, printed, timed_out=True, job=job.id)

    async def wait_any(self, timeout: float | None = None) -> Job | None:
        """Wait until one of the running jobs has ended."""
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
        """Let go of all; whoever ends the shells ends them."""
        for job in self.by_id.values():
            job.close()
        self.by_id.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, job: Job, command: Command, within: float) -> None:
        """See a job that a shell was told to start become one."""
        if command.record is None and await command.next_change(within=within) != "done":
            await self._shells.end_command(job.bash, command)
            raise ShellError("the shell did not start the job")
        self._add(job, pid=command.record.status if command.record else 0)
        if isinstance(command.channel, OutputChannel):
            command.channel.follow(command.transcript, lambda: not job.running)
        watch_process(job.bash.process.pid_here(job.pid), lambda: self._on_process_end(job))
        self._forget_old()

    def _add(self, job: Job, *, pid: int = 0) -> Job:
        self._last_id += 1
        job.id = str(self._last_id)
        job.pid = pid
        self.by_id[job.id] = job
        return job

    def _forget_old(self) -> None:
        """Drop what has ended with nothing left to read, and of the others that have ended the oldest."""
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
        """Its own word of its end comes a moment before; without it, the shell is asked how it ended."""
        if job.running and not self._shells.is_closed:
            self._in_background(self._ask_how_it_ended(job))

    async def _ask_how_it_ended(self, job: Job) -> None:
        """A job that left its shell by `exit` or a signal says nothing itself; the shell knows, once it is free."""
        await asyncio.sleep(LAST_WORD)
        if not job.running:
            return
        status = None
        try:
            with contextlib.suppress(TimeoutError, ShellError, ShellGone):
                async with asyncio.timeout(ANSWER_PATIENCE), self._turns:
                    if self._shells.current is job.bash and not job.bash.waiting:
                        status = await job.bash.ask_status(job.pid)
        finally:
            job.finish(status)

    async def _attend(self, job: Job, command: Command) -> None:
        while await command.next_change() not in ("done", "ended"):
            pass
        if command.channel:
            command.channel.drain(command.transcript)
        job.finish(job.bash.status)


async def end_dropped(bash: Bash, command: Command) -> None:
    """End what may have begun already of a job that nobody wants any more."""
    with contextlib.suppress(ShellError):
        if command.record is None:
            await command.next_change(within=START_PATIENCE)
    await end_processes(bash, command)
