"""Commands left running: what they print, how they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

from toolyard.errors import ShellError
from toolyard.process.process_tree import signal_all
from toolyard.shell.channels import OutputChannel
from toolyard.shell.ending import end_processes, processes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.shell.bash import Bash
    from toolyard.shell.command import Command

__all__ = ["Job", "watch_process"]

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
