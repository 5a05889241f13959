"""The keeper: a small process that starts every child, and outlives none of them.

Started with two numbers: a connected Unix socket and the application's process id. It is the parent of every
child: an exit is learnt from the process itself. It is a *subreaper*: what a child leaves behind by double fork or
`setsid` becomes a child of the keeper instead of vanishing. When the application ends, however it ends, the keeper
kills all that is left. Being one small single-threaded process it can also do what a threaded application must not:
change its own directory and limits for the moment of a spawn, so that the child inherits them.

Which call a leftover belongs to is written where a process cannot lose it by accident: the soft limit on real-time
processor time (RLIMIT_RTTIME). Every descendant inherits it, it means nothing to ordinary processes, and ours holds a
number of our own choice.

Messages are marshalled tuples behind a four-byte length; both ends are the same interpreter.

    application → keeper    ("spawn", id, argv, cwd, env, limits, targets), a descriptor attached for each target
                            ("kill", id, grace)
    keeper → application    ("hello", protections)
                            ("failed", id, errno, what)
                            ("gone", id, pid, wait status, killed, left): ended, and nothing of its tree is left
"""

from __future__ import annotations

import _socket as socket  # the public module takes longer to import than everything else here
import marshal
import os
import resource
import select
import signal
import struct
import sys
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MARK_BASE = 1_000_000_000_000_000
"""Marks start here: thirty years of real-time processor time, so that a mark never acts as a limit."""
MARKS_EACH = 100_000_000
STRAGGLER_GRACE = 0.5
"""How long what outlived its root may take to end by itself after SIGTERM."""
GIVE_UP_AFTER = 3.0
"""How long to try SIGKILL on processes that do not die (in uninterruptible sleep) before reporting them."""
TICK = 0.01
KILL_SPELL = 0.02
"""How long at a time the keeper only kills, before it looks after its other calls again."""
MOST_LOOKS = 100
REAP_EVERY = 1.0
"""How long an adopted process that has ended may stay in the table while a call runs."""
SWEEP_AFTER = 0.1
RECEIVE_SIZE = 8192
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
HEADER = struct.Struct("!I")


class Call:
    """One child and everything that descends from it."""

    __slots__ = ("deadline", "exit_fd", "grace", "id", "killed", "kills_since", "mark", "pid", "status")

    def __init__(self, id: int, pid: int, mark: int) -> None:
        self.id = id
        self.pid = pid
        self.mark = mark
        self.exit_fd = os.pidfd_open(pid) if LINUX else None
        """Becomes readable when the root ends."""
        self.status: int | None = None
        self.killed = 0
        self.grace = STRAGGLER_GRACE
        self.deadline: float | None = None
        """When SIGTERM gives way to SIGKILL; None while nobody wants the tree to end."""
        self.kills_since: float | None = None


