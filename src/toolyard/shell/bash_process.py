"""The process of a bash, from its start until nothing that it started is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

import msgspec

from toolyard.errors import ProcessError, ShellError
from toolyard.process.child import read_wait_status
from toolyard.process.keeper_link import Home
from toolyard.process.process_tree import LINUX, pid_outside
from toolyard.shell.command_limits import CommandLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.process.keeper_link import KeeperLink, Spawned
    from toolyard.process.limits import Limits

__all__ = ["BashProcess", "BashSetup"]

START_PATIENCE = 20.0
OPTIONS = (b"--noprofile", b"--norc", b"--noediting", b"+o", b"history", b"-i")


class BashSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What every shell of a session starts with."""

    program: str
    cwd: str
    env: Mapping[bytes, bytes]
    extra_env: Mapping[bytes, bytes]
    limits: Limits
    tty: bool


class BashProcess:
    """Started by the keeper, which tells of its start and its end."""

    def __init__(self, setup: BashSetup, on_exit: Callable[[int], None]) -> None:
        """`on_exit` hears its exit code, as a shell counts."""
        self.pid = 0
        self.exit_status: int | None = None
        """Its wait status once it has ended."""
        self.first_mark = 0
        """What its processes are told from others by; zero where there is nothing of the kind."""
        self.limits = CommandLimits(setup.limits)
        self._setup = setup
        self._on_exit = on_exit
        self._has_own_pids = False
        self._has_spoken = False
        self._spawned: Spawned | None = None
        self._watching: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exited = asyncio.Event()

    def spawn(
        self, keeper: KeeperLink, fds: Mapping[int, int], *, terminal: str, folder: str, with_variables: bool
    ) -> None:
        """Ask the keeper for it."""
        limits = self.limits.make_group()
        home = Home(
            terminal=os.fsencode(terminal),
            folder=os.fsencode(folder),
            groups=[os.fsencode(group) for group in self.limits.folders],
            on_started=self._on_started,
            on_exited=self._on_exited,
        )
        self._spawned = keeper.spawn(
            [os.fsencode(self._setup.program), *OPTIONS],
            cwd=os.fsencode(self._setup.cwd),
            env=self._setup.env if with_variables else {},
            extra_env=self._setup.extra_env if with_variables else {},
            limits=limits.as_rlimits(),
            fds=fds,
            home=home,
        )
        self._has_own_pids = keeper.own_pids
        self._watching = asyncio.get_running_loop().create_task(self._watch(self._spawned))

    async def ready(self) -> None:
        """Wait until bash has spoken and the keeper has named it."""
        try:
            async with asyncio.timeout(START_PATIENCE):  # unlike wait_for it never loses a cancellation
                await self._started
        except TimeoutError:
            raise ShellError(f"{self._setup.program} does not answer") from None

    @property
    def is_starting(self) -> bool:
        """Whether it is still to be seen what becomes of it."""
        return not self._started.done()

    def has_spoken(self) -> None:
        """Bash has said its first word."""
        self._has_spoken = True
        self._begin()

    def refuse(self, reason: str) -> None:
        """It will not do, or it is not to be had."""
        if self.is_starting:
            self._started.set_exception(ShellError(f"{self._setup.program} {reason}"))

    def pid_here(self, pid: int) -> int:
        """The number of a child of its own, of which it told the number that it has where the shell is."""
        return pid_outside(pid, self.pid) if pid and self._has_own_pids else pid

    def kill(self, *, grace: float = 0.2) -> None:
        """End it and everything that it started; an interactive bash heeds no other signal to end."""
        if self.pid and self.exit_status is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGHUP)
        if self._spawned:
            self._spawned.kill(grace=grace)

    async def has_exited(self) -> None:
        """Wait for its own end, of which we may hear a moment later than of what follows from it."""
        await self._exited.wait()

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left."""
        return self._watching is None or self._watching.done()

    async def gone(self) -> None:
        """Wait until nothing of it is left."""
        if self._watching:
            await asyncio.wait([self._watching])

    def close(self) -> None:
        """Watch it no more; what it started may go on."""
        if self._watching:
            self._watching.cancel()
        if self._spawned and self.exit_status is not None:
            self._spawned.release()

    async def _watch(self, spawned: Spawned) -> None:
        """Hear of a start that fails, of a keeper that is lost, and of an end that was asked for."""
        try:
            ended = await spawned.ended()
            self._on_exited(ended.wait_status if ended else signal.SIGKILL)
            self.limits.remove_group()  # a keeper in a sandbox cannot
        except ProcessError as error:
            self.refuse(f"cannot be started: {error}")
            self._on_exited(signal.SIGKILL)

    def _on_started(self, pid: int, mark: int) -> None:
        self.pid = pid
        self.first_mark = mark if LINUX else 0
        self.limits.add(pid)
        self._begin()

    def _begin(self) -> None:
        """The keeper and bash itself are heard of in any order."""
        if self.pid and self._has_spoken and self.is_starting:
            self._started.set_result(None)

    def _on_exited(self, wait_status: int) -> None:
        if self.exit_status is not None:
            return
        self.exit_status = wait_status
        self._exited.set()
        code, _ = read_wait_status(wait_status)
        self.refuse(f"ended at once with status {code}")
        self._on_exit(code)
