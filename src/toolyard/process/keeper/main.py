"""The keeper: a small process that starts every child, and outlives none of them.

It is started with the numbers of a connected Unix socket, of a handle on the application's process and of a pipe that
its guard holds open. It is the parent of every child, so that it learns an exit from the process itself, and it adopts
what children leave behind (`reaper`). When the application ends, however it ends, the keeper kills all that is left;
should it be unable to, the guard does (`guard`). Being one small single-threaded process it can also do what a threaded
application must not: change its directory for the moment of a spawn, and fork (`spawn`).

Messages, both ends of which are the same interpreter:

    application → keeper    ("confine", own pids, proxy, options), first of all to a keeper in a sandbox
                            ("environment", variables), for every child from now on
                            ("spawn", id, argv, cwd, extra variables, limits, targets, session), with a descriptor for
                                each target
                            ("kill", id, grace)
                            ("release", id), of a shell that has ended: report it gone when nothing of it is left
    keeper → application    ("hello", count, count), with as many descriptors: the listening socket of the proxy if
                                there is one, and what it takes to connect sockets for those inside; or
                                ("unconfined", reason) and nothing more
                            ("failed", id, errno, what)
                            ("started", id, pid, first mark) and ("exited", id, wait status), of shells only; the first
                                with a handle on the process where its number means nothing outside
                            ("gone", id, pid, wait status, cut short, left): nothing of its tree is left

A child with a session, `(terminal, folder, groups)`, is a shell. The terminal becomes its controlling one; in a
sandbox, where its path leads nowhere, the descriptor that was sent for the target TERMINAL does. The shell has a range
of marks, so that its commands can be told apart. What it leaves running goes on after its own end until somebody asks
for a kill or nothing is left; then its folder and its control groups are removed.
"""

from __future__ import annotations

import _socket as socket  # the public module takes longer to import than everything else here
import os
import select
import sys

from toolyard.process.keeper.reaper import Call, Reaper
from toolyard.process.keeper.spawn import CATCHABLE, Marks, fork_limited, reason_of, spawn_unlimited
from toolyard.process.keeper.wire import TERMINAL, Channel, close_all
from toolyard.process.process_tree import LINUX, become_subreaper, first_mark, go_on_without_parent

TYPE_CHECKING = False  # `typing` takes longer to import than all that is needed here
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # the public module wraps all numbers in enums, which takes long to import

MARKS_OF_A_SHELL = 1 << 20


