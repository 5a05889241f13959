"""The keeper: a small process that starts every child, and outlives none of them.

Started with two numbers: a connected Unix socket and a handle on the application's process. It is the parent of every
child: an exit is learnt from the process itself. It is a *subreaper*: what a child leaves behind by double fork or
`setsid` becomes a child of the keeper instead of vanishing. When the application ends, however it ends, the keeper
kills all that is left. Being one small single-threaded process it can also do what a threaded application must not:
change its own directory for the moment of a spawn, and fork to set limits.

Which call a leftover belongs to is written where a process cannot lose it by accident: the soft limit on real-time
processor time (RLIMIT_RTTIME). Every descendant inherits it, it means nothing to ordinary processes, and ours holds a
number of our own choice.

Messages, both ends of which are the same interpreter:

    application → keeper    ("confine", first mark, own pids, proxy, options), first of all to a keeper in a sandbox
                            ("environment", variables), for every child from now on
                            ("spawn", id, argv, cwd, extra variables, limits, targets, home), with a descriptor for
                                each target
                            ("release", id), of a shell that has ended: forget it when nothing of it is left
                            ("kill", id, grace)
    keeper → application    ("hello", protections), with the port of the proxy if there is one, or
                                ("unconfined", reason) and nothing more
                            ("failed", id, errno, what)
                            ("started", id, pid, first mark) and ("exited", id, wait status), of one with a home only;
                                the first with a handle on the process where its number means nothing outside
                            ("gone", id, pid, wait status, cut short, left): nothing of its tree is left

A child with a home, `(terminal, folder, groups)`, is a shell that lasts: the terminal becomes its controlling one (in a
sandbox, where its path leads nowhere, the descriptor that was sent for the target TERMINAL does), it has a range of
marks so that its commands can be told apart, what it leaves running goes on after its own end until somebody asks for a
kill or nothing is left, and then its folder and its control groups are removed.
"""

from __future__ import annotations

import _socket as socket  # the public module takes longer to import than everything else here
import os
import resource
import select
import sys
import time

from toolyard.process.keeper.groups import remove_group
from toolyard.process.keeper.spawn import CATCHABLE, fork_limited, reason_of, spawn_unlimited
from toolyard.process.keeper.wire import KeeperChannel
from toolyard.process.process_tree import (
    LINUX,
    become_subreaper,
    can_mark,
    descendants,
    first_mark,
    mark_of,
    open_children_list,
    signal_all,
    signal_one,
    stop_tree,
)

TYPE_CHECKING = False  # `typing` takes longer to import than all that is needed here
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
    from typing import Any
else:
    import _signal as signal  # the public module wraps all numbers in enums, which takes long to import

STRAGGLER_GRACE = 0.5
"""How long what outlived its root may take to end by itself after SIGTERM."""
GIVE_UP_AFTER = 3.0
"""How long to try SIGKILL on processes that do not die (in uninterruptible sleep) before reporting them."""
TICK = 0.01
KILL_SPELL = 0.02
"""How long at a time the keeper only kills, before it looks after its other calls again."""
REAPS_AT_ONCE = 2048
REAP_EVERY = 1.0
"""How long an adopted process that has ended may stay in the table while a call runs."""
SWEEP_AFTER = 0.1
MARKS_OF_A_SHELL = 1 << 20
TERMINAL = -1
"""In the place of a descriptor's number: this one is the terminal."""


class Call:
    """One child and everything that descends from it."""

    __slots__ = (
        *(
            "cut_short",
            "deadline",
            "exit_fd",
            "folder",
            "groups",
            "id",
            "killed",
            "kills_since",
            "marks",
            "pid",
            "released",
        ),
        "status",
    )

    def __init__(self, id: int, pid: int, marks: range, folder: bytes | None, groups: list[bytes]) -> None:
        self.id = id
        self.pid = pid
        self.marks = marks
        self.folder = folder
        self.groups = groups
        """Of a shell that lasts: what it leaves running may go on, and this is removed with the last of it."""
        self.released = False
        """Whether the application has taken what an ended shell left in its folder."""
        self.exit_fd = os.pidfd_open(pid) if LINUX else None
        """Becomes readable when the root ends."""
        self.status: int | None = None
        self.killed = 0
        self.cut_short = False
        """Whether the root was still running when its end was asked for."""
        self.deadline: float | None = None
        """When SIGTERM gives way to SIGKILL; None while nobody wants the tree to end."""
        self.kills_since: float | None = None


