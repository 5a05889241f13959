"""The application's side of the keeper: starts it on first use, asks it for children, hears of their ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.errors import CannotStart, KeeperLost, ProcessError
from toolyard.process.cgroups import ControlGroup
from toolyard.process.keeper.keeper_process import KeeperProcess
from toolyard.process.keeper.wire import TERMINAL, close_all
from toolyard.process.private_folders import SharedFolder
from toolyard.process.sandbox.cleanup import CleanupRecord, clean_up_abandoned
from toolyard.process.waiting import Deadlines, Promise, run_shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolyard.process.sandbox.sandbox import Sandbox


MOST_TRIES = 5
"""How often a sandbox is built whose owner replaces what it guards just then."""


class ShellChild(msgspec.Struct, frozen=True, kw_only=True):
    """For a child that is a shell: what it leaves running goes on after its own end, until its tree is killed."""

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
    is_running: Callable[[], bool] = lambda: False
    """Tells whether it runs a command just now."""


class ChildEnded(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended. Nothing of its tree is left, but for what could not be killed."""

    pid: int
    wait_status: int
    cut_short: bool
    """Whether it was still running when its end was asked for."""
    left: Sequence[int]
    """The processes that could not be killed."""


class Spawned:
    """A child that was asked for."""

    __slots__ = ("_alarm", "_link", "_outcome", "id", "pid", "session", "stays")

    def __init__(self, link: KeeperLink, id: int, session: ShellChild | None, *, stays: bool = False) -> None:
        self.id = id
        self.session = session
        self.stays = stays
        """Whether it is there between calls, and does something when it is told to."""
        self.pid = 0
        """Of a shell its number here, once it has started."""
        self._link = link
        self._outcome: Promise[ChildEnded | ProcessError] = Promise()
        self._alarm: asyncio.TimerHandle | None = None

    async def ended(self) -> ChildEnded:
        """Wait until the child and its tree are gone; ProcessError when it did not start or its keeper was lost."""
        return ended_or_raise(await self._outcome.get())

    async def ended_within(self, seconds: float | None) -> ChildEnded | None:
        """The same, but None when it takes longer. May be asked again."""
        outcome = await self._outcome.get_within(seconds, self._link.deadlines)
        return None if outcome is None else ended_or_raise(outcome)

    def kill(self, *, grace: float, answer_within: float | None = None) -> None:
        """Ask the whole tree to end, and force it after `grace` seconds.

        A keeper that takes more than `answer_within` beyond that is itself killed, and all that it owns.
        """
        if self._outcome.is_set:  # which somebody who was cancelled meanwhile has not seen
            return
        self._link.send(self.id, ("kill", self.id, grace))
        self._link.wake()
        if answer_within is not None and self._alarm is None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(grace + answer_within, self._link.give_up)

    def release(self) -> None:
        """Of a shell that has ended: what is in its folder is not needed any more."""
        self._link.send(self.id, ("release", self.id))

    def settle(self, outcome: ChildEnded | ProcessError) -> None:
        """The keeper's word; only the first counts."""
        if self._alarm:
            self._alarm.cancel()
        self._outcome.set(outcome)


