"""A keeper process and its guard as the application has them: started outside or in a sandbox, spoken with, ended."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.errors import CannotStart
from toolyard.process.keeper.groups import thaw
from toolyard.process.keeper.guard import ALL_ENDED, GUARD_SCRIPT, READY
from toolyard.process.keeper.mounts_inside import innermost
from toolyard.process.keeper.wire import NO_SIGNAL, Channel, close_all
from toolyard.process.process_tree import (
    LINUX,
    children_of,
    descendants,
    first_mark,
    kill_marked,
    pid_of_handle,
    signal_all,
    start_time,
)
from toolyard.process.sandbox.backends.mount_table import are_as_meant
from toolyard.process.waiting import Deadlines, Promise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolyard.process.cgroups import ControlGroup
    from toolyard.process.sandbox.backends.confinement import Confinement


PACKAGE_FOLDER = Path(__file__).parents[3]
START_KEEPER = "import sys; sys.path.append(sys.argv[1]); from toolyard.process.keeper.main import main; main()"
"""Run without the environment and the installed packages, which it does not need: it starts in milliseconds."""
ENTER_PATIENCE = 30.0
"""How long a keeper may take to get into its sandbox."""
THAW_EVERY = 1.0
"""Seconds without a word after which it is made sure that nobody holds the keeper up."""
CLOSE_PATIENCE = 3.0
"""How long it may take to end after the channel was closed. The guard gives it less."""
KILL_PATIENCE = 1.0
"""How long the guard may take to end what a killed keeper owned, before we do without it."""


class KeeperProcess:
    """A keeper, its guard and the socket to it. Creating one starts it; `connect` waits until it can be used."""

    def __init__(
        self, confinement: Confinement | None = None, group: ControlGroup | None = None, cleanup_file: str = ""
    ) -> None:
        """CannotStart when it cannot even begin. What it leaves is ended with the group, where there is one."""
        self.confinement = confinement
        self._group = group
        self.environment: Mapping[bytes, bytes] | None = None
        """The variables that the keeper was last told to give to children."""
        self.proxy_listener: socket.socket | None = None
        """The socket at which children ask for the hosts that they may reach."""
        self.supervision: list[int] = []
        """What it takes to connect sockets for children, for whoever does that; to be taken over once."""
        self._stderr = os.memfd_create("stderr", os.MFD_CLOEXEC) if confinement else None
        """What is printed on the way into a sandbox: the reason when it fails."""
        self._on_the_way = contextlib.ExitStack()
        """What is needed until the keeper is inside."""
        try:
            if group:
                group.open_again()
            self._groups = groups = group.paths() if group else []
            prefix = self._on_the_way.enter_context(confinement.ready_prefix()) if confinement else None
            told = (cleanup_file, confinement.guards if confinement else "")
            self._channel, self._process, self._guard_input = spawn_keeper(prefix, self._stderr, groups, told)
        except OSError as error:
            self._end_the_way()
            raise CannotStart(f"the sandbox cannot be built: {error}", errno=error.errno or 0) from error
        except CannotStart:
            self._end_the_way()
            raise
        if confinement:
            # At once, so that it need not wait for us, who may have something else to do before we connect.
            options = confinement.encoded_options()
            self._channel.send(("confine", confinement.own_pids, confinement.proxy, options))
        self.is_closing = False
        """Whether it said that it ends everything, and starts nothing more."""
        self._pid: int | None = None
        self._is_guard_ready = not LINUX
        """Whether the guard is known to hold nothing any more that is the keeper's."""
        self._is_writing = False

    @property
    def pid(self) -> int:
        """The keeper's own; that of its guard as long as there is no keeper yet."""
        if self._pid is None and LINUX and not self.confinement:
            self._pid = next(iter(children_of(self._process.pid)), None)
        return self._pid or self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the keeper is gone or about to go; its guard may still be ending what it left."""
        return self.is_closing or self._channel.is_hung_up() or (not self._is_guard_ready and self._ended_unheard())

    def _ended_unheard(self) -> bool:
        """Whether it has ended while its guard, which is slow to start on a busy machine, holds the channel open."""
        with contextlib.suppress(BlockingIOError):
            self._is_guard_ready = bool(self._guard_input.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        return LINUX and self.pid != self._process.pid and start_time(self.pid) is None

    @property
    def has_own_pids(self) -> bool:
        """Whether processes have other numbers where the keeper is."""
        return self.confinement is not None and self.confinement.own_pids

    def connect(
        self,
        loop: asyncio.AbstractEventLoop,
        on_message: Callable[[tuple[Any, ...]], None],
        on_lost: Callable[[KeeperProcess], None],
    ) -> None:
        """Hear what the keeper says from now on. One in a sandbox is waited for; CannotStart when it cannot get in."""
        self.loop = loop
        self._on_message = on_message
        self._on_lost = on_lost
        if self.confinement:
            self._enter(self.confinement)
        loop.add_reader(self._channel.fileno(), self._receive)

    def sees_what_was_meant(self) -> bool:
        """Whether nobody led the mounts of its sandbox elsewhere while they were made."""
        return self.confinement is None or are_as_meant(self.pid, self.confinement.prefix)

    def send(self, message: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
        """Send a message, now or as soon as the keeper takes more; the descriptors that go with it are closed."""
        self._channel.send(message, fds)
        self._after_writing()

    def close(self) -> None:
        """Hang up, which tells the keeper to end everything."""
        self.loop.remove_reader(self._channel.fileno())
        self.loop.remove_writer(self._channel.fileno())
        self._channel.close()
        self._dismiss_guard()
        if self.proxy_listener:
            self.proxy_listener.close()

    def wake(self) -> None:
        """Make the keeper and its guard go on if somebody stopped them: something must end now."""
        for pid in {self._process.pid, self.pid}:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)

    async def wait_or_kill(self) -> None:
        """After `close`: let the keeper finish its work; one that hangs is killed."""
        self.wake()
        if LINUX:
            ended = await self._ends_within(CLOSE_PATIENCE)
        else:
            ended = await asyncio.to_thread(self._has_ended_within, CLOSE_PATIENCE)
        if not ended:
            await asyncio.to_thread(self.kill)

    async def wait_for_guard(self) -> None:
        """After `wait_or_kill`: the guard has nothing more to do, and is gone when this returns."""
        if self._process.poll() is None and not await self._is_gone_within(KILL_PATIENCE):
            await asyncio.to_thread(self.kill)
        self._guard_input.close()

    def kill(self) -> None:
        """Kill the keeper and all that it owned: by its group, by its guard, and what is left by its marks."""
        self.wake()
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        if self._group:
            self._group.kill()
        if not self._has_ended_within(KILL_PATIENCE):
            signal_all(descendants([self._process.pid]), signal.SIGKILL)
            self._has_ended_within(KILL_PATIENCE)  # not one that the kernel itself holds
        self._guard_input.close()
        if not (self._group and self._group.can_end):
            kill_marked(first_mark(self._process.pid))

    async def _ends_within(self, seconds: float) -> bool:
        """Hear of the end in the very moment: from the guard, or from the kernel if the guard was killed."""
        while await self._hears_within(seconds, (self._guard_input.fileno(),)):
            if (word := self._word_of_guard()) != READY:  # of one that was not waited for
                return word == ALL_ENDED or await self._is_gone_within(seconds)
        return False

    async def _is_gone_within(self, seconds: float) -> bool:
        return await self._hears_within(seconds, ()) and self._process.poll() is not None

    async def _hears_within(self, seconds: float, handles: tuple[int, ...]) -> bool:
        """Whether the guard ends or one of the handles can be read, without a thread that looks again and again."""
        heard: Promise[bool] = Promise()
        deadlines = Deadlines()
        try:
            handles, loop = (os.pidfd_open(self._process.pid), *handles), asyncio.get_running_loop()
        except ProcessLookupError:  # it has, and nobody waits for the children of who ignores their signals
            return True
        for handle in handles:
            loop.add_reader(handle, heard.set, True)
        try:
            return bool(await heard.get_within(seconds, deadlines))
        finally:
            deadlines.rest()
            for handle in handles:
                loop.remove_reader(handle)
            os.close(handles[0])

    def _word_of_guard(self) -> bytes:
        """What the guard said; nothing where it is gone. Nobody but the guard and we have an end of this."""
        with contextlib.suppress(OSError):
            return self._guard_input.recv(1, socket.MSG_DONTWAIT)
        return b""

    def _wait_for_ready_guard(self) -> None:
        """It starts beside the keeper, which has the longer way: it is hardly ever waited for."""
        self._guard_input.settimeout(ENTER_PATIENCE)
        word = b""
        with contextlib.suppress(OSError):
            word = self._guard_input.recv(1)
        self._guard_input.settimeout(None)
        self._is_guard_ready = word == READY
        if not self._is_guard_ready:
            self._channel.close()
            self._dismiss_guard()
            raise CannotStart(f"the guard of the sandbox does not start: {self._last_words()}", errno=errno.EPERM)

    def _has_ended_within(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    def _enter(self, confinement: Confinement) -> None:
        """Wait until the keeper is in its sandbox."""
        message = self._word_of_confinement()
        try:
            if message[0] != "hello":
                self._channel.close()
                self._dismiss_guard()
                raise CannotStart(f"{confinement.backend}: {self._last_words() or message[1]}", errno=errno.EPERM)
            self._wait_for_ready_guard()
        finally:
            self._end_the_way()
        self._pid = innermost(self._process.pid)
        for fd in self._channel.take_fds(message[1]):
            self.proxy_listener = socket.socket(fileno=fd)
        self.supervision = self._channel.take_fds(message[2])

    def _word_of_confinement(self) -> tuple[Any, ...]:
        """Wait for the keeper's word that it has given up what it was told to.

        A guard that was killed while it ended the keeper before may have left the group stopped, and this one with it.
        """
        self._channel.set_timeout(THAW_EVERY)
        self._channel.flush()
        give_up_at, message = time.monotonic() + ENTER_PATIENCE, None
        while message is None:
            try:
                message = self._channel.wait() or ("unconfined", "it ended at once")
            except OSError as error:
                thaw(self._groups)
                if not isinstance(error, TimeoutError) or time.monotonic() > give_up_at:
                    message = ("unconfined", f"it does not answer: {error}")
        self._channel.set_timeout(0)
        return message

    def _dismiss_guard(self) -> None:
        """From now on we clean up ourselves; the guard still ends what is left of its keeper's."""
        with contextlib.suppress(OSError):
            self._guard_input.send(b"x", socket.MSG_DONTWAIT | NO_SIGNAL)

    def _last_words(self) -> str:
        """The last line that was printed on the way into a sandbox, by what has ended or does so now."""
        signal_all(descendants([self._process.pid]), signal.SIGKILL)
        self._process.wait()
        self._guard_input.close()
        printed = (
            os.pread(self._stderr, 1 << 14, 0).decode(errors="replace").strip() if self._stderr is not None else ""
        )
        return printed.splitlines()[-1] if printed else ""

    def _end_the_way(self) -> None:
        self._on_the_way.close()
        if self._stderr is not None:
            os.close(self._stderr)
            self._stderr = None

    def _flush(self) -> None:
        self._channel.flush()
        self._after_writing()

    def _after_writing(self) -> None:
        """Ask the loop to tell when the keeper takes more, as long as something waits for that."""
        if self._channel.is_broken:
            self.loop.call_soon(self._on_lost, self)
        elif self._channel.is_stalled and not self._is_writing:
            self._is_writing = True
            self.loop.add_writer(self._channel.fileno(), self._flush)
        elif self._is_writing and not self._channel.is_stalled:
            self._is_writing = False
            self.loop.remove_writer(self._channel.fileno())

    def _receive(self) -> None:
        messages = self._channel.receive()
        if messages is None:
            self._on_lost(self)
            return
        for message in messages:
            self._on_message(self._with_outer_pid(message))

    def _with_outer_pid(self, message: tuple[Any, ...]) -> tuple[Any, ...]:
        """A message with the process number as it is known here, if it came with a handle on the process."""
        match message:
            case ("started", id, _, mark) if self.has_own_pids:
                for handle in self._channel.take_fds(1):
                    try:
                        return ("started", id, pid_of_handle(handle), mark)
                    finally:
                        os.close(handle)
        return message


