"""The process of a bash, from its start until nothing that it started is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.errors import ProcessError, ShellError
from toolyard.process.cgroups import ControlGroup
from toolyard.process.child import read_wait_status
from toolyard.process.keeper.link import ShellSession
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.process_tree import LINUX, pid_outside, processor_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from toolyard.process.keeper.link import KeeperLink, Spawned


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
        session = ShellSession(
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
            session=session,
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


EVERY_LIMIT = Limits(cpu_seconds=0, memory_bytes=0, file_bytes=0, open_files=0, processes=0)


class CommandLimits:
    """What holds for the command that a shell runs now."""

    def __init__(self, limits: Limits) -> None:
        self.any = limits != NO_LIMITS
        self._now = limits
        self._group = ControlGroup()
        self._first: dict[int, int] = {}
        """The limits that the shell started with, as far as a command may have others."""

    def make_group(self) -> Limits:
        """Limit all processes together where that can be; tell what is left for each of them."""
        limits = self._now
        if limits.memory_bytes is not None or limits.processes is not None:
            self._group = ControlGroup.create(memory_bytes=limits.memory_bytes, processes=limits.processes)
        return replace(
            limits,
            memory_bytes=None if self._group.holds("memory") else limits.memory_bytes,
            processes=None if self._group.holds("pids") else limits.processes,
        )

    @property
    def folders(self) -> Sequence[Path]:
        """Those of the group."""
        return self._group.folders

    def add(self, pid: int) -> None:
        """Take a shell into the group."""
        with contextlib.suppress(OSError):
            self._group.add(pid)

    def remove_group(self) -> None:
        """Nothing is left in it."""
        self._group.remove()

    def change(self, shell: int, limits: Limits) -> None:
        """Let the next command have limits of its own, which its processes keep; the shell has other ones after it.

        Only the lower, soft half of each can be set, for nobody could raise the other again.
        """
        if limits is self._now or limits == self._now:
            return
        self._now = limits
        self.any = limits != NO_LIMITS
        wanted = dict(limits.as_rlimits())
        for which, given in self._first_of(shell).items():
            value = wanted.get(which, given)
            if which == resource.RLIMIT_CPU and which in wanted:
                value += round(processor_seconds(shell))
            with contextlib.suppress(OSError, ValueError):
                _, most = resource.prlimit(shell, which)
                least = value if most == resource.RLIM_INFINITY else min(value, most)
                resource.prlimit(shell, which, (most if value == resource.RLIM_INFINITY else least, most))

    def hit(self, status: int, output: str) -> str | None:
        """Which limit a command that failed has run into, if one of ours."""
        return which_limit(self._now, self._group.hits(), status, output)

    def _first_of(self, shell: int) -> dict[int, int]:
        if not self._first:
            for which, _ in EVERY_LIMIT.as_rlimits():
                self._first[which], _ = resource.prlimit(shell, which)
        return self._first


NO_MEMORY = ("annot allocate memory", "MemoryError", "out of memory", "Out of memory")
NO_PROCESS = ("fork: retry: ", "fork: Resource temporarily unavailable", "Cannot fork")
NO_DESCRIPTOR = ("Too many open files",)


def which_limit(limits: Limits, group_hits: Collection[str], status: int, output: str) -> str | None:
    """A sentence on the limit, or None when it was none of ours."""
    said = output[-4096:]
    if limits.cpu_seconds is not None and status == 128 + signal.SIGXCPU:
        return f"The limit of {limits.cpu_seconds} s of processor time was reached."
    if limits.file_bytes is not None and status == 128 + signal.SIGXFSZ:
        return f"The limit of {limits.file_bytes} bytes for a file was reached."
    if "memory" in group_hits or (
        status and limits.memory_bytes is not None and any(words in said for words in NO_MEMORY)
    ):
        return f"The limit of {limits.memory_bytes} bytes of memory was reached."
    if "pids" in group_hits or (limits.processes is not None and any(words in said for words in NO_PROCESS)):
        return f"The limit of {limits.processes} processes was reached."
    if status and limits.open_files is not None and any(words in said for words in NO_DESCRIPTOR):
        return f"The limit of {limits.open_files} open files was reached."
    return None