class KeeperLink:
    """One keeper for one event loop, started with the first child, in a sandbox if there is one."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.sandbox = sandbox
        self._keeper: KeeperProcess | None = None
        self._starting: KeeperProcess | None = None
        """A keeper that the first child will wait for."""
        self._outside: OutsideGroup | None = None
        self._waiting: dict[int, Spawned] = {}
        self._next_id = 0
        self.deadlines = Deadlines()
        """Of those who wait for children."""
        if sandbox:
            sandbox.common.inside.keepers.add(self)

    @property
    def pid(self) -> int | None:
        return self._keeper.pid if self._keeper else None

    @property
    def group_name(self) -> str:
        """The name of the control group that ends with the keeper; empty when there is none."""
        held = self._outside if self._keeper and not self._keeper.confinement else self.sandbox
        return held.group.name if held else ""

    @property
    def is_busy(self) -> bool:
        """Whether a child was asked for that is not gone."""
        return bool(self._waiting)

    @property
    def changes_workspace(self) -> bool:
        """Whether children are inside, and can change the workspace."""
        return self.sandbox is not None and self.sandbox.reach == "work"

    @property
    def companions(self) -> int:
        """How many children there are that stay between calls."""
        return sum(spawned.stays for spawned in self._waiting.values())

    def shells(self) -> dict[int, Callable[[], bool]]:
        """The shells that have started, by their process ids, each with what tells whether it runs a command."""
        waiting = self._waiting.values()
        return {spawned.pid: spawned.session.is_running for spawned in waiting if spawned.session and spawned.pid}

    @property
    def exchange(self) -> str | None:
        """A folder that both the application and its children can write; None without a sandbox: any folder will do."""
        return self.sandbox.folder().exchange if self._connect().confinement and self.sandbox else None

    @property
    def own_pids(self) -> bool:
        """Whether children have other process numbers among themselves than here."""
        return self._keeper is not None and self._keeper.has_own_pids

    def start(self) -> None:
        """Start the keeper for a child that is about to come, and do not wait for it."""
        if self._keeper is None:
            self._begin()

    def spawn(
        self,
        argv: Sequence[bytes],
        *,
        cwd: bytes,
        env: Mapping[bytes, bytes],
        extra_env: Mapping[bytes, bytes],
        limits: Sequence[tuple[int, int]],
        fds: Mapping[int, int],
        session: ShellChild | None = None,
        stays: bool = False,
    ) -> Spawned:
        """Start a child with `fds` under the numbers that are their keys; takes them over and closes them.

        Without a descriptor 0 its standard input is at its end.
        """
        try:
            keeper = self._connect()
            if session and keeper.confinement:
                fds = {**fds, TERMINAL: open_terminal(session.terminal)}
            if self.sandbox and keeper.confinement:
                self.sandbox.begin()
        except ProcessError:
            close_all(fds.values())
            raise
        self._next_id += 1
        spawned = self._waiting[self._next_id] = Spawned(self, self._next_id, session, stays=stays)
        if env is not keeper.environment:
            # Most children get the same variables as the one before, so those are sent only when they are others.
            keeper.environment = env
            keeper.send(("environment", self._inside(keeper, env)))
        shell = (session.terminal, session.folder, list(session.groups)) if session else None
        message = ("spawn", spawned.id, list(argv), cwd, dict(extra_env), list(limits), list(fds), shell)
        keeper.send(message, list(fds.values()))
        return spawned

    def send(self, id: int, message: tuple[Any, ...]) -> None:
        """Say something about a child, unless it is gone already."""
        if self._keeper and id in self._waiting:
            self._keeper.send(message)

    def wake(self) -> None:
        """Make a keeper go on that somebody stopped."""
        if self._keeper is not None:
            self._keeper.wake()

    def give_up(self) -> None:
        """Kill a keeper that does not answer, and all that it owns."""
        if self._keeper is not None:
            self._lost(self._keeper)

    async def aclose(self) -> None:
        """End the keeper and with it every child; returns when they are gone."""
        keeper, self._keeper = self._keeper, None
        if keeper is None and self._starting is not None:
            with contextlib.suppress(ProcessError):
                keeper = self._open(asyncio.get_running_loop())
        if keeper is not None:
            if self._outside:
                self._outside.take_over_cleanup()
            keeper.close()
            was_busy = self.is_busy
            self._fail_all(KeeperLost("the application was closed while a child was running"))
            # To its end, which may take the grace of what still runs: nothing of the sandbox can be removed before.
            await run_shielded(keeper.wait_or_kill())
            if was_busy and self.sandbox:
                self.sandbox.rest()
        self.deadlines.rest()
        try:
            await self._remove_what_it_needed()  # while the guard ends, which has nothing more to do
        finally:
            if keeper is not None:
                await run_shielded(keeper.wait_for_guard())

    def inside(self, env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """The variables as children get them."""
        return self._inside(self._connect(), env)

    async def _remove_what_it_needed(self) -> None:
        outside, self._outside = self._outside, None
        if outside:
            outside.remove()
        if self.sandbox:
            await self.sandbox.aclose()

    def _inside(self, keeper: KeeperProcess, env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """The variables as they are true where the children are."""
        if keeper.confinement is None or self.sandbox is None:
            return dict(env)
        port = keeper.proxy_listener.getsockname()[1] if keeper.proxy_listener else None
        return self.sandbox.environment_inside(keeper.confinement, env, proxy_port=port)

    def _connect(self) -> KeeperProcess:
        """The running keeper, or a new one."""
        loop = asyncio.get_running_loop()
        if self._keeper is not None and self._keeper.has_ended:
            self._lost(self._keeper)
        if self._keeper is None:
            self._keeper = self._open(loop)
        elif self._keeper.loop is not loop:
            raise KeeperLost("this application belongs to another event loop")
        return self._keeper

    def _open(self, loop: asyncio.AbstractEventLoop) -> KeeperProcess:
        """Start a keeper in the best sandbox that can really be built; outside of any only if the policy lets us."""
        tries = 0
        while True:
            keeper = self._begin()
            self._starting = None
            try:
                keeper.connect(loop, self._handle, self._lost)
            except CannotStart as error:
                # What was built once can be built again: whoever makes it fail meanwhile must not get a weaker one.
                if self.sandbox is None or keeper.confinement is None or self.sandbox.was_entered:
                    raise
                self.sandbox.rule_out(keeper.confinement.backend, str(error))
            else:
                if self.sandbox and not (keeper.sees_what_was_meant() and self.sandbox.has_all_guards()):
                    tries += 1
                    self._build_anew(keeper, self.sandbox, is_last=tries == MOST_TRIES)
                    continue
                if self.sandbox:
                    self.sandbox.was_entered = True
                if self.sandbox and keeper.proxy_listener:
                    self.sandbox.connections.serve_proxy(keeper.proxy_listener)
                if self.sandbox and keeper.supervision:
                    self.sandbox.connections.supervise(*keeper.supervision)
                return keeper

    def _build_anew(self, keeper: KeeperProcess, sandbox: Sandbox, *, is_last: bool) -> None:
        """Something was replaced before the guard watched it, or while it was mounted: no mount is on what is there."""
        keeper.close()
        keeper.kill()
        close_all(keeper.supervision)
        sandbox.lay_out_again()
        if is_last:
            raise CannotStart("what the sandbox guards is replaced faster than it can be built", errno=errno.EAGAIN)

    def _begin(self) -> KeeperProcess:
        if self._starting is None:
            confinement = self.sandbox.confinement() if self.sandbox else None
            if confinement and self.sandbox:
                self._starting = KeeperProcess(confinement, self.sandbox.group, self.sandbox.cleanup_file)
                self.sandbox.fill_repositories()
            else:
                self._outside = self._outside or OutsideGroup()
                self._starting = KeeperProcess(None, self._outside.group, self._outside.cleanup_file)
        return self._starting

    def _handle(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("gone", id, pid, status, cut_short, left):
                self._settle(id, ChildEnded(pid=pid, wait_status=status, cut_short=cut_short, left=left))
            case ("started", id, pid, mark):
                if (spawned := self._waiting.get(id)) and spawned.session:
                    spawned.pid = pid
                    spawned.session.on_started(pid, mark)
            case ("exited", id, status):
                if (spawned := self._waiting.get(id)) and spawned.session:
                    spawned.session.on_exited(status)
            case ("closing",) if self._keeper:
                self._keeper.is_closing = True
            case ("failed", id, number, what):
                self._settle(id, cannot_start(number, what))

    def _lost(self, keeper: KeeperProcess) -> None:
        """The keeper died under us: its children have no owner any more, so we kill them."""
        if keeper is not self._keeper:
            return  # we know already, and there may be a new keeper by now
        self._keeper = None
        try:
            keeper.close()
            keeper.kill()
        finally:
            self._fail_all(KeeperLost("the process keeper ended unexpectedly; the running calls were lost"))

    def _fail_all(self, reason: KeeperLost) -> None:
        for id in list(self._waiting):
            self._settle(id, reason)

    def _settle(self, id: int, outcome: ChildEnded | ProcessError) -> None:
        if spawned := self._waiting.pop(id, None):
            if self.sandbox and not self._waiting:
                self.sandbox.rest()
            spawned.settle(outcome)


class OutsideGroup:
    """The control group of a keeper that is in no sandbox, and the record that names it in case we are killed."""

    def __init__(self) -> None:
        clean_up_abandoned()
        self.group = ControlGroup.of_a_keeper()
        self._folder: SharedFolder | None = None
        if self.group.folders:
            with contextlib.suppress(OSError):
                self._folder = SharedFolder()
                CleanupRecord(self._folder.path).write({"groups": self.group.paths()})

    @property
    def cleanup_file(self) -> str:
        return CleanupRecord(self._folder.path).file if self._folder else ""

    def take_over_cleanup(self) -> None:
        if self._folder:
            CleanupRecord(self._folder.path).remove()

    def remove(self) -> None:
        """Everything in it has ended."""
        self.group.end()
        if self._folder:
            self._folder.remove()


def ended_or_raise(outcome: ChildEnded | ProcessError) -> ChildEnded:
    if isinstance(outcome, ProcessError):
        raise outcome
    return outcome


def open_terminal(path: bytes) -> int:
    """A terminal to be handed on, because its path leads nowhere in a sandbox."""
    try:
        return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotStart(f"terminal: {error.strerror}", errno=error.errno or 0) from error


def cannot_start(number: int, what: str) -> CannotStart:
    subject = "working directory" if what == "cwd" else "program"
    return CannotStart(f"{subject}: {os.strerror(number)}", errno=number)
