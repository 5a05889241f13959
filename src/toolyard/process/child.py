"""One child process: streams as they come, a deadline that holds, and nothing of its tree left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from toolyard.errors import CannotStart, ProcessError
from toolyard.process.environment import as_bytes
from toolyard.process.keeper.link import KeeperLink, close_all
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.output import Transcript
from toolyard.process.pipe_end import PipeEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolyard.core.tool import Stream
    from toolyard.process.keeper.link import Ended, Spawned
    from toolyard.process.output import Captured
    from toolyard.process.sandbox.sandbox import Sandbox


GRACE = 1.0
"""How long a tree may take to end after SIGTERM before it is killed."""
ANSWER_PATIENCE = 5.0
"""How long the keeper may take beyond the grace; only a stopped or broken keeper takes longer."""


class ChildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and under which conditions."""

    argv: Sequence[str]
    """The first is the absolute path of the program."""
    cwd: str | Path
    env: Mapping[bytes, bytes]
    extra_env: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables of this child alone, beside `env`, which may be the same object for many."""
    stdin: bytes | None = None
    """All that standard input holds; None means that it is at its end."""
    timeout: float | None = None
    grace: float = GRACE
    limits: Limits = NO_LIMITS
    output_limit: int = 1 << 20
    spill_to: Path | None = None
    on_output: Callable[[Stream, str], None] | None = None
    streams: Sequence[Stream] = ("stdout", "stderr")
    """Which streams `on_output` hears."""


class ChildOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended and what it printed."""

    exit_code: int
    """As a shell counts: 128 and the signal's number when a signal ended it."""
    signal: int | None
    timed_out: bool
    stdout: Captured
    stderr: Captured
    duration: float
    left: Sequence[int] = ()
    """Processes that could not be killed; empty but for ones the kernel itself holds."""


class Children:
    """Runs children on behalf of one application, in its sandbox if it has one."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._keeper = KeeperLink(sandbox)
        self._unheard = Unheard()

    @property
    def keeper_pid(self) -> int | None:
        """The process that owns all children, while there is one."""
        return self._keeper.pid

    @property
    def protections(self) -> Mapping[str, bool]:
        """What this system lets us do about runaway processes; known after the first child."""
        return self._keeper.protections

    @property
    def sandbox(self) -> Sandbox | None:
        """What the children are kept in; None when nothing does."""
        return self._keeper.sandbox

    @property
    def handouts(self) -> str | None:
        """A folder of ours that children can read; None for any, where nothing keeps them in."""
        return self.sandbox.folder().handouts if self.sandbox else None

    @property
    def is_busy(self) -> bool:
        """Whether any child runs."""
        return self._keeper.is_busy

    def is_stale(self) -> bool:
        """Whether their sandbox does not keep in any more what it should, or not where they work now."""
        return self._keeper.sandbox is not None and self._keeper.sandbox.is_stale()

    @property
    def keeper(self) -> KeeperLink:
        """For children that last longer than a call."""
        return self._keeper

    async def choose_sandbox(self) -> None:
        """The first time on a machine it is tried what a sandbox can do here, which takes a moment."""
        if self.sandbox and not self.sandbox.is_chosen and not self.sandbox.is_known():
            await asyncio.to_thread(self.sandbox.choose)

    def start(self) -> None:
        """Get ready for the first child, which then need not wait; what stands against it is said to that child."""
        with contextlib.suppress(ProcessError):
            self._keeper.start()

    async def run(self, request: ChildRequest) -> ChildOutcome:
        """Run a child to its end, its deadline or our cancellation; its whole tree is gone when this returns."""
        started = time.monotonic()
        argv, cwd, extra_env = encode_words(request.argv, request.cwd, request.extra_env)
        fds, stdout, stderr = open_streams(request)
        try:
            limits = request.limits.as_rlimits()
            spawned = self._keeper.spawn(argv, cwd=cwd, env=request.env, extra_env=extra_env, limits=limits, fds=fds)
            self._unheard.add(stdout, stderr)
            ended, timed_out = await self._wait(spawned, request)
        finally:
            self._unheard.leave(stdout, stderr)
            try:
                captured_stdout = stdout.finish()
            finally:
                captured_stderr = stderr.finish()
        exit_code, signal = read_wait_status(ended.wait_status)
        return ChildOutcome(
            exit_code=exit_code,
            signal=signal,
            timed_out=timed_out,
            stdout=captured_stdout,
            stderr=captured_stderr,
            duration=time.monotonic() - started,
            left=ended.left,
        )

    async def aclose(self) -> None:
        """End every child that still runs."""
        await self._keeper.aclose()

    async def _wait(self, spawned: Spawned, request: ChildRequest) -> tuple[Ended, bool]:
        """Wait for the end; past the deadline, or when we are cancelled, bring it about."""
        cancelled: asyncio.CancelledError | None = None
        try:
            if ended := await spawned.ended(within=request.timeout):
                return ended, False
        except asyncio.CancelledError as error:
            cancelled = error
        ended = await self._end(spawned, request.grace, cancelled)
        return ended, ended.cut_short

    async def _end(self, spawned: Spawned, grace: float, cancelled: asyncio.CancelledError | None) -> Ended:
        """Kill the tree and see it gone; a cancellation, be it the first or the tenth, is raised only then.

        A keeper that does not answer in time is itself ended, and the tree with it.
        """
        spawned.kill(grace=grace)
        giving_up = asyncio.get_running_loop().call_later(grace + ANSWER_PATIENCE, self._keeper.give_up)
        ended: Ended | None = None
        try:
            while ended is None:
                try:
                    ended = await spawned.ended()
                except asyncio.CancelledError as error:
                    cancelled = error
        except ProcessError:
            if cancelled is None:
                raise
        finally:
            giving_up.cancel()
        if ended is None or cancelled is not None:
            raise cancelled or asyncio.CancelledError
        return ended


def encode_words(
    argv: Sequence[str], cwd: str | Path, extra_env: Mapping[str, str]
) -> tuple[list[bytes], bytes, dict[bytes, bytes]]:
    """Program, arguments, directory and variables as the system takes them."""
    try:
        variables = {as_bytes(name): as_bytes(value) for name, value in extra_env.items()}
        return [as_bytes(word) for word in argv], os.fsencode(cwd), variables
    except UnicodeEncodeError as error:
        raise CannotStart(f"program: an argument is not text: {error}", errno=errno.EINVAL) from error


def read_wait_status(status: int) -> tuple[int, int | None]:
    """A wait status as exit code and signal."""
    code = os.waitstatus_to_exitcode(status)
    return (128 - code, -code) if code < 0 else (code, None)


READ_AFTER = 0.01
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


def open_streams(request: ChildRequest) -> tuple[dict[int, int], Printed, Printed]:
    """The child's descriptors and our two readers; all of them or none."""
    fds: dict[int, int] = {}
    readers: list[Printed] = []
    try:
        if request.stdin is not None:
            fds[0] = open_stdin(request.stdin)
        for stream in STREAMS:
            reader, fds[len(readers) + 1] = Printed.open(request, stream)
            readers.append(reader)
    except OSError as error:
        close_all(fds.values())
        for reader in readers:
            reader.finish()
        raise CannotStart(f"streams: {error.strerror}", errno=error.errno or 0) from error
    return fds, readers[0], readers[1]


