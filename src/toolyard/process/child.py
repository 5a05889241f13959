"""One child process: streams as they come, a deadline that holds, and nothing of its tree left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import tempfile
import time
from typing import TYPE_CHECKING

import msgspec

from toolyard.errors import CannotStart, ProcessError
from toolyard.process.environment import as_bytes
from toolyard.process.keeper_link import KeeperLink, close_all
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.output import Captured, HeadTail, Utf8Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolyard.core.tool import Stream
    from toolyard.process.keeper_link import Ended, Spawned
    from toolyard.process.sandbox import Sandbox

__all__ = ["ChildOutcome", "ChildRequest", "Children"]

GRACE = 1.0
"""How long a tree may take to end after SIGTERM before it is killed."""
ANSWER_PATIENCE = 5.0
"""How long the keeper may take beyond the grace; only a stopped or broken keeper takes longer."""
READ_SIZE = 1 << 16
READS_AT_ONCE = 16
READ_AFTER = 0.012
MOST_IN_A_PIPE = 1 << 20
F_SETPIPE_SZ = 1031
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


NOTHING = Captured(text="", total_bytes=0)


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
        argv, cwd, extra_env = encode_words(request)
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


class Reader:
    """Reads one pipe whenever it has something, without a task of its own."""

    def __init__(self, fd: int, request: ChildRequest, stream: Stream) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._request = request
        self._kept: HeadTail | None = None
        self._stream: Stream = stream
        self._listener = request.on_output if stream in request.streams else None
        self._decoder = Utf8Stream() if self._listener else None
        self._open = True
        self._listening = False
        self._widened = False

    @property
    def is_heard(self) -> bool:
        """Whether somebody wants to know at once what comes."""
        return self._listener is not None

    @classmethod
    def open(cls, request: ChildRequest, stream: Stream) -> tuple[Reader, int]:
        """A reader and the end that goes to the child."""
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        return cls(ours, request, stream), theirs

    def start(self) -> None:
        """Begin to read whenever there is something."""
        if self._open:
            self._loop.add_reader(self._fd, self._read_some)
            self._listening = True

    def finish(self) -> Captured:
        """Take what is still in the pipe, whoever else may hold it open, and close it."""
        try:
            self._drain()
            if self._decoder and (rest := self._decoder.finish()):
                self._hear(rest)
        finally:
            self._decoder = None
            self._close()
            captured = self._kept.finish() if self._kept else NOTHING
        return captured

    def _drain(self) -> None:
        """Read what was written by now, and no more: something that could not be killed may write for ever."""
        for _ in range(MOST_IN_A_PIPE // READ_SIZE + 1):
            if not self._open or self._read() < READ_SIZE:
                return

    def _read_some(self) -> None:
        """Read several times in a row, so that much output costs few turns of the loop but never starves it."""
        for _ in range(READS_AT_ONCE):
            if not self._read():
                return

    def _read(self) -> int:
        """Read once; tell how much there was."""
        try:
            data = os.read(self._fd, READ_SIZE)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self._close()
            return 0
        if len(data) == READ_SIZE and not self._widened:
            self._widen()
        self._keep(data)
        if self._decoder and (text := self._decoder.feed(data)):
            self._hear(text)
        return len(data)

    def _keep(self, data: bytes) -> None:
        if self._kept is None:
            spill_to = self._request.spill_to if self._stream == "stdout" else None
            self._kept = HeadTail(self._request.output_limit, spill_to=spill_to)
        self._kept.add(data)

    def _hear(self, text: str) -> None:
        if self._listener:
            self._listener(self._stream, text)

    def _widen(self) -> None:
        """Give a stream that fills its pipe a larger one, which saves most of the switches between the two."""
        self._widened = True
        try:
            import fcntl

            fcntl.fcntl(self._fd, F_SETPIPE_SZ, MOST_IN_A_PIPE)
        except OSError:
            pass

    def _close(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._listening:
            self._loop.remove_reader(self._fd)
        os.close(self._fd)


class Unheard:
    """Pipes that are read at once where somebody listens, else as soon as their children have lived a little.

    Most children end within milliseconds and print less than a pipe holds; what those print is read once, at their end,
    which saves a good part of what a call costs. One timer serves all that begin before it is due.
    """

    def __init__(self) -> None:
        self._waiting: set[Reader] = set()
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    def add(self, *readers: Reader) -> None:
        """Read these now or soon."""
        for reader in readers:
            if reader.is_heard:
                reader.start()
            else:
                self._waiting.add(reader)
        loop = asyncio.get_running_loop()
        if self._waiting and (self._timer is None or self._timer[0] is not loop):
            self._timer = (loop, loop.call_later(READ_AFTER, self._start))

    def leave(self, *readers: Reader) -> None:
        """These have ended."""
        self._waiting.difference_update(readers)

    def _start(self) -> None:
        self._timer = None
        for reader in self._waiting:
            reader.start()
        self._waiting.clear()


def encode_words(request: ChildRequest) -> tuple[list[bytes], bytes, dict[bytes, bytes]]:
    """Program, arguments, directory and variables as the system takes them."""
    try:
        extra_env = {as_bytes(name): as_bytes(value) for name, value in request.extra_env.items()}
        return [as_bytes(word) for word in request.argv], os.fsencode(request.cwd), extra_env
    except UnicodeEncodeError as error:
        raise CannotStart(f"program: an argument is not text: {error}", errno=errno.EINVAL) from error


def open_streams(request: ChildRequest) -> tuple[dict[int, int], Reader, Reader]:
    """The child's descriptors and our two readers; all of them or none."""
    fds: dict[int, int] = {}
    readers: list[Reader] = []
    try:
        if request.stdin is not None:
            fds[0] = open_stdin(request.stdin)
        for stream in STREAMS:
            reader, fds[len(readers) + 1] = Reader.open(request, stream)
            readers.append(reader)
    except OSError as error:
        close_all(fds.values())
        for reader in readers:
            reader.finish()
        raise CannotStart(f"streams: {error.strerror}", errno=error.errno or 0) from error
    return fds, readers[0], readers[1]


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


def read_wait_status(status: int) -> tuple[int, int | None]:
    """A wait status as exit code and signal."""
    code = os.waitstatus_to_exitcode(status)
    return (128 - code, -code) if code < 0 else (code, None)
