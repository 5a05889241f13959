"""One child process: streams as they come, a deadline that holds, and nothing of its tree left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from toolyard.errors import CannotStart, ProcessError
from toolyard.process.environment import as_bytes
from toolyard.process.keeper.link import KeeperLink
from toolyard.process.keeper.wire import close_all
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.output import NO_OUTPUT, Transcript
from toolyard.process.streams import DelayedReading, OutputStream, SparePipes, open_stdin
from toolyard.process.waiting import cancelled_with, run_shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolyard.core.tool import Stream
    from toolyard.process.keeper.link import ChildEnded, Spawned
    from toolyard.process.output import Captured
    from toolyard.process.sandbox.sandbox import Sandbox


GRACE = 1.0
"""How long a tree may take to end after SIGTERM before it is killed."""
ANSWER_PATIENCE = 5.0
"""How long the keeper may take beyond the grace; only a stopped or broken keeper takes longer."""
ATTACHMENTS = 3
LONGEST_LIST = 1 << 16
"""What is kept of the names of files, in bytes."""
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


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
    spill_to: os.PathLike[str] | str | None = None
    spill_errors_to: os.PathLike[str] | str | None = None
    on_output: Callable[[Stream, str], None] | None = None
    streams: Sequence[Stream] = ("stdout", "stderr")
    """Which streams `on_output` hears."""
    takes_attachments: bool = False
    """Whether it has descriptor 3, for the names of files that belong to what it prints."""


class ChildOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended and what it printed."""

    exit_code: int
    """As a shell counts: 128 and the signal's number when a signal ended it."""
    signal: int | None
    timed_out: bool
    stdout: Captured
    stderr: Captured
    attached: Captured = NO_OUTPUT
    """What it wrote to descriptor 3."""
    duration: float
    left: Sequence[int] = ()
    """Processes that could not be killed because the kernel itself holds them; usually empty."""

    @property
    def printed_bytes(self) -> int:
        """How much it printed to both streams, also of what is left out."""
        return self.stdout.total_bytes + self.stderr.total_bytes


class Children:
    """Runs children on behalf of one application, in its sandbox if it has one."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.keeper = KeeperLink(sandbox)
        """For children that outlive a call."""
        self._reading = DelayedReading()
        self._pipes = SparePipes()

    @property
    def keeper_pid(self) -> int | None:
        """The process that owns all children, while there is one."""
        return self.keeper.pid

    @property
    def sandbox(self) -> Sandbox | None:
        return self.keeper.sandbox

    @property
    def handouts(self) -> str | None:
        """A folder of ours that children can read; None without a sandbox, where they can read any."""
        return self.sandbox.common.handouts if self.sandbox else None

    @property
    def is_busy(self) -> bool:
        return self.keeper.is_busy

    def is_stale(self) -> bool:
        """Whether files that the sandbox protects or hides were replaced since it was built."""
        sandbox = self.keeper.sandbox
        return sandbox is not None and sandbox.is_stale()

    def note_rest(self) -> None:
        """If nothing runs just now: what was changed since the last child ended was not changed by any of them."""
        if self.sandbox and not self.is_busy:
            self.sandbox.end_span()

    @property
    def is_sandbox_chosen(self) -> bool:
        """Also where there is none to be chosen."""
        sandbox = self.keeper.sandbox
        return sandbox is None or sandbox.is_chosen

    async def choose_sandbox(self) -> None:
        """Run the sandbox's self-test if its result is not known on this machine yet, which takes a moment."""
        if self.sandbox is None or self.is_sandbox_chosen:
            return
        if self.sandbox.is_known():
            self.sandbox.choose()  # or each call of a tool that needs no sandbox would look for the best one again
        else:
            await asyncio.to_thread(self.sandbox.choose)

    def start(self) -> None:
        """Start the keeper, so that the first child need not wait; if that fails, the first child is told."""
        with contextlib.suppress(ProcessError):
            self.keeper.start()

    async def run(self, request: ChildRequest) -> ChildOutcome:
        """Run a child to its end, its deadline or our cancellation; its whole tree is gone when this returns."""
        started = time.monotonic()
        argv, cwd, extra_env = encode_words(request.argv, request.cwd, request.extra_env)
        fds, streams = open_streams(request, self._pipes)
        ended, cancelled, timed_out = None, None, False
        try:
            limits = request.limits.as_rlimits()
            spawned = self.keeper.spawn(argv, cwd=cwd, env=request.env, extra_env=extra_env, limits=limits, fds=fds)
            self._reading.add(*streams)
            self._pipes.fill()
            ended, timed_out = await self._wait(spawned, request)
        except asyncio.CancelledError as error:
            cancelled = error
        finally:
            self._reading.discard(*streams)
            stdout, stderr, attached = finished(streams)
        if ended is None:
            raise cancelled_with(stdout, stderr) from cancelled
        exit_code, signal = read_wait_status(ended.wait_status)
        return ChildOutcome(
            exit_code=exit_code,
            signal=signal,
            timed_out=timed_out,
            stdout=stdout,
            stderr=stderr,
            attached=attached,
            duration=time.monotonic() - started,
            left=ended.left,
        )

    async def aclose(self) -> None:
        self._pipes.close()
        await self.keeper.aclose()

    async def _wait(self, spawned: Spawned, request: ChildRequest) -> tuple[ChildEnded, bool]:
        """Wait for the end, and whether the deadline brought it about."""
        try:
            if ended := await spawned.ended_within(request.timeout):
                return ended, False
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessError):
                await self._end(spawned, request.grace)
            raise
        ended = await self._end(spawned, request.grace)
        return ended, ended.cut_short

    async def _end(self, spawned: Spawned, grace: float) -> ChildEnded:
        """Kill the tree and see it gone, however often we are cancelled meanwhile."""
        spawned.kill(grace=grace, answer_within=ANSWER_PATIENCE)
        return await run_shielded(spawned.ended())