class Keeper:
    """The loop: requests in, exits out, and whatever is left over killed."""

    def __init__(self, channel: KeeperChannel, owner_exit: int | None) -> None:
        self.channel = channel
        self.owner_exit = owner_exit
        """Becomes readable when the application ends, even if a process that it forked holds the channel open."""
        self.calls: dict[int, Call] = {}
        self.roots: dict[int, Call] = {}
        self.exits: dict[int, Call] = {}
        self.environment: dict[bytes, bytes] = {}
        self.subreaper = become_subreaper()
        self.rttime_hard = can_mark()
        self.rttime_soft = resource.getrlimit(resource.RLIMIT_RTTIME)[0] if LINUX else 0
        self.last_mark = first_mark(os.getpid())
        self.own_pids = self.confined = False
        self.proxy: list[int] = []
        self.closing = False
        self.asked_to_close = False
        self.more_to_reap = False
        self.poll = select.poll()
        self.exited: list[Call] = []
        """Calls whose root has ended and that have not been looked at since."""
        self.own_children = open_children_list()
        self.sweep_at: float | None = None
        self.release_at = 0.0

    def confine(self) -> bool:
        """Give up what the first message says; tell whether that could be done, without which nothing is started."""
        from toolyard.process.sandbox.backends.kernel import confine

        messages = self.channel.wait()
        if not messages:
            return False
        [(_, self.last_mark, self.own_pids, proxy, options)] = messages
        self.confined = True
        try:
            self.proxy = open_port() if proxy else []
            confine(**options)
        except OSError as error:
            self.channel.send(("unconfined", str(error)))
            return False
        return True

    def run(self) -> None:
        """Serve until the application is gone, then until its children are."""
        woken = install_signals(self)
        self.poll.register(woken, select.POLLIN)
        self.poll.register(self.channel, select.POLLIN)
        owner_exit = self.owner_exit
        if owner_exit is not None:
            self.poll.register(owner_exit, select.POLLIN)
        self.channel.send(("hello", {"subreaper": self.subreaper, "marks": self.rttime_hard is not None}), self.proxy)
        while not (self.closing and not self.calls):
            ready = {fd for fd, _ in self.poll.poll(self.poll_timeout())}
            # Looked up now: while messages are handled, the descriptor of one that ended may become that of a new one.
            ended = [call for fd in ready if (call := self.exits.get(fd))]
            if woken in ready:
                os.read(woken, 4096)
            if (owner_exit in ready or self.asked_to_close) and not self.closing:
                self.close()
            elif self.channel.fileno() in ready and not self.closing:
                self.receive()
            if self.closing:
                unregister(self.poll, self.channel.fileno(), owner_exit)
            if not self.collect(ended):
                self.reap()
            self.tend()
            self.channel.flush()
        self.kill_children()

    def poll_timeout(self) -> int | None:
        if self.more_to_reap:
            return 0
        if self.channel.is_stalled or any(call.deadline is not None for call in self.calls.values()):
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
        """Do what the messages say that have come."""
        messages = self.channel.receive()
        if messages is None:
            self.close()
            return
        for message in messages:
            self.handle(message)

    def handle(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("spawn", id, argv, cwd, extra, limits, targets, home):
                fds = [(self.channel.take_fd(), target) for target in targets]
                try:
                    self.spawn(id, argv, cwd, self.environment | extra, limits, fds, home)
                finally:
                    for fd, _ in fds:
                        os.close(fd)
            case ("release", id):
                if call := self.calls.get(id):
                    call.released = True
                    self.release_lasting()
            case ("environment", variables):
                self.environment = variables
            case ("kill", id, grace):
                self.reap()  # what has ended by itself until now was not cut short
                if call := self.calls.get(id):
                    call.cut_short = call.cut_short or call.status is None
                    self.begin_end(call, grace=grace)

    def spawn(
        self,
        id: int,
        argv: list[bytes],
        cwd: bytes,
        env: dict[bytes, bytes],
        limits: list[tuple[int, int]],
        fds: list[tuple[int, int]],
        home: tuple[bytes, bytes, list[bytes]] | None,
    ) -> None:
        """Start a child in its own session, with the mark that it inherits from us.

        A descriptor that is not given is inherited too: our standard input is at its end.
        """
        try:
            os.chdir(cwd)
        except (OSError, ValueError) as error:
            self.channel.send(("failed", id, reason_of(error), "cwd"))
            return
        path, folder, groups = home or (None, None, [])
        terminal = next((fd for fd, target in fds if target == TERMINAL), path)
        streams = [(fd, target) for fd, target in fds if target != TERMINAL]
        marks = self.next_marks(MARKS_OF_A_SHELL if home else 1)
        try:
            if limits or isinstance(terminal, int):
                pid = fork_limited(argv, env, streams, limits, terminal)
            else:
                pid = spawn_unlimited(argv, env, streams, terminal)
        except (OSError, ValueError, IndexError) as error:
            self.channel.send(("failed", id, reason_of(error), "exec"))
            return
        finally:
            os.chdir("/")
            self.drop_mark()
        call = self.calls[id] = self.roots[pid] = Call(id, pid, marks, folder, groups)
        if call.exit_fd is not None:
            self.exits[call.exit_fd] = call
            self.poll.register(call.exit_fd, select.POLLIN)
        if home:
            self.channel.send(("started", id, pid, marks.start), [os.pidfd_open(pid)] if self.own_pids else [])

    def next_marks(self, count: int) -> range:
        """Set the mark that the next child inherits, the first of a range that is its own; empty without marks."""
        if self.rttime_hard is None:
            return range(0)
        marks = range(self.last_mark + 1, self.last_mark + 1 + count)
        self.last_mark += count
        resource.setrlimit(resource.RLIMIT_RTTIME, (marks.start, self.rttime_hard))
        return marks

    def drop_mark(self) -> None:
        """Carry again the mark that we were given ourselves, if any, so that a keeper around us finds us by it."""
        if self.rttime_hard is not None:
            resource.setrlimit(resource.RLIMIT_RTTIME, (self.rttime_soft, self.rttime_hard))

    def collect(self, ended: list[Call]) -> bool:
        """Take in the exits of roots that the poll told of; tell whether there were any."""
        for call in ended:
            if call.status is None:
                _, status = os.waitpid(call.pid, 0)
                self.take_exit(call, status)
        return bool(ended)

    def take_exit(self, call: Call, status: int) -> None:
        """The root of a call has ended."""
        del self.roots[call.pid]
        call.status = status
        self.exited.append(call)
        self.forget_exit(call)

    def reap(self) -> None:
        """Collect ended children, ours or adopted, but not for ever: a chain of forks ends them as fast as we can."""
        self.more_to_reap = True
        for _ in range(REAPS_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if pid == 0:
                self.more_to_reap = False
                return
            if call := self.roots.get(pid):
                self.take_exit(call, status)

    def forget_exit(self, call: Call) -> None:
        exit_fd, call.exit_fd = call.exit_fd, None
        if exit_fd is not None:
            del self.exits[exit_fd]
            self.poll.unregister(exit_fd)
            os.close(exit_fd)

    def finish_or_sweep(self, call: Call) -> None:
        """The root has ended: report at once when it left nothing, else end what it left."""
        if call.folder is not None:
            self.channel.send(("exited", call.id, call.status))
            return
        if not LINUX:
            signal_one(call.pid, 0, signal.SIGKILL)  # the group is all we know of the tree there
        if any(pid not in self.roots for pid in self.children()):
            self.reap()  # only what has not ended by itself is left
            if self.is_left(call):
                self.begin_end(call, grace=STRAGGLER_GRACE)
                return
        self.report(call, [])

    def release_lasting(self) -> None:
        """Forget shells that have ended and left nothing, or nothing any more."""
        self.reap()
        for call in list(self.calls.values()):
            if call.released and not self.is_left(call):
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
        if now >= self.release_at:
            self.release_at = now + REAP_EVERY
            self.release_lasting()

    def tend_ending(self, call: Call, now: float) -> None:
        if not self.is_left(call):
            self.report(call, [])
        elif call.deadline is not None and now >= call.deadline:
            call.kills_since = call.kills_since or now
            if now - call.kills_since > GIVE_UP_AFTER:
                self.report(call, sorted(self.tree(call)))
            else:
                call.killed += self.kill(lambda: list(self.heads(call)), until=now + KILL_SPELL)

    def kill(self, heads_now: Callable[[], list[int]], *, until: float) -> int:
        """Kill what there is, again and again for a while: some chains of forks are only caught by being faster.

        The dead are collected in between, so that the list of our children stays as short as the living are few.
        """
        killed = 0
        while time.monotonic() < until:
            self.reap()
            heads = heads_now()
            if not heads:
                break
            killed += signal_all(stop_tree(heads_now), signal.SIGKILL)
        return killed

    def report(self, call: Call, left: list[int]) -> None:
        """The call's one end."""
        if call.killed:
            self.reap()  # what was killed is gone from the process table too
        self.calls.pop(call.id, None)
        self.roots.pop(call.pid, None)
        self.forget_exit(call)
        if call.folder is not None:
            remove_folder(call.folder)
        for group in call.groups:
            remove_group(group)
        self.channel.send(("gone", call.id, call.pid, call.status or 0, call.cut_short, left))
        # A list of children read while children end can miss one: look again when things are quiet.
        if self.sweep_at is None:
            self.sweep_at = time.monotonic() + SWEEP_AFTER

    def tree(self, call: Call) -> dict[int, int]:
        """Every living process of a call, with its start time."""
        return descendants(self.heads(call))

    def is_left(self, call: Call) -> bool:
        """Whether anything of a call is left: whatever of it lives is one of its heads, or below one.

        A head that has ended counts until we collect it: what it forked last may be our child only since we looked.
        """
        return any(True for _ in self.heads(call))

    def heads(self, call: Call) -> Iterator[int]:
        """Our own children of a call: its root, and the adopted ones that carry its mark."""
        if call.status is None:
            yield call.pid
        for pid in self.children():
            if pid not in self.roots and self.belongs(pid, call):
                yield pid

    def belongs(self, orphan: int, call: Call) -> bool:
        """Whether an adopted process is of a call; without marks, when it can be of no other."""
        return len(self.calls) == 1 if self.rttime_hard is None else mark_of(orphan) in call.marks

    def children(self) -> list[int]:
        """Our own children, read from a file that stays open: this happens at the end of every call."""
        if self.own_children is None:
            return []
        listing = b""
        while piece := os.pread(self.own_children, 65536, len(listing)):
            listing += piece
        return [int(pid) for pid in listing.split()]

    def sweep_unowned(self, *, until: float) -> None:
        """Kill adopted processes whose call is over, and look again until there are none."""
        if self.unowned():
            self.kill(self.unowned, until=until)
            self.sweep_at = time.monotonic() + SWEEP_AFTER

    def unowned(self) -> list[int]:
        """Adopted processes that belong to no running call."""
        owned = [call.marks for call in self.calls.values()]
        marks = {pid: mark_of(pid) for pid in self.children() if pid not in self.roots}
        return [
            pid
            for pid, mark in marks.items()
            if not any(mark in range_ for range_ in owned) and (mark or not self.calls)
        ]

    def kill_children(self) -> None:
        """Before we go: whatever is still our child, also what lost its mark."""
        give_up_at = time.monotonic() + GIVE_UP_AFTER
        while self.children() and time.monotonic() < give_up_at:
            self.kill(self.children, until=give_up_at)


def open_port() -> list[int]:
    """A port in the sandbox's own network, at which the application will answer from outside."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return [listener.detach()]


def remove_folder(folder: bytes) -> None:
    """Remove a shell's folder with the files in it; it has no folders of its own, and some files may just have gone."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:  # noqa: SIM105 - contextlib takes longer to import than all this
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass
    try:  # noqa: SIM105
        os.rmdir(folder)
    except OSError:
        pass


def unregister(poll: select.poll, *fds: int | None) -> None:
    """Stop watching descriptors, also ones that are not watched."""
    for fd in fds:
        try:
            if fd is not None:
                poll.unregister(fd)
        except KeyError:
            pass


def install_signals(keeper: Keeper) -> int:
    """Treat SIGTERM like the end of the application; where children cannot be polled, let their end wake the loop."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # an application that blocks signals must not make us deaf
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    # One that ignores SIGCHLD would let the kernel collect our children, and their exits would be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL if LINUX else lambda *_: None)
    if keeper.confined:
        ignore_all()
        return read_end
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: setattr(keeper, "asked_to_close", True))
    return read_end


def ignore_all() -> None:
    """In a sandbox whoever is inside may send us signals, but not end the others by them."""
    for number in CATCHABLE - {signal.SIGCHLD}:
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """Be the keeper of the process that started us."""
    channel_fd, owner_exit = map(int, sys.argv[-2:])
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # an application without standard streams must not leave their numbers to descriptors of ours
    os.close(spare)
    if owner_exit >= 0:
        os.set_inheritable(owner_exit, False)
    keeper = Keeper(KeeperChannel(channel_fd), owner_exit if owner_exit >= 0 else None)
    if "confined" in sys.argv and not keeper.confine():
        return
    keeper.run()
