"""The process of a bash, from its start until nothing that it started is left, and the limits of its commands."""

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
from toolyard.process.keeper.link import ShellChild
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.process_tree import LINUX, pid_outside, processor_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from toolyard.process.keeper.link import KeeperLink, Spawned


START_PATIENCE = 20.0
OPTIONS = (b"--noprofile", b"--norc")
EVERY_LIMIT = Limits(cpu_seconds=0, memory_bytes=0, file_bytes=0, open_files=0, processes=0)
"""So that each of them has an rlimit to look up."""
NO_MEMORY = ("annot allocate memory", "MemoryError", "out of memory", "Out of memory")
NO_PROCESS = ("fork: retry: ", "fork: Resource temporarily unavailable", "Cannot fork")
NO_DESCRIPTOR = ("Too many open files",)


class ShellSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What every shell of a session starts with."""

    program: str
    cwd: str
    env: dict[bytes, bytes]
    extra_env: dict[bytes, bytes]
    limits: Limits
    tty: bool


class ShellProcess:
    """A bash that the keeper starts, and whose start and end the keeper reports."""

    def __init__(self, setup: ShellSetup, on_exit: Callable[[int], None], is_running: Callable[[], bool]) -> None:
        """`on_exit` gets its exit code, as `$?` would have it; `is_running` tells whether it has a command."""
        self.pid = 0
        self.exit_status: int | None = None
        """Its wait status once it has ended."""
        self.first_mark = 0
        """The mark of its processes, by which they are found; zero on systems without marks."""
        self.limits = CommandLimits(setup.limits)
        self._setup = setup
        self._on_exit = on_exit
        self._is_running = is_running
        self._has_own_pids = False
        self._has_answered = False
        self._spawned: Spawned | None = None
        self._watching: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.exited = asyncio.Event()
        """Set with the report of its end, which may come after a pipe of it has broken."""

    def spawn(
        self, keeper: KeeperLink, fds: Mapping[int, int], *, terminal: str, folder: str, with_variables: bool
    ) -> None:
        limits = self.limits.make_group(of=keeper.group_name)
        session = ShellChild(
            terminal=os.fsencode(terminal),
            folder=os.fsencode(folder),
            groups=[os.fsencode(group) for group in self.limits.group.folders],
            on_started=self._on_started,
            on_exited=self._on_exited,
            is_running=self._is_running,
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
        """Wait until bash has answered and the keeper has told its process id."""
        try:
            async with asyncio.timeout(START_PATIENCE):  # unlike wait_for it never loses a cancellation
                await self._started
        except TimeoutError:
            raise ShellError(f"{self._setup.program} does not answer") from None

    @property
    def is_starting(self) -> bool:
        """Whether it has neither become ready nor failed."""
        return not self._started.done()

    def on_answer(self) -> None:
        self._has_answered = True
        self._begin()

    def fail_start(self, reason: str) -> None:
        if self.is_starting:
            self._started.set_exception(ShellError(f"{self._setup.program} {reason}"))

    def pid_here(self, pid: int) -> int:
        """The process id in our namespace of a child whose id bash told from its own namespace."""
        return pid_outside(pid, self.pid) if pid and self._has_own_pids else pid

    def kill(self, *, grace: float = 0.2) -> None:
        """End it and everything that it started; at SIGHUP it still saves its state."""
        if self.pid and self.exit_status is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGHUP)
        if self._spawned:
            self._spawned.kill(grace=grace)

    @property
    def is_gone(self) -> bool:
        return self._watching is None or self._watching.done()

    async def wait_gone(self) -> None:
        if self._watching:
            await asyncio.wait([self._watching])

    def close(self) -> None:
        """Stop watching it; what it started may go on."""
        if self._watching:
            self._watching.cancel()
        if self._spawned and self.exit_status is not None:
            self._spawned.release()

    async def _watch(self, spawned: Spawned) -> None:
        """Notice a start that fails, a keeper that is lost, and an end that was asked for."""
        try:
            ended = await spawned.ended()
            self._on_exited(ended.wait_status if ended else signal.SIGKILL)
            self.limits.group.remove()  # a keeper in a sandbox cannot
        except ProcessError as error:
            self.fail_start(f"cannot be started: {error}")
            self._on_exited(signal.SIGKILL)

    def _on_started(self, pid: int, mark: int) -> None:
        self.pid = pid
        self.first_mark = mark if LINUX else 0
        self.limits.group.add(pid)
        self._begin()

    def _begin(self) -> None:
        """Become ready once both have reported: the keeper and bash itself may come in any order."""
        if self.pid and self._has_answered and self.is_starting:
            self._started.set_result(None)

    def _on_exited(self, wait_status: int) -> None:
        if self.exit_status is not None:
            return
        self.exit_status = wait_status
        self.exited.set()
        code, _ = read_wait_status(wait_status)
        self.fail_start(f"ended at once with status {code}")
        self._on_exit(code)


class CommandLimits:
    """The limits of the command that a shell runs now."""

    def __init__(self, limits: Limits) -> None:
        self.any = limits != NO_LIMITS
        self._now = limits
        self.group = ControlGroup()
        self._initial: dict[int, int] = {}
        """The soft limits that the shell started with, by resource."""

    def make_group(self, *, of: str) -> Limits:
        """Limit all processes together where a control group can; return what is left to limit for each of them.

        The group ends with the keeper's, `of`.
        """
        limits = self._now
        if limits.memory_bytes is not None or limits.processes is not None:
            self.group = ControlGroup.create(memory_bytes=limits.memory_bytes, processes=limits.processes, of=of)
        return replace(
            limits,
            memory_bytes=None if self.group.holds("memory") else limits.memory_bytes,
            processes=None if self.group.holds("pids") else limits.processes,
        )

    def change(self, shell: int, limits: Limits) -> None:
        """Set the limits of the next command on the shell, from which its processes inherit them.

        Only soft limits are set, because a hard one could not be raised again.
        """
        if limits is self._now or limits == self._now:
            return
        self._now = limits
        self.any = limits != NO_LIMITS
        wanted = dict(limits.as_rlimits())
        for which, given in self._initial_limits(shell).items():
            value = wanted.get(which, given)
            if which == resource.RLIMIT_CPU and which in wanted:
                value += round(processor_seconds(shell))
            with contextlib.suppress(OSError, ValueError):
                _, most = resource.prlimit(shell, which)
                least = value if most == resource.RLIM_INFINITY else min(value, most)
                resource.prlimit(shell, which, (most if value == resource.RLIM_INFINITY else least, most))

    def hit(self, status: int, output: str) -> str | None:
        """A sentence on the limit that a command ran into, if it was one of ours."""
        return which_limit(self._now, self.group.hits(), status, output)

    def _initial_limits(self, shell: int) -> dict[int, int]:
        if not self._initial:
            for which, _ in EVERY_LIMIT.as_rlimits():
                self._initial[which], _ = resource.prlimit(shell, which)
        return self._initial


def which_limit(limits: Limits, group_hits: Collection[str], status: int, output: str) -> str | None:
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
