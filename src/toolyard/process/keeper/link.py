"""The application's end of the keeper: starts it on first use, sends spawns and kills, hears of ends."""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.errors import CannotStart, KeeperLost, ProcessError
from toolyard.process.keeper.start import begin_keeper, enter
from toolyard.process.keeper.wire import pack_message, take_messages
from toolyard.process.process_tree import kill_marked, pid_of_handle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from toolyard.process.keeper.start import StartedKeeper
    from toolyard.process.sandbox.sandbox import Sandbox


CLOSE_PATIENCE = 10.0
TERMINAL = -1
"""For the keeper: the descriptor of this number is the terminal of a shell."""
ROOM_FOR_FDS = socket.CMSG_SPACE(16 * array.array("i").itemsize)
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
    """One keeper process for one event loop, started when the first child is, in a sandbox if there is one."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.sandbox = sandbox
        self._connection: Connection | None = None
        self._begun: StartedKeeper | None = None
        """A keeper that is on its way, until the first child needs it."""
        self._waiting: dict[int, Spawned] = {}
        self._next_id = 0
        self.protections: Mapping[str, bool] = {}
        """What the keeper can do on this system, known after its first message."""

    @property
    def pid(self) -> int | None:
        """The keeper's process id, while it runs."""
        return self._connection.keeper_pid if self._connection else None

    @property
    def is_busy(self) -> bool:
        """Whether a child was asked for that is not gone."""
        return bool(self._waiting)

    @property
    def exchange(self) -> str | None:
        """A folder that both the application and its children can write; None for any, where nothing keeps them in."""
        return self.sandbox.folder().exchange if self._connect().confinement and self.sandbox else None

    @property
    def own_pids(self) -> bool:
        """Whether children have other process numbers among themselves than here."""
        connection = self._connection
        return connection is not None and connection.confinement is not None and connection.confinement.own_pids

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
            if home and connection.confinement:
                fds = {**fds, TERMINAL: open_terminal(home.terminal)}
        except ProcessError:
            close_all(fds.values())
            raise
        self._next_id += 1
        spawned = self._waiting[self._next_id] = Spawned(self, self._next_id, home)
        if env is not connection.environment:
            # Most children get the same variables as the one before, so those are sent only when they are others.
            connection.environment = env
            connection.post(("environment", self._inside(connection, env)))
        where = (home.terminal, home.folder, list(home.groups)) if home else None
        message = ("spawn", spawned.id, list(argv), cwd, dict(extra_env), list(limits), list(fds), where)
        connection.post(message, list(fds.values()))
        return spawned

    def _inside(self, connection: Connection, env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """The variables as they are true where the children are."""
        if connection.confinement is None or self.sandbox is None:
            return dict(env)
        port = connection.port.getsockname()[1] if connection.port else None
        return self.sandbox.inside(connection.confinement, env, proxy_port=port)

    def start(self) -> None:
        """Start the keeper now, for a child that is about to come, and do not wait for it."""
        if self._connection is None:
            self._begin()

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
        if connection is None and self._begun is not None:
            with contextlib.suppress(ProcessError):
                connection = self._open(asyncio.get_running_loop())
        if connection is not None:
            if self.sandbox:
                self.sandbox.leave()
            connection.close()
            self._fail_all(KeeperLost("the application was closed while a child was running"))
            # A thread, because the keeper may need its grace to end what still runs.
            await asyncio.to_thread(wait_or_kill, connection)
        if self.sandbox:
            await self.sandbox.aclose()

    def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._connection is not None and self._connection.process.poll() is not None:
            self._lost(self._connection)
        if self._connection is None:
            self._connection = self._open(loop)
        elif self._connection.loop is not loop:
            raise KeeperLost("this application belongs to another event loop")
        return self._connection

    def _open(self, loop: asyncio.AbstractEventLoop) -> Connection:
        """Start a keeper in the best sandbox that can really be built; outside of any only if policy lets us."""
        while True:
            started = self._begin()
            self._begun = None
            try:
                connection = Connection(enter(started), loop, self._handle, self._lost)
            except CannotStart as error:
                if self.sandbox is None or started.confinement is None:
                    raise
                self.sandbox.refuse(started.confinement.backend, str(error))
            else:
                if self.sandbox and connection.confinement:
                    self.sandbox.admit(connection.keeper_pid)
                if connection.port and self.sandbox:
                    self.sandbox.serve(connection.port)
                return connection

    def _begin(self) -> StartedKeeper:
        if self._begun is None:
            self._begun = begin_keeper(self.sandbox.confinement() if self.sandbox else None)
        return self._begun

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
        started: StartedKeeper,
        loop: asyncio.AbstractEventLoop,
        on_message: Callable[[tuple[Any, ...]], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self.loop = loop
        self.process = started.process
        self.confinement = started.confinement
        self.first_mark = started.first_mark
        self.keeper_pid = started.pid
        self.port = started.port
        self._channel = started.channel
        self._on_message = on_message
        self._on_lost = on_lost
        self._inbox = started.inbox
        self._fds: list[int] = []
        self._outbox: deque[tuple[bytes, Sequence[int]]] = deque()
        self._stalled = False
        self.environment: Mapping[bytes, bytes] | None = None
        """What the keeper was last told that children get."""
        loop.add_reader(self._channel, self._receive)
        if started.hello:
            on_message(started.hello)

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
        if self.port:
            self.port.close()
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
            data, ancillary, _, _ = self._channel.recvmsg(1 << 16, ROOM_FOR_FDS)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        for _, _, rights in ancillary:  # nothing else is ever sent along
            self._fds += array.array("i", rights)
        if not data:
            self._on_lost(self)
            return
        self._inbox += data
        for message in take_messages(self._inbox):
            self._on_message(self._outside(message))

    def _outside(self, message: tuple[Any, ...]) -> tuple[Any, ...]:
        """A message with the number of a process as it is known here; inside a sandbox it may have another."""
        match message:
            case ("started", id, _, mark) if self._fds:
                handle = self._fds.pop(0)
                try:
                    return ("started", id, pid_of_handle(handle), mark)
                finally:
                    os.close(handle)
        return message


def open_terminal(path: bytes) -> int:
    """A terminal to be handed on, because its path leads nowhere in a sandbox."""
    try:
        return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotStart(f"terminal: {error.strerror}", errno=error.errno or 0) from error


def wait_or_kill(connection: Connection) -> None:
    """Let the keeper finish its work; one that hangs is killed."""
    try:
        connection.process.wait(CLOSE_PATIENCE)
    except subprocess.TimeoutExpired:
        kill_keeper(connection)


def kill_keeper(connection: Connection) -> None:
    """Kill a keeper and, in its place, all that it owned."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(connection.keeper_pid, signal.SIGKILL)
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
        try:  # noqa: SIM105 - done for every call, and a context manager costs more than the closing
            os.close(fd)
        except OSError:
            pass