def spawn_keeper(
    prefix: Sequence[str] | None, stderr: int | None, groups: Sequence[str], told: tuple[str, str]
) -> tuple[Channel, subprocess.Popen[bytes], socket.socket]:
    """Start a keeper apart from our terminal and environment, holding nothing of ours but its end of the channel.

    The guard is told the file that names what to clean up, and the one that names what it watches. What is returned
    last is the other end of its standard input.
    """
    ours: list[socket.socket] = []
    theirs: list[int] = []
    try:
        for _ in ("channel", "standard input"):
            mine, other = socket.socketpair()
            ours.append(mine)
            theirs.append(other.detach())
        # A handle on ourselves: the keeper sees our end even if a process that we forked holds the channel open.
        theirs += [os.pidfd_open(os.getpid()), *os.pipe()] if LINUX else [-1, -1, -1]
        channel, stdin, owner, guard_gone, guard_alive = theirs
        keeper = [
            *(prefix or ()),
            *(sys.executable, "-I", "-S", "-c", START_KEEPER, str(PACKAGE_FOLDER)),
            *(() if prefix is None else ("confined",)),
            *map(str, (channel, owner, guard_gone, guard_alive)),
        ]
        process = subprocess.Popen(
            [*guarded(owner, guard_alive, groups, told), *keeper] if LINUX else [*keeper, "0"],
            stdin=stdin if LINUX else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=[fd for fd in (channel, owner, guard_gone, guard_alive) if fd >= 0],
            start_new_session=True,
            env={},
            cwd="/",
        )
    except OSError as error:
        for mine in ours:
            mine.close()
        raise CannotStart(f"the process keeper does not start: {error}", errno=error.errno or 0) from error
    finally:
        close_all(fd for fd in theirs if fd >= 0)
    return Channel(ours[0].detach()), process, ours[1]


def guarded(owner: int, alive: int, groups: Sequence[str], told: tuple[str, str]) -> list[str]:
    """What comes before the keeper: a shell that starts it and becomes its guard."""
    python = (sys.executable, str(PACKAGE_FOLDER))
    cleanup_file, guards = told
    known = (str(owner), str(alive), cleanup_file, "\n".join(groups), guards)
    return ["/bin/sh", "-c", GUARD_SCRIPT, "sh", *python, *known]
