"""How the keeper starts a child: with its mark, its descriptors, its terminal and its limits."""

from __future__ import annotations

import errno
import os
import resource
import struct

from toolyard.process.process_tree import LINUX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any, NoReturn
else:
    import _signal as signal  # the public module wraps all numbers in enums, which takes long to import

CATCHABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
REASON = struct.Struct("!I")
TIOCSCTTY = 0x540E


class Marks:
    """Numbers by which a process can be assigned to its call, whatever it does to hide.

    A mark is the soft limit on real-time processor time (RLIMIT_RTTIME): every descendant inherits it, it means nothing
    to ordinary processes, and ours are far beyond what could act as a limit. The keeper carries a child's mark for the
    moment of its spawn, and since the child before, so that none has to wait for it. In a sandbox nobody else can set
    one.
    """

    def __init__(self, last: int) -> None:
        self.last = last
        self.set: Callable[[tuple[int, int]], None] = set_own_mark
        """Gets the soft and the hard limit."""
        self._soft, self._hard = resource.getrlimit(resource.RLIMIT_RTTIME) if LINUX else (0, 0)
        self.are_available = LINUX and self._hard == resource.RLIM_INFINITY and self._can_be_set()
        self._carried: int | None = None

    def carry_next(self, count: int) -> range:
        """Carry the mark that the next child inherits, the first of a range that is its own; empty without marks."""
        if not self.are_available:
            return range(0)
        marks = range(self.last + 1, self.last + 1 + count)
        self.last += count
        if self._carried != marks.start:
            self.set((marks.start, self._hard))
        return marks

    def after_spawn(self) -> None:
        """Carry the mark of the next child already; or again what we were given ourselves, if a keeper around us finds
        us by that.
        """
        if self.are_available:
            self._carried = self.last + 1 if self._soft == resource.RLIM_INFINITY else None
            self.set((self._soft if self._carried is None else self._carried, self._hard))

    def _can_be_set(self) -> bool:
        """Not by a keeper inside the sandbox of another."""
        try:
            self.set((self._soft, self._hard))
        except (OSError, ValueError):  # which is what Python makes of a refusal
            return False
        return True


def set_own_mark(mark: tuple[int, int]) -> None:
    resource.setrlimit(resource.RLIMIT_RTTIME, mark)


def spawn_unlimited(
    argv: list[bytes], env: dict[bytes, bytes], fds: list[tuple[int, int]], terminal: bytes | None
) -> int:
    """The quick way, for a child without limits."""
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, fd, target) for fd, target in fds]
    if terminal is not None:
        # The first terminal that the leader of a new session opens becomes its controlling one.
        spare = max(target for _, target in fds) + 1
        actions += [(os.POSIX_SPAWN_OPEN, spare, terminal, os.O_RDWR, 0), (os.POSIX_SPAWN_CLOSE, spare)]
    return os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True, setsigmask=[], setsigdef=CATCHABLE)


def fork_limited(
    argv: list[bytes],
    env: dict[bytes, bytes],
    fds: list[tuple[int, int]],
    limits: list[tuple[int, int]],
    terminal: bytes | int | None,
) -> int:
    """The slow way, for limits that hold from the program's first instruction, and for a terminal that is open already.

    Limits cannot be set from outside once it runs, because it may have forked by then; nor be inherited from us,
    because a hard limit that we lower for ourselves cannot be raised again. With one thread a fork is as safe as a
    spawn.
    """
    failed, tell = os.pipe()
    try:
        pid = os.fork()
        if pid == 0:
            become(argv, env, fds, limits, terminal, tell)
    finally:
        os.close(tell)
        with open(failed, "rb") as reasons:
            reason = reasons.read(REASON.size)
    if reason:
        os.waitpid(pid, 0)
        (number,) = REASON.unpack(reason)
        raise OSError(number, os.strerror(number))
    return pid


def become(
    argv: list[bytes],
    env: dict[bytes, bytes],
    fds: list[tuple[int, int]],
    limits: list[tuple[int, int]],
    terminal: bytes | int | None,
    tell: int,
) -> NoReturn:
    """In the forked process: turn into the program, or tell why not."""
    try:
        os.setsid()
        if isinstance(terminal, int):
            control(terminal)
        elif terminal is not None:
            os.close(os.open(terminal, os.O_RDWR))  # the first that the leader of a new session opens controls it
        for fd, target in fds:
            os.dup2(fd, target)
        for number in CATCHABLE:
            signal.signal(number, signal.SIG_DFL)
        # Address space last: from then on we may not even have the memory to go on ourselves.
        for which, value in sorted(limits, key=lambda limit: limit[0] == resource.RLIMIT_AS):
            resource.setrlimit(which, limit_pair(which, value))
        os.execve(argv[0], argv, env)  # noqa: S606 - an argv list, by design
    except BaseException as error:  # nothing of us may go on in the fork
        os.write(tell, REASON.pack(reason_of(error)))
    os._exit(127)


def control(terminal: int) -> None:
    """Make an open terminal the controlling one of our session."""
    import fcntl

    fcntl.ioctl(terminal, TIOCSCTTY, 0)


def limit_pair(which: int, value: int) -> tuple[int, int]:
    """Soft and hard limit; never above our own hard limit, which only root could raise."""
    _, most = resource.getrlimit(which)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    hard = value + 1 if which == resource.RLIMIT_CPU and value != most else value
    return value, hard


def reason_of(error: BaseException) -> int:
    """Why a spawn failed; words that no system call can take (a NUL, no program at all) are invalid."""
    return (error.errno if isinstance(error, OSError) else None) or errno.EINVAL
