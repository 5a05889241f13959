"""A keeper process as the application has it: started outside or in a sandbox, spoken with, ended."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.errors import CannotStart
from toolyard.process.keeper.wire import Channel
from toolyard.process.process_tree import children_of, descendants, first_mark, kill_marked, pid_of_handle, signal_all

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from toolyard.process.sandbox.backends.confinement import Confinement


PACKAGE_FOLDER = Path(__file__).parents[3]
START_KEEPER = "import sys; sys.path.append(sys.argv[1]); from toolyard.process.keeper.main import main; main()"
"""Run without the environment and the installed packages, which it does not need: it starts in milliseconds."""
ENTER_PATIENCE = 30.0
"""How long a keeper may take to get into its sandbox."""
CLOSE_PATIENCE = 10.0
"""How long it may take to end after the channel was closed."""


class KeeperProcess:
    """A keeper and the socket to it. Creating one starts it; `connect` waits until it can be used."""

    def __init__(self, confinement: Confinement | None = None) -> None:
        """CannotStart when it cannot even begin."""
        self.confinement = confinement
        self.environment: Mapping[bytes, bytes] | None = None
        """The variables that the keeper was last told to give to children."""
        self.proxy_listener: socket.socket | None = None
        """The socket at which children ask for the hosts that they may reach."""
        self._stderr = os.memfd_create("stderr", os.MFD_CLOEXEC) if confinement else None
        """What is printed on the way into a sandbox: the reason when it fails."""
        try:
            self._channel, self._process = spawn_keeper(confinement, self._stderr)
        except CannotStart:
            self._close_stderr()
            raise
        self.pid = self._process.pid
        """In a sandbox that of its starter, until the keeper is inside."""
        self._is_writing = False

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

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

    def send(self, message: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
        """Send a message, now or as soon as the keeper takes more; the descriptors that go with it are closed."""
        self._channel.send(message, fds)
        self._after_writing()

    def close(self) -> None:
        """Hang up, which tells the keeper to end everything."""
        self.loop.remove_reader(self._channel.fileno())
        self.loop.remove_writer(self._channel.fileno())
        self._channel.close()
        if self.proxy_listener:
            self.proxy_listener.close()

    def wait_or_kill(self) -> None:
        """After `close`: let the keeper finish its work; one that hangs is killed."""
        try:
            self._process.wait(CLOSE_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the keeper and, in its place, all that it owned, which is found by its marks."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # one that the kernel itself holds
            self._process.wait(CLOSE_PATIENCE)
        kill_marked(first_mark(self._process.pid))

    def _enter(self, confinement: Confinement) -> None:
        """Wait until the keeper is in its sandbox."""
        message = self._ask_to_confine(confinement)
        try:
            if message[0] != "hello":
                self._channel.close()
                raise CannotStart(f"{confinement.backend}: {self._last_words() or message[1]}", errno=errno.EPERM)
        finally:
            self._close_stderr()
        self.pid = innermost(self._process.pid)
        for fd in self._channel.take_fds(1):
            self.proxy_listener = socket.socket(fileno=fd)

    def _ask_to_confine(self, confinement: Confinement) -> tuple[Any, ...]:
        """Tell the keeper what to give up, and wait for its word that it has."""
        first = first_mark(self._process.pid)
        options = confinement.encoded_options()
        self._channel.set_timeout(ENTER_PATIENCE)
        self._channel.send(("confine", first, confinement.own_pids, confinement.proxy, options))
        try:
            message = self._channel.wait() or ("unconfined", "it ended at once")
        except OSError as error:
            message = ("unconfined", f"it does not answer: {error}")
        self._channel.set_timeout(0)
        return message

    def _last_words(self) -> str:
        """The last line that was printed on the way into a sandbox, by what has ended or does so now."""
        signal_all(descendants([self._process.pid]), signal.SIGKILL)
        self._process.wait()
        printed = (
            os.pread(self._stderr, 1 << 14, 0).decode(errors="replace").strip() if self._stderr is not None else ""
        )
        return printed.splitlines()[-1] if printed else ""

    def _close_stderr(self) -> None:
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


def spawn_keeper(confinement: Confinement | None, stderr: int | None) -> tuple[Channel, subprocess.Popen[bytes]]:
    """Start a keeper apart from our terminal and environment, holding nothing of ours but its end of the channel."""
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise CannotStart(f"the process keeper cannot be reached: {error}", errno=error.errno or 0) from error
    owner = -1
    try:
        if hasattr(os, "pidfd_open"):
            # A handle on ourselves: the keeper sees our end even if a process that we forked holds the channel open.
            owner = os.pidfd_open(os.getpid())
        argv = [
            *(sandbox_prefix(confinement) if confinement else ()),
            *(sys.executable, "-I", "-S", "-c", START_KEEPER, str(PACKAGE_FOLDER)),
            *(("confined",) if confinement else ()),
            *(str(theirs.fileno()), str(owner)),
        ]
        with confinement.standard_input() if confinement else nullcontext(subprocess.DEVNULL) as stdin:
            process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=[fd for fd in (theirs.fileno(), owner) if fd >= 0],
                start_new_session=True,
                env={},
                cwd="/",
            )
    except OSError as error:
        ours.close()
        raise CannotStart(f"the process keeper does not start: {error}", errno=error.errno or 0) from error
    finally:
        theirs.close()
        if owner >= 0:
            os.close(owner)
    return Channel(ours.detach()), process


def sandbox_prefix(confinement: Confinement) -> list[str]:
    """What comes before the keeper: a shell that cleans up after it if we cannot, and the way into the sandbox."""
    from toolyard.process.sandbox.cleanup import CLEANUP_SCRIPT

    shell = ["/bin/sh", "-c", CLEANUP_SCRIPT, "sh", confinement.cleanup_file, sys.executable, str(PACKAGE_FOLDER)]
    return [*shell, *confinement.prefix]


def innermost(pid: int) -> int:
    """The last of a chain of processes that each have started one: the shell, bubblewrap, the keeper."""
    while found := children_of(pid):
        pid = found[0]
    return pid
