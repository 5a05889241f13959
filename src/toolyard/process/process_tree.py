"""Processes as the kernel shows them: who descends from whom, which call they belong to, and how to end them."""

from __future__ import annotations

import errno
import os
import resource
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Collection, Iterable
else:
    import _signal as signal  # the public module wraps all numbers in enums, which takes long to import

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
MARK_BASE = 1_000_000_000_000_000
"""Marks start here: thirty years of real-time processor time, so that a mark never acts as a limit."""
MARKS_EACH = 1_000_000_000_000
STOPS_AT_ONCE = 16
READ_CALL = {"x86_64": b"0 ", "aarch64": b"63 "}.get(os.uname().machine, b"none")
"""How the kernel shows a process that is blocked in `read`."""
SETTLE_AT_LEAST = 0.05
SETTLE_WITHIN = 0.3
"""How long what is left of a call may be at work before it counts as a background process."""


def become_subreaper() -> None:
    """Let orphaned descendants become our children; only Linux can."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def go_on_without_parent() -> None:
    """Let the end of our parent make us go on if we were stopped; who was not does not notice."""
    prctl(PR_SET_PDEATHSIG, signal.SIGCONT)


def prctl(what: int, value: int) -> None:
    if not LINUX:
        return
    import _ctypes  # the inner half of ctypes, in half the time

    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None is the program itself
    _ctypes.call_function(function, (what, value, 0, 0, 0))


def first_mark(keeper_pid: int) -> int:
    """Where a keeper's marks begin: every keeper of a machine has its own range."""
    return MARK_BASE + keeper_pid * MARKS_EACH


def mark_of(pid: int) -> int | None:
    """The mark a process carries, zero when it carries none; None when it has ended."""
    try:
        soft, _ = resource.prlimit(pid, resource.RLIMIT_RTTIME)
    except PermissionError:
        return mark_of_other_user(pid)
    except OSError:
        return None
    return soft if soft > MARK_BASE else 0


def mark_of_other_user(pid: int) -> int | None:
    """The same for a process whose limits only the file tells, such as one that changed its user."""
    words = line_of(f"/proc/{pid}/limits", b"Max realtime timeout")
    if not words:
        return None
    return int(words[3]) if words[3].isdigit() and int(words[3]) > MARK_BASE else 0


