"""The application's end of the keeper: starts it on first use, sends spawns and kills, hears of ends."""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.errors import CannotStart, KeeperLost, ProcessError
from toolyard.process.keeper_wire import pack_message, take_messages
from toolyard.process.process_tree import first_mark, kill_marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Ended", "Home", "KeeperLink", "Spawned"]

PACKAGE_FOLDER = Path(__file__).parents[2]
START_KEEPER = "import sys; sys.path.append(sys.argv[1]); from toolyard.process.keeper import main; main()"
"""Without the environment and the installed packages, which it does not need: it starts in milliseconds."""
CLOSE_PATIENCE = 10.0
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a child a shell that lasts: what it leaves running goes on until its tree is killed."""

    terminal: bytes
    """The path of a terminal that nobody controls yet."""
    folder: bytes
    """Removed when nothing of the tree is left, even if the application is gone by then."""
    groups: Sequence[bytes] = ()
    """The folders of its control groups, removed likewise."""
    on_started: Callable[[int, int], None]
    """Hears its process id and the first of the marks that are its own."""
    on_exited: Callable[[int], None]
    """Hears its wait status; what it left may still run."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended, with nothing of its tree left (or the pids of what could not be killed)."""

    pid: int
    wait_status: int
    cut_short: bool
    """Whether it was still running when its end was asked for."""
    left: Sequence[int]


