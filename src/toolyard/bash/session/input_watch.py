"""Notices what waits: a program for input on its terminal, a shell for its next command; by its system call."""

from __future__ import annotations

import asyncio
import os
import platform
import struct
from typing import TYPE_CHECKING, Literal

from toolyard.process.process_tree import children_of, threads_of

if TYPE_CHECKING:
    from toolyard.bash.session.command import Command
    from toolyard.bash.session.shell import Shell


INTERVALS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between two looks; the last one repeats."""

READS, POLLS, SELECTS, EPOLLS = {
    "x86_64": ({0, 19}, {7, 271}, {23, 270}, {232, 281, 441}),
    "aarch64": ({63, 65}, {73}, {72}, {22, 441}),
}.get(platform.machine(), (set[int](), set[int](), set[int](), set[int]()))
"""The numbers of the system calls that wait for something to read."""
TERMINAL_WAITS = frozenset({b"n_tty_read", b"wait_woken", b"tty_read"})
POLLFD = struct.Struct("ihh")
POLLIN = 1
MOST_POLLED = 64
MOST_PROCESSES = 200


class InputWatch:
    """Looks from time to time whether a command waits for input, or its end was lost."""

    def __init__(self, shell: Shell, command: Command) -> None:
        self._shell = shell
        self._command = command
        self._loop = asyncio.get_running_loop()
        self._seen: Literal["waiting", "lost"] | None = None
        self._step = 0
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(INTERVALS[0], self._look)

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _look(self) -> None:
        """Only what is seen twice in a row counts."""
        seen = self._sight()
        if seen and seen == self._seen:
            self._command.notify(seen)
            return
        self._step = 0 if seen != self._seen else min(self._step + 1, len(INTERVALS) - 1)
        self._seen = seen
        self._timer = self._loop.call_later(INTERVALS[self._step], self._look)

    def _sight(self) -> Literal["waiting", "lost"] | None:
        process = self._shell.process
        if process.exit_status is not None:
            return None
        if waits_for_terminal(process.pid, self._shell.terminal.name):
            return "waiting"
        return "lost" if self._shell.has_lost(self._command) else None


def waits_for_terminal(shell: int, terminal: str) -> bool:
    """Whether the shell or something below it is blocked reading its terminal."""
    waiting = [shell]
    for _ in range(MOST_PROCESSES):
        if not waiting:
            return False
        pid = waiting.pop()
        if any(thread_waits(pid, thread, terminal) for thread in threads_of(pid)):
            return True
        waiting.extend(children_of(pid))
    return False


def thread_waits(pid: int, thread: str, terminal: str) -> bool:
    """Whether one thread is blocked in a read, or in a wait for input, of the terminal."""
    try:
        with open(f"/proc/{pid}/task/{thread}/syscall", "rb") as file:
            words = file.read().split()
    except OSError:
        return waits_by_name(pid, thread, terminal)
    if len(words) < 3 or not words[0].isdigit():
        return False  # running, or blocked in no call
    call, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    if call in READS:
        return is_terminal(pid, first, terminal)
    if call in POLLS:
        return any(is_terminal(pid, fd, terminal) for fd in polled(pid, first, second))
    if call in SELECTS:
        return any(is_terminal(pid, fd, terminal) for fd in selected(pid, first, second))
    return call in EPOLLS and any(is_terminal(pid, fd, terminal) for fd in watched(pid, first))


def waits_by_name(pid: int, thread: str, terminal: str) -> bool:
    """The same where the kernel does not show the call: by the kernel function that the thread sleeps in."""
    try:
        with open(f"/proc/{pid}/task/{thread}/wchan", "rb") as file:
            sleeps_in = file.read()
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    return sleeps_in in TERMINAL_WAITS and any(is_terminal(pid, int(fd), terminal) for fd in descriptors)


def is_terminal(pid: int, fd: int, terminal: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}") in (terminal, "/dev/tty")
    except OSError:
        return False


def polled(pid: int, address: int, count: int) -> list[int]:
    """The descriptors that a `poll` waits to read from."""
    data = memory(pid, address, min(count, MOST_POLLED) * POLLFD.size)
    return [fd for fd, events, _ in POLLFD.iter_unpack(data) if events & POLLIN]


def selected(pid: int, count: int, address: int) -> list[int]:
    """The descriptors that a `select` waits to read from."""
    bits = int.from_bytes(memory(pid, address, (min(count, 1024) + 7) // 8), "little") if address else 0
    return [fd for fd in range(min(count, 1024)) if bits >> fd & 1]


def watched(pid: int, epoll: int) -> list[int]:
    """The descriptors that an `epoll` watches."""
    try:
        with open(f"/proc/{pid}/fdinfo/{epoll}", "rb") as file:
            lines = [line.split() for line in file if line.startswith(b"tfd:")]
    except OSError:
        return []
    return [int(words[1]) for words in lines]


def memory(pid: int, address: int, size: int) -> bytes:
    """Some bytes of a process; none when we may not look."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            file.seek(address)
            data = file.read(size)
    except (OSError, ValueError, OverflowError):
        return b""
    return data if len(data) == size else b""