class Printed:
    """What a child prints on one of its streams."""

    __slots__ = ("_pipe", "_transcript")

    def __init__(self, pipe: PipeEnd, transcript: Transcript) -> None:
        self._pipe = pipe
        self._transcript = transcript

    @classmethod
    def open(cls, request: ChildRequest, stream: Stream) -> tuple[Printed, int]:
        """One for us, and the end that goes to the child."""
        heard = request.on_output if stream in request.streams else None
        pipe, theirs = PipeEnd.new()
        transcript = Transcript(
            request.output_limit,
            listener=partial(heard, stream) if heard else None,
            spill_to=request.spill_to if stream == "stdout" else None,
        )
        return cls(pipe, transcript), theirs

    @property
    def is_heard(self) -> bool:
        """Whether somebody wants to know at once what comes."""
        return self._transcript.is_heard

    def start(self) -> None:
        """Begin to read whenever there is something."""
        self._pipe.listen(self._transcript.add, self._pipe.close)

    def finish(self) -> Captured:
        """Take what is still in the pipe, whoever else may hold it open, and close it."""
        try:
            self._pipe.drain(self._transcript.add)
        finally:
            self._pipe.close()
            captured = self._transcript.finish()
        return captured


class Unheard:
    """Pipes that are read at once where somebody listens, else as soon as their children have lived a little.

    Most children end within milliseconds and print less than a pipe holds; what those print is read once, at their end,
    which saves a good part of what a call costs. One timer serves all of them: at each turn those are read that were
    there at the turn before.
    """

    def __init__(self) -> None:
        self._young: set[Printed] = set()
        self._old: set[Printed] = set()
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    def add(self, *readers: Printed) -> None:
        """Read these now or soon."""
        for reader in readers:
            if reader.is_heard:
                reader.start()
            else:
                self._young.add(reader)
        loop = asyncio.get_running_loop()
        if self._young and (self._timer is None or self._timer[0] is not loop):
            self._timer = (loop, loop.call_later(READ_AFTER, self._turn, loop))

    def leave(self, *readers: Printed) -> None:
        """These have ended."""
        self._young.difference_update(readers)
        self._old.difference_update(readers)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        for reader in self._old:
            reader.start()
        self._old, self._young = self._young, set()
        self._timer = (loop, loop.call_later(READ_AFTER, self._turn, loop)) if self._old else None


def open_stdin(data: bytes) -> int:
    """A descriptor that holds exactly `data`: no writer, no deadlock, and nothing to clean up."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