class Spawned:
    """A child that was asked for."""

    __slots__ = ("_link", "_outcome", "_waiter", "home", "id")

    def __init__(self, link: KeeperLink, id: int, home: Home | None) -> None:
        self.id = id
        self.home = home
        self._link = link
        self._outcome: Ended | ProcessError | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def ended(self, *, within: float | None = None) -> Ended | None:
        """Wait until the child and its tree are gone; None when that takes too long. May be asked again."""
        if self._outcome is None:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            alarm = loop.call_later(within, self._wake) if within is not None else None
            try:
                await self._waiter
            finally:
                if alarm:
                    alarm.cancel()
        if isinstance(self._outcome, ProcessError):
            raise self._outcome
        return self._outcome

    def kill(self, *, grace: float) -> None:
        """Ask the whole tree to end, and make it after `grace` seconds."""
        self._link.kill(self.id, grace)

    def release(self) -> None:
        """Of a shell that has ended: what is in its folder is not needed any more."""
        self._link.release(self.id)

    def settle(self, outcome: Ended | ProcessError) -> None:
        """The keeper's word; only the first counts."""
        self._outcome = self._outcome or outcome
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class KeeperLink:
    """One keeper process for one event loop, started when the first child is."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._waiting: dict[int, Spawned] = {}
        self._next_id = 0
        self.protections: Mapping[str, bool] = {}
        """What the keeper can do on this system, known after its first message."""

    @property
    def pid(self) -> int | None:
        """The keeper's process id, while it runs."""
        return self._connection.process.pid if self._connection else None

    def spawn(
        self,
        argv: Sequence[bytes],
        *,
        cwd: bytes,
        env: Mapping[bytes, bytes],
        extra_env: Mapping[bytes, bytes],
        limits: Sequence[tuple[int, int]],
        fds: Mapping[int, int],
        home: Home | None = None,
    ) -> Spawned:
        """Start a child with `fds` under the numbers they are given for; takes them over and closes them.

        Without a descriptor 0 its standard input is at its end.
        """
        try:
            connection = self._connect()
        except ProcessError:
            close_all(fds.values())
            raise
        self._next_id += 1
        spawned = self._waiting[self._next_id] = Spawned(self, self._next_id, home)
        if env is not connection.environment:
            # Most children get the same variables as the one before, so those are sent only when they are others.
            connection.environment = env
            connection.post(("environment", dict(env)))
        where = (home.terminal, home.folder, list(home.groups)) if home else None
        message = ("spawn", spawned.id, list(argv), cwd, dict(extra_env), list(limits), list(fds), where)
        connection.post(message, list(fds.values()))
        return spawned

    def start(self) -> None:
        """Start the keeper now, for a child that is about to come."""
        self._connect()

    def kill(self, id: int, grace: float) -> None:
        """Ask for the end of a child's tree; one that has ended already is not asked."""
        if self._connection and id in self._waiting:
            self._connection.post(("kill", id, grace))

    def release(self, id: int) -> None:
        """Let go of a shell that has ended."""
        if self._connection and id in self._waiting:
            self._connection.post(("release", id))

    def give_up(self) -> None:
        """End a keeper that does not answer, and all that it owns."""
        if self._connection is not None:
            self._lost(self._connection)

    async def aclose(self) -> None:
        """End the keeper and with it every child; returns when they are gone."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.close()
        self._fail_all(KeeperLost("the application was closed while a child was running"))
        # A thread, because the keeper may need its grace to end what still runs.
        await asyncio.to_thread(wait_or_kill, connection)

    def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._connection is not None and self._connection.process.poll() is not None:
            self._lost(self._connection)
        if self._connection is None:
            self._connection = Connection.open(loop, on_message=self._handle, on_lost=self._lost)
        elif self._connection.loop is not loop:
            raise KeeperLost("this application belongs to another event loop")
        return self._connection

    def _handle(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("gone", id, pid, status, cut_short, left):
                ended = Ended(pid=pid, wait_status=status, cut_short=cut_short, left=left)
                self._settle(id, ended)
            case ("started", id, pid, mark):
                if (spawned := self._waiting.get(id)) and spawned.home:
                    spawned.home.on_started(pid, mark)
            case ("exited", id, status):
                if (spawned := self._waiting.get(id)) and spawned.home:
                    spawned.home.on_exited(status)
            case ("failed", id, errno, what):
                self._settle(id, cannot_start(errno, what))
            case ("hello", protections):
                self.protections = protections

    def _lost(self, connection: Connection) -> None:
        """The keeper died under us: its children have no owner any more, so they are found by their mark and killed."""
        if connection is not self._connection:
            return  # we know already, and there may be a new keeper by now
        self._connection = None
        try:
            connection.close()
            kill_keeper(connection)
        finally:
            self._fail_all(KeeperLost("the process keeper ended unexpectedly; the running calls were lost"))

    def _fail_all(self, reason: KeeperLost) -> None:
        for id in list(self._waiting):
            self._settle(id, reason)

    def _settle(self, id: int, outcome: Ended | ProcessError) -> None:
        if spawned := self._waiting.pop(id, None):
            spawned.settle(outcome)


class Connection:
    """A running keeper and the socket to it; messages that do not fit at once wait for their turn."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        loop: asyncio.AbstractEventLoop,
        on_message: Callable[[tuple[Any, ...]], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self.process = process
        self.loop = loop
        self.first_mark = first_mark(process.pid)
        self._channel = channel
        self._on_message = on_message
        self._on_lost = on_lost
        self._inbox = bytearray()
        self._outbox: deque[tuple[bytes, Sequence[int]]] = deque()
        self._stalled = False
        self.environment: Mapping[bytes, bytes] | None = None
        """What the keeper was last told that children get."""

    @classmethod
    def open(
        cls,
        loop: asyncio.AbstractEventLoop,
        *,
        on_message: Callable[[tuple[Any, ...]], None],
        on_lost: Callable[[Connection], None],
    ) -> Connection:
        """Start a keeper and listen to it."""
        ours, theirs = socketpair()
        try:
            process = start_keeper(theirs)
        except CannotStart:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        connection = cls(process, ours, loop, on_message, on_lost)
        loop.add_reader(ours, connection._receive)
        return connection

    def post(self, message: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
        """Send a message, at once or as soon as the keeper takes more; closes the descriptors that went with it."""
        self._outbox.append((pack_message(message), fds))
        if len(self._outbox) == 1:
            self._flush()

    def close(self) -> None:
        """Hang up, which tells the keeper to end everything."""
        self.loop.remove_reader(self._channel)
        self.loop.remove_writer(self._channel)
        self._channel.close()
        for _, fds in self._outbox:
            close_all(fds)
        self._outbox.clear()

    def _flush(self) -> None:
        """Write as much as goes; the descriptors travel with a message's first byte."""
        while self._outbox:
            data, fds = self._outbox[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                sent = self._channel.sendmsg([data], rights, NO_SIGNAL)
            except BlockingIOError:
                self._stalled = True
                self.loop.add_writer(self._channel, self._flush)
                return
            except OSError:
                self.loop.call_soon(self._on_lost, self)
                return
            close_all(fds)
            if sent < len(data):
                self._outbox[0] = (data[sent:], ())
            else:
                self._outbox.popleft()
        if self._stalled:
            self._stalled = False
            self.loop.remove_writer(self._channel)

    def _receive(self) -> None:
        try:
            data = self._channel.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._on_lost(self)
            return
        self._inbox += data
        for message in take_messages(self._inbox):
            self._on_message(message)


def socketpair() -> tuple[socket.socket, socket.socket]:
    try:
        return socket.socketpair()
    except OSError as error:
        raise CannotStart(f"the process keeper cannot be reached: {error}", errno=error.errno or 0) from error


def start_keeper(channel: socket.socket) -> subprocess.Popen[bytes]:
    """Start the keeper apart from our terminal and environment, holding nothing of ours but the channel."""
    try:
        return subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                START_KEEPER,
                str(PACKAGE_FOLDER),
                str(channel.fileno()),
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[channel.fileno()],
            start_new_session=True,
            env={},
            cwd="/",
        )
    except OSError as error:
        raise CannotStart(f"the process keeper does not start: {error}", errno=error.errno or 0) from error


def wait_or_kill(connection: Connection) -> None:
    """Let the keeper finish its work; one that hangs is killed."""
    try:
        connection.process.wait(CLOSE_PATIENCE)
    except subprocess.TimeoutExpired:
        kill_keeper(connection)


def kill_keeper(connection: Connection) -> None:
    """Kill a keeper and, in its place, all that it owned."""
    connection.process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # one that the kernel itself holds
        connection.process.wait(CLOSE_PATIENCE)
    kill_marked(connection.first_mark)


def cannot_start(errno: int, what: str) -> CannotStart:
    """The reason in words: the working directory or the program."""
    subject = "working directory" if what == "cwd" else "program"
    return CannotStart(f"{subject}: {os.strerror(errno)}", errno=errno)


def close_all(fds: Iterable[int]) -> None:
    """Close descriptors that may be closed already."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