class Keeper:
    """The loop: does what the application asks for until it is gone, then ends all that is left."""

    def __init__(self, channel: Channel, owners: list[int], starter: int) -> None:
        self.channel = channel
        self.owners = owners
        """Become readable when the application ends, even if a process that it forked holds the channel open, or when
        the guard does."""
        become_subreaper()
        go_on_without_parent()
        # Marks begin where the application looks for them, which knows the process that it started.
        self.marks = Marks(first_mark(starter))
        self.reaper = Reaper(channel, has_marks=self.marks.are_available)
        self.environment: dict[bytes, bytes] = {}
        self.has_own_pids = self.is_confined = False
        self.proxy: list[int] = []
        self.supervision: list[int] = []
        self.is_closing = False
        self.asked_to_close = False

    def confine(self) -> bool:
        """Give up what the first message says; tell whether that could be done, without which nothing is started."""
        from toolyard.process.sandbox.backends.kernel import confine

        self.channel.set_timeout(None)
        message = self.channel.wait()
        self.channel.set_timeout(0)
        if message is None:
            return False
        _, self.has_own_pids, proxy, options = message
        self.is_confined = True
        try:
            self.proxy = [open_port()] if proxy else []
            confined = confine(**options)
            self.marks.set, self.supervision = confined.set_mark, confined.supervision
        except OSError as error:
            self.channel.send(("unconfined", str(error)))
            return False
        return True

    def run(self) -> None:
        """Serve until the application is gone, then until its children are."""
        woken = install_signals(self)
        poll, channel, owners = self.reaper.poll, self.channel, self.owners
        for fd in (woken, channel.fileno(), *owners):
            poll.register(fd, select.POLLIN)
        channel.send(("hello", len(self.proxy), len(self.supervision)), [*self.proxy, *self.supervision])
        while not (self.is_closing and not self.reaper.calls):
            ready = {fd for fd, _ in poll.poll(self.reaper.poll_timeout())}
            # Looked up now: while messages are handled, the descriptor of one that ended may become that of a new one.
            ended = [call for fd in ready if (call := self.reaper.exits.get(fd))]
            if woken in ready:
                os.read(woken, 4096)
            if (self.asked_to_close or not ready.isdisjoint(owners)) and not self.is_closing:
                self.close()
            elif channel.fileno() in ready and not self.is_closing:
                self.receive()
            if self.is_closing:
                unregister(poll, channel.fileno(), *owners)
            # After the messages: a kill among them has collected exits too, to see what had ended by itself before it.
            self.reaper.collect(ended)
            self.reaper.advance()
            channel.flush()
        self.reaper.kill_children()

    def close(self) -> None:
        """The application or the guard is gone: everything must end, and nothing more is started."""
        self.is_closing = True
        self.channel.send(("closing",))
        self.reaper.end_all()

    def receive(self) -> None:
        messages = self.channel.receive()
        if messages is None:
            self.close()
            return
        for message in messages:
            self.handle(message)

    def handle(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("spawn", id, argv, cwd, extra, limits, targets, session):
                fds = self.channel.take_fds(len(targets))
                try:
                    streams = list(zip(fds, targets, strict=True))
                    self.spawn(id, argv, cwd, self.environment | extra, limits, streams, session)
                finally:
                    close_all(fds)
            case ("environment", variables):
                self.environment = variables
            case ("kill", id, grace):
                self.reaper.kill(id, grace=grace)
            case ("release", id):
                self.reaper.release(id)

    def spawn(
        self,
        id: int,
        argv: list[bytes],
        cwd: bytes,
        env: dict[bytes, bytes],
        limits: list[tuple[int, int]],
        fds: list[tuple[int, int]],
        session: tuple[bytes, bytes, list[bytes]] | None,
    ) -> None:
        """Start a child in its own session, with the directory and the mark that it inherits from us.

        A descriptor that is not given is inherited too: our standard input is at its end.
        """
        try:
            os.chdir(cwd)
        except (OSError, ValueError) as error:
            self.channel.send(("failed", id, reason_of(error), "cwd"))
            return
        path, folder, groups = session or (None, None, [])
        terminal = next((fd for fd, target in fds if target == TERMINAL), path)
        streams = [(fd, target) for fd, target in fds if target != TERMINAL]
        marks = self.marks.carry_next(MARKS_OF_A_SHELL if session else 1)
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
            self.marks.after_spawn()
        self.reaper.add(Call(id, pid, marks, folder, groups))
        if session:
            self.channel.send(("started", id, pid, marks.start), [os.pidfd_open(pid)] if self.has_own_pids else [])


def open_port() -> int:
    """A port in the sandbox's own network, at which the application will answer from outside."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener.detach()


def unregister(poll: select.poll, *fds: int) -> None:
    """Stop watching descriptors, also ones that are not watched."""
    for fd in fds:
        try:  # noqa: SIM105 - contextlib takes longer to import than all this
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
    if keeper.is_confined:
        # Whoever is inside may send us signals, but must not end the others by them.
        for number in CATCHABLE - {signal.SIGCHLD}:
            signal.signal(number, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: setattr(keeper, "asked_to_close", True))
    return read_end


def main() -> None:
    channel_fd, owner_exit, guard_gone, guard_alive, starter = map(int, sys.argv[-5:])
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # an application without standard streams must not leave their numbers to descriptors of ours
    os.close(spare)
    close_all([guard_alive])  # the guard's own end of the pipe
    owners = [fd for fd in (owner_exit, guard_gone) if fd >= 0]
    for fd in owners:
        os.set_inheritable(fd, False)
    keeper = Keeper(Channel(channel_fd), owners, starter or os.getpid())
    if "confined" not in sys.argv or keeper.confine():
        keeper.run()
    os._exit(0)  # whoever closes an application waits for this, and there is nothing to take apart