def encode_words(
    argv: Sequence[str], cwd: str | Path, extra_env: Mapping[str, str]
) -> tuple[list[bytes], bytes, dict[bytes, bytes]]:
    try:
        variables = {as_bytes(name): as_bytes(value) for name, value in extra_env.items()}
        return [as_bytes(word) for word in argv], os.fsencode(cwd), variables
    except UnicodeEncodeError as error:
        raise CannotStart(f"program: an argument is not text: {error}", errno=errno.EINVAL) from error


def read_wait_status(status: int) -> tuple[int, int | None]:
    """A wait status as exit code and signal."""
    code = os.waitstatus_to_exitcode(status)
    return (128 - code, -code) if code < 0 else (code, None)


def open_streams(request: ChildRequest, pipes: SparePipes) -> tuple[dict[int, int], list[OutputStream]]:
    """The child's descriptors and our readers; all of them or none."""
    fds: dict[int, int] = {}
    readers: list[OutputStream] = []
    try:
        if request.stdin is not None:
            fds[0] = open_stdin(request.stdin)
        for number, stream in enumerate(STREAMS, start=1):
            listener = partial(request.on_output, stream) if request.on_output and stream in request.streams else None
            spill_to = request.spill_to if stream == "stdout" else request.spill_errors_to
            pipe, fds[number] = pipes.take()
            readers.append(OutputStream(pipe, Transcript(request.output_limit, listener=listener, spill_to=spill_to)))
        if request.takes_attachments:
            pipe, fds[ATTACHMENTS] = pipes.take()
            readers.append(OutputStream(pipe, Transcript(LONGEST_LIST)))
    except OSError as error:
        close_all(fds.values())
        for reader in readers:
            reader.finish()
        raise CannotStart(f"streams: {error.strerror}", errno=error.errno or 0) from error
    return fds, readers


def finished(streams: Sequence[OutputStream]) -> tuple[Captured, Captured, Captured]:
    """What came by each; all of them are closed, also when one of them breaks."""
    try:
        captured = [stream.finish() for stream in streams]
    except BaseException:
        for stream in streams:
            with contextlib.suppress(Exception):
                stream.finish()
        raise
    return captured[0], captured[1], captured[2] if len(captured) > ATTACHMENTS - 1 else NO_OUTPUT
