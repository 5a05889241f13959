"""A child that stays between calls: lines go in and lines come out, until it ends or is ended with its whole tree."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from toolyard.errors import CannotStart, ProcessError
from toolyard.process.child import ANSWER_PATIENCE, encode_words, read_wait_status
from toolyard.process.keeper.wire import close_all
from toolyard.process.limits import NO_LIMITS, Limits
from toolyard.process.streams import PipeReader
from toolyard.process.waiting import run_shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolyard.process.keeper.link import KeeperLink, Spawned


GRACE = 0.5
LONGEST_LINE = 64 << 20
"""Whoever prints a longer line is killed: it is no message."""


class CompanionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and under which conditions."""

    argv: Sequence[str]
    """The first is the absolute path of the program."""
    cwd: str | Path
    env: Mapping[bytes, bytes]
    extra_env: Mapping[str, str] = msgspec.field(default_factory=dict)
    limits: Limits = NO_LIMITS
    private: bool = False
    """Whether lines travel by the descriptors 3 (in) and 4 (out), apart from what the child and its children print.

    Its standard input is at its end then, and both standard streams are its log.
    """


class CompanionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a companion ended, with nothing of its tree left."""

    exit_code: int | None = None
    """As a shell counts; None when it did not even start, or was lost."""
    signal: int | None = None
    trouble: str = ""
    """Why it did not start, or how it was lost."""

    def __str__(self) -> str:
        if self.trouble:
            return self.trouble
        return f"exit code {self.exit_code}" if self.signal is None else f"signal {self.signal}"


class Companion:
    """One such child. `on_end` is called exactly once, after the last line."""

    def __init__(
        self,
        keeper: KeeperLink,
        request: CompanionRequest,
        *,
        on_line: Callable[[bytes], None],
        on_log: Callable[[bytes], None],
        on_end: Callable[[CompanionEnd], None],
    ) -> None:
        self.end: CompanionEnd | None = None
        self._keeper = keeper
        self._loop = asyncio.get_running_loop()
        self._on_line, self._on_log, self._on_end = on_line, on_log, on_end
        self._outbox: deque[memoryview] = deque()
        self._line: list[bytes] = []
        self._line_size = 0
        self._over = asyncio.Event()
        self._to_child = -1
        self._is_writing = False
        """Whether the loop tells when the child takes more."""
        self._spawned = self._start(request)
        self._watching = self._loop.create_task(self._watch())

    def send(self, line: bytes) -> None:
        """Write a line, at once or as soon as the child takes more; one that has ended gets nothing."""
        if self._to_child >= 0:
            self._outbox.append(memoryview(line + b"\n"))
            if len(self._outbox) == 1:
                self._flush()

    def kill(self, *, grace: float = GRACE) -> None:
        """Ask its whole tree to end, and force it after `grace` seconds."""
        if self.end is None:
            self._spawned.kill(grace=grace, answer_within=ANSWER_PATIENCE)

    async def aclose(self, *, grace: float = GRACE) -> None:
        """Kill it and wait until nothing of it is left."""
        self.kill(grace=grace)
        await run_shielded(self._over.wait())

    def _start(self, request: CompanionRequest) -> Spawned:
        """Open the pipes and ask for the child; nothing is open when that fails."""
        argv, cwd, extra_env = encode_words(request.argv, request.cwd, request.extra_env)
        theirs = self._open_pipes(request.private)
        try:
            limits = request.limits.as_rlimits()
            spawned = self._keeper.spawn(
                argv, cwd=cwd, env=request.env, extra_env=extra_env, limits=limits, fds=theirs, stays=True
            )
        except ProcessError:
            self._close()
            raise
        self._lines.listen(self._take, self.kill)  # one that cannot answer is of no use
        self._log.listen(self._on_log)
        return spawned

    def _open_pipes(self, private: bool) -> dict[int, int]:
        """Open our ends, and return those of the child by the numbers it knows them by.

        The keeper itself holds at least two descriptors from 3 on, so that none of those that it passes on has the
        number of another's target.
        """
        opened: list[int] = []
        try:
            for _ in range(3):
                opened += os.pipe()
            second_log = [os.dup(opened[-1])] if private else []
        except OSError as error:
            close_all(opened)
            raise CannotStart(f"streams: {error.strerror}", errno=error.errno or 0) from error
        its_input, self._to_child, from_child, its_output, log, its_log = opened
        for fd in (self._to_child, from_child, log):
            os.set_blocking(fd, False)
        self._lines, self._log = PipeReader(from_child), PipeReader(log)
        if not private:
            return {0: its_input, 1: its_output, 2: its_log}
        return {1: its_log, 2: second_log[0], 3: its_input, 4: its_output}

    async def _watch(self) -> None:
        """Wait for the end, take what was printed last, and call `on_end`."""
        # Stays so if the loop ends first, which cancels this: whoever waits for the end must not wait for ever.
        end = CompanionEnd(trouble="the event loop was ended")
        try:
            ended = await self._spawned.ended()
            exit_code, signal = read_wait_status(ended.wait_status)
            end = CompanionEnd(exit_code=exit_code, signal=signal)
        except ProcessError as error:
            end = CompanionEnd(trouble=str(error))
        except asyncio.CancelledError:
            self.kill()
            raise
        finally:
            self._finish(end)

    def _finish(self, end: CompanionEnd) -> None:
        try:
            self._lines.drain(self._take)
            self._log.drain(self._on_log)
        finally:
            self._close()
            self.end = end
            self._over.set()
            self._on_end(end)

    def _flush(self) -> None:
        while self._outbox:
            try:
                sent = os.write(self._to_child, self._outbox[0])
            except BlockingIOError:
                self._is_writing = True
                self._loop.add_writer(self._to_child, self._flush)
                return
            except OSError:  # it does not listen any more; its end is told in its own time
                self._outbox.clear()
                break
            if sent < len(self._outbox[0]):
                self._outbox[0] = self._outbox[0][sent:]
            else:
                self._outbox.popleft()
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._to_child)

    def _take(self, data: bytes) -> None:
        """Cut what has come into lines."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            line = b"".join((*self._line, piece)) if self._line else piece
            self._line, self._line_size = [], 0
            self._on_line(line)
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
        if self._line_size > LONGEST_LINE:
            self._line, self._line_size = [], 0
            self.kill()

    def _close(self) -> None:
        self._lines.close()
        self._log.close()
        self._loop.remove_writer(self._to_child)
        os.close(self._to_child)
        self._to_child = -1
        self._outbox.clear()