def kill_marked(first: int) -> None:
    """Kill whatever carries a mark of a keeper that is no more; the slow way, over all processes."""
    if not LINUX:
        return
    quiet = 0
    for _ in range(64):
        found = marked(range(first + 1, first + MARKS_EACH))
        signal_all(found, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        if quiet == 2:  # one that forks and ends while we look is easily missed once
            return


def marked(marks: range) -> dict[int, int]:
    """Every living process that carries one of these marks, with its start time."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (mark_of(int(name)) or 0) in marks:
            started = start_time(int(name))
            if started is not None:
                found[int(name)] = started
    return found


def open_children_list() -> int | None:
    """The list of our own children; we have one thread, so one file has them all."""
    try:
        return os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def read_children(listing: int | None) -> list[int]:
    """Our own children, from the open list."""
    if listing is None:
        return []
    found = b""
    while piece := os.pread(listing, 65536, len(found)):
        found += piece
    return [int(pid) for pid in found.split()]


def children_of(pid: int) -> list[int]:
    """The direct children of all threads of a process."""
    found: list[int] = []
    for thread in threads_of(pid):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                found.extend(map(int, listing.read().split()))
        except OSError:  # a thread that has ended; its children are another's now
            continue
    return found


def threads_of(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def pid_of_handle(handle: int) -> int:
    """The number of a process here, by a handle on it that may come from where it has another."""
    words = line_of(f"/proc/self/fdinfo/{handle}", b"Pid:")
    return int(words[1]) if words else 0


def pid_outside(inner: int, parent: int) -> int:
    """The number here of a child that has the number `inner` in its own namespace; zero when it is gone."""
    for pid in children_of(parent):
        words = line_of(f"/proc/{pid}/status", b"NSpid:")
        if words and int(words[-1]) == inner:
            return pid
    return 0


def line_of(file: str, name: bytes) -> list[bytes]:
    """The words of the line that begins with a name; none when there is no such line, or no such file."""
    try:
        with open(file, "rb") as lines:
            return next((line.split() for line in lines if line.startswith(name)), [])
    except OSError:
        return []


def descendants(heads: Iterable[int]) -> dict[int, int]:
    """These processes and all below them, each with its start time, ended ones left out."""
    found: dict[int, int] = {}
    waiting = list(heads)
    while waiting:
        pid = waiting.pop()
        started = start_time(pid)
        if started is not None and pid not in found:
            found[pid] = started
            waiting.extend(children_of(pid))
    return found


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks; None when it has ended. Without /proc a living process has 0."""
    if not LINUX:
        try:
            os.kill(pid, 0)
        except OSError:
            return None
        return 0
    fields = stat_fields(pid)
    # One whose first thread has ended looks like a dead one as long as its others run.
    has_ended = not fields or (fields[0] in (b"Z", b"X") and int(fields[17]) <= 1)
    return None if has_ended else int(fields[19])


def processor_seconds(pid: int) -> float:
    """How much processor time a process has used itself; nothing when that cannot be told."""
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def stat_fields(pid: int) -> list[bytes]:
    """What the kernel says of a process, from its state on; nothing when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return []


def may_still_print(pids: Collection[int], lasts: float) -> bool:
    """Whether what a command left, so many seconds after its end, may have something to print that belongs to it.

    One that was forked a moment ago, or is at work just now, may become anything.
    """
    is_new = lasts < SETTLE_AT_LEAST or (lasts < SETTLE_WITHIN and any(stat_fields(pid)[:1] == [b"R"] for pid in pids))
    return bool(pids) and (is_new or finish_output(pids))


def finish_output(pids: Iterable[int]) -> bool:
    """Whether one of these processes reads a pipe that nobody writes to any more, as a process substitution does.

    Such a one only has to finish with what it was given. A background process reads nothing, or from another.
    """
    held = {pid: pipes_of(pid) for pid in pids}
    written = {pipe for pipes in held.values() for pipe, writes in pipes.values() if writes}
    return any(0 in pipes and pipes[0][0] not in written for pipes in held.values())


def pipe_descriptors(pid: int, inode: int) -> list[int]:
    """Where a process has a pipe open."""
    return sorted(fd for fd, (pipe, _) in pipes_of(pid).items() if pipe == f"pipe:[{inode}]")


def is_read_by(pid: int, inode: int) -> bool:
    """Whether a process is blocked reading a pipe; False where the kernel does not show that."""
    words = line_of(f"/proc/{pid}/syscall", READ_CALL)
    return bool(words) and int(words[1], 16) in pipe_descriptors(pid, inode)


def is_blocked_in_read(pid: int) -> bool | None:
    """Whether a process is blocked reading something; None where the kernel does not show that."""
    try:
        with open(f"/proc/{pid}/syscall", "rb") as shown:
            return shown.read().startswith(READ_CALL)
    except OSError:
        return None


def pipes_of(pid: int) -> dict[int, tuple[str, bool]]:
    """The pipes that a process has open, by descriptor, and whether for writing."""
    found = {}
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if (pipe := os.readlink(f"/proc/{pid}/fd/{fd}")).startswith("pipe:"):
                flags = line_of(f"/proc/{pid}/fdinfo/{fd}", b"flags:")
                found[int(fd)] = (pipe, bool(flags) and int(flags[-1], 8) & os.O_ACCMODE != os.O_RDONLY)
    except OSError:
        pass  # it has ended, or is not ours to look at
    return found


def signal_all(tree: dict[int, int], number: int) -> int:
    """Send a signal to every process of a tree; count those it reached."""
    return sum(signal_one(pid, started, number) for pid, started in tree.items())


def signal_one(pid: int, started: int, number: int) -> bool:
    """Send a signal to exactly the process that was seen, never to a later one with its number."""
    try:
        if not LINUX:
            os.killpg(pid, number)
            return True
        handle = os.pidfd_open(pid)
        try:
            if start_time(pid) != started:
                return False
            send(handle, pid, number)
        finally:
            os.close(handle)
    except OSError:
        return False
    return True


def send(handle: int, pid: int, number: int) -> None:
    """By the handle; by the number only in a sandbox, whose filter cannot see whom a handle means."""
    try:
        signal.pidfd_send_signal(handle, number)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        os.kill(pid, number)


def kill_trees(heads_now: Callable[[], list[int]], reap: Callable[[], None], *, until: float) -> int:
    """Kill these and all below them, again and again: some chains of forks are only caught by being faster.

    The dead are collected in between, so that the list of our children stays as short as the living are few.
    """
    killed = 0
    while time.monotonic() < until:
        reap()
        if not heads_now():
            break
        killed += signal_all(stop_tree(heads_now), signal.SIGKILL)
    return killed


def stop_tree(heads_now: Callable[[], list[int]]) -> dict[int, int]:
    """Stop everything, so that nothing forks away or moves to another parent while we look, and tell what it is."""
    stopped: dict[int, int] = {}
    for _ in range(STOPS_AT_ONCE):
        heads = heads_now()
        stop_groups(heads)
        fresh = {pid: started for pid, started in descendants(heads).items() if stopped.get(pid) != started}
        if not fresh:
            break
        signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
    return stopped


def stop_groups(heads: list[int]) -> None:
    """Stop the process groups of our own children: unlike a signal to a process, no fork slips through one to a group.

    A child that has ended keeps the number of its group taken until we collect it, and a group never spans two
    sessions, so that all of it is of one call.
    """
    if not LINUX:
        return
    for pid in heads:
        try:
            if (group := os.getpgid(pid)) != os.getpgrp():
                os.killpg(group, signal.SIGSTOP)
        except OSError:
            continue