class Keeper:
    """The loop: requests in, exits out, and whatever is left over killed."""

    def __init__(self, channel: socket.socket, owner: int) -> None:
        self.channel = channel
        self.owner = owner
        self.calls: dict[int, Call] = {}
        self.roots: dict[int, Call] = {}
        self.fds: deque[int] = deque()
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.subreaper = become_subreaper()
        self.rttime_hard = can_mark()
        self.last_mark = first_mark(os.getpid())
        self.closing = False
        self.poll = select.poll()
        self.exited: list[Call] = []
        """Calls whose root has ended and that have not been looked at since."""
        self.own_children = open_children_list()
        self.sweep_at: float | None = None

    def run(self) -> None:
        """Serve until the application is gone, then until its children are."""
        woken = install_signals(self)
        self.poll.register(woken, select.POLLIN)
        self.poll.register(self.channel, select.POLLIN)
        owner_exit = self.watch_owner()
        if owner_exit is not None:
            self.poll.register(owner_exit, select.POLLIN)
        self.send(("hello", {"subreaper": self.subreaper, "marks": self.rttime_hard is not None}))
        while not (self.closing and not self.calls):
            ready = {fd for fd, _ in self.poll.poll(self.poll_timeout())}
            if woken in ready:
                os.read(woken, 4096)
            if owner_exit in ready and not self.closing:
                self.close()
            elif self.channel.fileno() in ready and not self.closing:
                self.receive()
            if self.closing:
                unregister(self.poll, self.channel.fileno(), owner_exit)
            self.reap()
            self.tend()
            self.flush()

    def watch_owner(self) -> int | None:
        """See the application's end even if a process it forked keeps the other end of the socket open."""
        if not LINUX:
            return None
        try:
            handle = os.pidfd_open(self.owner)
        except OSError:
            self.close()
            return None
        if os.getppid() != self.owner:
            self.close()
        return handle

    def poll_timeout(self) -> int | None:
        if self.outbox or any(call.deadline is not None for call in self.calls.values()):
            return int(TICK * 1000)
        if self.sweep_at is not None:
            return max(0, int((self.sweep_at - time.monotonic()) * 1000) + 1)
        return int(REAP_EVERY * 1000) if self.calls else None

    def close(self) -> None:
        """The application is gone: everything must end."""
        self.closing = True
        for call in self.calls.values():
            self.begin_end(call, grace=STRAGGLER_GRACE)

    def receive(self) -> None:
        """Take in what has come; end-of-file means that the application is gone."""
        try:
            data, ancillary, _, _ = self.channel.recvmsg(RECEIVE_SIZE, socket.CMSG_SPACE(64 * 4), CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self.fds.extend(struct.unpack(f"{len(payload) // 4}i", payload[: len(payload) // 4 * 4]))
        if not data:
            self.close()
            return
        self.inbox += data
        for message in take_messages(self.inbox):
            self.handle(message)

    def handle(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("spawn", id, argv, cwd, env, limits, targets):
                fds = [(self.fds.popleft(), target) for target in targets]
                try:
                    self.spawn(id, argv, cwd, env, limits, fds)
                finally:
                    for fd, _ in fds:
                        os.close(fd)
            case ("kill", id, grace) if id in self.calls:
                self.begin_end(self.calls[id], grace=grace)

    def spawn(
        self,
        id: int,
        argv: list[bytes],
        cwd: bytes,
        env: dict[bytes, bytes],
        limits: list[tuple[int, int]],
        fds: list[tuple[int, int]],
    ) -> None:
        """Start a child in its own session, with its mark and limits inherited from the keeper's own.

        A descriptor that is not given is inherited too: our standard input is at its end.
        """
        try:
            os.chdir(cwd)
        except OSError as error:
            self.send(("failed", id, error.errno, "cwd"))
            return
        mark = self.next_mark()
        restore = lower_own_limits(limits)
        try:
            pid = os.posix_spawn(
                argv[0],
                argv,
                env,
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, target) for fd, target in fds],
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ],
            )
        except OSError as error:
            self.send(("failed", id, error.errno, "exec"))
            return
        finally:
            for which, value in restore:
                resource.setrlimit(which, value)
            os.chdir("/")
        tighten_limits(pid, limits)
        call = self.calls[id] = self.roots[pid] = Call(id, pid, mark)
        if call.exit_fd is not None:
            self.poll.register(call.exit_fd, select.POLLIN)

    def next_mark(self) -> int:
        """Set the mark that the next child inherits."""
        if self.rttime_hard is None:
            return 0
        self.last_mark += 1
        resource.setrlimit(resource.RLIMIT_RTTIME, (self.last_mark, self.rttime_hard))
        return self.last_mark

    def reap(self) -> None:
        """Collect every ended child, ours or adopted."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if call := self.roots.pop(pid, None):
                call.status = status
                self.exited.append(call)
                self.forget_exit(call)

    def forget_exit(self, call: Call) -> None:
        exit_fd, call.exit_fd = call.exit_fd, None
        if exit_fd is not None:
            self.poll.unregister(exit_fd)
            os.close(exit_fd)

    def finish_or_sweep(self, call: Call) -> None:
        """The root has ended: report at once when it left nothing, else end what it left."""
        if not LINUX:
            signal_one(call.pid, 0, signal.SIGKILL)  # the group is all we know of the tree there
        if self.leftovers(call):
            self.begin_end(call, grace=STRAGGLER_GRACE)
        else:
            self.report(call, [])

    def begin_end(self, call: Call, *, grace: float) -> None:
        """Ask the whole tree to end, and set the moment from which it is made to."""
        now = time.monotonic()
        call.deadline = min(call.deadline or now + grace, now + grace)
        call.killed += signal_all(self.tree(call), signal.SIGTERM)

    def tend(self) -> None:
        """Bring every ending tree one step further, and end what belongs to nobody."""
        while self.exited:
            call = self.exited.pop()
            if call.deadline is None:
                self.finish_or_sweep(call)
        now = time.monotonic()
        for call in list(self.calls.values()):
            if call.deadline is not None:
                self.tend_ending(call, now)
        if self.sweep_at is not None and now >= self.sweep_at:
            self.sweep_at = None
            self.sweep_unowned(until=now + KILL_SPELL)

    def tend_ending(self, call: Call, now: float) -> None:
        tree = self.tree(call)
        if not tree and call.status is not None:
            self.report(call, [])
        elif call.deadline is not None and now >= call.deadline:
            call.kills_since = call.kills_since or now
            if now - call.kills_since > GIVE_UP_AFTER:
                self.report(call, sorted(tree))
            else:
                self.kill(call, until=now + KILL_SPELL)

    def kill(self, call: Call, *, until: float) -> None:
        """Kill what there is, again and again for a while: a chain of forks is only caught by being faster than it.

        The dead are collected in between, so that the list of our children stays as short as the living are few.
        """
        while time.monotonic() < until:
            self.reap()
            tree = self.tree(call)
            if not tree:
                return
            call.killed += signal_all(tree, signal.SIGKILL)

    def report(self, call: Call, left: list[int]) -> None:
        """The call's one end."""
        if call.killed:
            self.reap()  # what was killed is gone from the process table too
        self.calls.pop(call.id, None)
        self.roots.pop(call.pid, None)
        self.forget_exit(call)
        self.send(("gone", call.id, call.pid, call.status or 0, call.killed, left))
        # A list of children read while children end can miss one: look again when things are quiet.
        if self.sweep_at is None:
            self.sweep_at = time.monotonic() + SWEEP_AFTER

    def tree(self, call: Call) -> dict[int, int]:
        """Every living process of a call, with its start time."""
        found: dict[int, int] = {}
        if call.status is None:
            add_descendants(call.pid, found)
        for pid in self.leftovers(call):
            add_descendants(pid, found)
        return found

    def leftovers(self, call: Call) -> list[int]:
        """Adopted processes that carry the call's mark; without marks, all that nobody else can own."""
        for _ in range(MOST_LOOKS):
            orphans = [pid for pid in self.children() if pid not in self.roots]
            if not orphans:
                return []
            if self.rttime_hard is None:
                return orphans if len(self.calls) == 1 else []
            marks = {pid: mark_of(pid) for pid in orphans}
            found = [pid for pid, mark in marks.items() if mark == call.mark]
            if found or None not in marks.values():
                return found
            # One ended while we looked, and may have left another that is not on our list: look again.
            self.reap()
        return []

    def children(self) -> list[int]:
        """Our own children, read from a file that stays open: this happens at the end of every call."""
        if self.own_children is None:
            return []
        listing = b""
        while piece := os.pread(self.own_children, 65536, len(listing)):
            listing += piece
        return [int(pid) for pid in listing.split()]

    def sweep_unowned(self, *, until: float) -> None:
        """Kill adopted processes whose call is over."""
        while time.monotonic() < until:
            self.reap()
            found = self.unowned()
            if not found:
                return
            signal_all(found, signal.SIGKILL)
        self.sweep_at = until

    def unowned(self) -> dict[int, int]:
        """Adopted processes that belong to no running call, with all below them."""
        owned = {call.mark for call in self.calls.values()}
        found: dict[int, int] = {}
        for pid in self.children():
            mark = mark_of(pid)
            if pid not in self.roots and mark not in owned and (mark or not self.calls):
                add_descendants(pid, found)
        return found

    def send(self, message: tuple[Any, ...]) -> None:
        payload = marshal.dumps(message)
        self.outbox += HEADER.pack(len(payload)) + payload
        self.flush()

    def flush(self) -> None:
        """Write what the application can take now; the rest waits."""
        while self.outbox:
            try:
                sent = self.channel.send(self.outbox)
            except BlockingIOError:
                return
            except OSError:
                self.outbox.clear()
                return
            del self.outbox[:sent]


CMSG_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def unregister(poll: select.poll, *fds: int | None) -> None:
    """Stop watching descriptors, also ones that are not watched."""
    for fd in fds:
        try:
            if fd is not None:
                poll.unregister(fd)
        except KeyError:
            pass


def take_messages(inbox: bytearray) -> Iterator[tuple[Any, ...]]:
    """Cut complete messages off the front of what has come."""
    while len(inbox) >= HEADER.size:
        (size,) = HEADER.unpack_from(inbox)
        if len(inbox) < HEADER.size + size:
            return
        payload = bytes(inbox[HEADER.size : HEADER.size + size])
        del inbox[: HEADER.size + size]
        yield marshal.loads(payload)  # noqa: S302 - the other end is our own process, over a private socket


def become_subreaper() -> bool:
    """Let orphaned descendants become our children; only Linux can."""
    if not LINUX:
        return False
    import ctypes

    status: int = ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return status == 0


def can_mark() -> int | None:
    """The hard limit under which marks can be set, or None where they cannot."""
    if not LINUX:
        return None
    _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    return hard if hard == resource.RLIM_INFINITY else None


def first_mark(keeper_pid: int) -> int:
    """Where a keeper's marks begin: every keeper of a machine has its own range."""
    return MARK_BASE + keeper_pid * MARKS_EACH


def kill_marked(first: int) -> None:
    """Kill whatever carries a mark of a keeper that is no more; the slow way, over all processes."""
    if not LINUX:
        return
    for _ in range(64):
        found = {}
        for name in os.listdir("/proc"):
            if name.isdigit() and first < (mark_of(int(name)) or 0) < first + MARKS_EACH:
                started = start_time(int(name))
                if started is not None:
                    found[int(name)] = started
        if not signal_all(found, signal.SIGKILL):
            return


def install_signals(keeper: Keeper) -> int:
    """Treat SIGTERM like the end of the application; where children cannot be polled, let their end wake the loop."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    if not LINUX:
        signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: keeper.close())
    return read_end


def lower_own_limits(limits: list[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    """Set our soft limits to what the child shall inherit, never below what we need ourselves."""
    restore = []
    for which, value in limits:
        soft, hard = resource.getrlimit(which)
        floor = own_use(which)
        wanted = max(value, floor)
        if hard == resource.RLIM_INFINITY or wanted <= hard:
            resource.setrlimit(which, (wanted, hard))
            restore.append((which, (soft, hard)))
    return restore


def own_use(which: int) -> int:
    """What the keeper itself needs of a resource at the moment of a spawn."""
    if which == resource.RLIMIT_CPU:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return int(usage.ru_utime + usage.ru_stime) + 2
    if which == resource.RLIMIT_AS and LINUX:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize() + (64 << 20)
    return 0


def tighten_limits(pid: int, limits: list[tuple[int, int]]) -> None:
    """Give the child the exact limits, hard ones too, so that it cannot raise them."""
    if not LINUX:
        return
    for which, value in limits:
        hard = value + 1 if which == resource.RLIMIT_CPU else value
        try:
            resource.prlimit(pid, which, (value, hard))
        except (ProcessLookupError, PermissionError, ValueError):
            continue


def open_children_list() -> int | None:
    """The list of our own children; we have one thread, so one file has them all."""
    try:
        return os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def children_of(pid: int) -> list[int]:
    """The direct children of all threads of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                found.extend(map(int, listing.read().split()))
    except OSError:
        pass
    return found


def add_descendants(pid: int, found: dict[int, int]) -> None:
    """Add a process and all below it, each with its start time, zombies left out."""
    waiting = [pid]
    while waiting:
        pid = waiting.pop()
        started = start_time(pid)
        if started is not None and pid not in found:
            found[pid] = started
            waiting.extend(children_of(pid))


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks; None when it has ended. Without /proc a living process has 0."""
    if not LINUX:
        try:
            os.kill(pid, 0)
        except OSError:
            return None
        return 0
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


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
    try:
        with open(f"/proc/{pid}/limits", "rb") as limits:
            for line in limits:
                if line.startswith(b"Max realtime timeout"):
                    soft = line.split()[3]
                    return int(soft) if soft.isdigit() and int(soft) > MARK_BASE else 0
    except OSError:
        pass
    return None


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
            signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except OSError:
        return False
    return True


def main() -> None:
    """Be the keeper of the process that started us."""
    channel_fd, owner = map(int, sys.argv[-2:])
    channel = socket.socket(fileno=channel_fd)
    channel.setblocking(False)
    os.set_inheritable(channel_fd, False)
    Keeper(channel, owner).run()
