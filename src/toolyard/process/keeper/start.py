"""Starting a keeper, outside or in a sandbox; one in a sandbox is waited for until it says that it is in there."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.errors import CannotStart
from toolyard.process.keeper.wire import pack_message, take_messages
from toolyard.process.process_tree import children_of, descendants, first_mark, signal_all

if TYPE_CHECKING:
    from toolyard.process.sandbox.backends.backends import Confinement


PACKAGE_FOLDER = Path(__file__).parents[3]
START_KEEPER = "import sys; sys.path.append(sys.argv[1]); from toolyard.process.keeper.main import main; main()"
"""Without the environment and the installed packages, which it does not need: it starts in milliseconds."""
ENTER_PATIENCE = 30.0
RECEIVE_SIZE = 1 << 16


class StartedKeeper(msgspec.Struct, kw_only=True, dict=True):
    """A keeper and the socket to it."""

    process: subprocess.Popen[bytes]
    """The keeper, or what started it in a sandbox and ends after it."""
    channel: socket.socket
    confinement: Confinement | None
    pid: int
    """The keeper's own."""
    hello: tuple[Any, ...] | None = None
    """Its first word, if it was waited for."""
    port: socket.socket | None = None
    """Where children that may reach some hosts ask for them."""
    inbox: bytearray = msgspec.field(default_factory=bytearray)
    complaints: int | None = None
    """A file with what was said on the way into a sandbox, until it is in there."""

    @property
    def first_mark(self) -> int:
        """Where the marks of its children begin."""
        return first_mark(self.process.pid)


def begin_keeper(confinement: Confinement | None = None) -> StartedKeeper:
    """A keeper that is on its way, to be waited for with `enter`; CannotStart when it cannot even begin."""
    ours, theirs = socketpair()
    complaints = os.memfd_create("complaints", os.MFD_CLOEXEC) if confinement else None
    try:
        process = spawn_keeper(theirs, confinement, complaints)
    except CannotStart:
        ours.close()
        if complaints is not None:
            os.close(complaints)
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return StartedKeeper(process=process, channel=ours, confinement=confinement, pid=process.pid, complaints=complaints)


def enter(started: StartedKeeper) -> StartedKeeper:
    """Wait until a keeper is where it should be; CannotStart with the reason when it cannot get there."""
    if started.confinement is not None and started.complaints is not None:
        try:
            confine(started, started.confinement, started.complaints)
        except CannotStart:
            started.channel.close()
            raise
        finally:
            os.close(started.complaints)
            started.complaints = None
        started.channel.setblocking(False)
    return started


def confine(started: StartedKeeper, confinement: Confinement, complaints: int) -> None:
    """Tell the keeper what to give up, and wait for its word that it has."""
    started.channel.settimeout(ENTER_PATIENCE)
    conditions = (started.first_mark, confinement.own_pids, confinement.proxy, confinement.encoded_options())
    with contextlib.suppress(OSError):  # it ended: why, it has told
        started.channel.sendall(pack_message(("confine", *conditions)))
    message, fds = first_message(started)
    if message[0] != "hello":
        close_all(fds)
        reason = complaint(started.process, complaints) or message[1]
        raise CannotStart(f"{confinement.backend}: {reason}", errno=errno.EPERM)
    started.hello = message
    started.pid = innermost(started.process.pid)
    if fds:
        started.port = socket.socket(fileno=fds[0])


def first_message(started: StartedKeeper) -> tuple[tuple[Any, ...], list[int]]:
    """What the keeper says, and what it hands over."""
    fds: list[int] = []
    try:
        while True:
            data, more, _, _ = socket.recv_fds(started.channel, RECEIVE_SIZE, 4)
            fds += more
            started.inbox += data
            for message in take_messages(started.inbox):
                return message, fds
            if not data:
                return ("unconfined", "it ended at once"), fds
    except OSError as error:
        return ("unconfined", f"it does not answer: {error}"), fds


def complaint(process: subprocess.Popen[bytes], complaints: int) -> str:
    """The last line of what was said by the one that ended, or now is."""
    signal_all(descendants([process.pid]), signal.SIGKILL)
    process.wait()
    said = os.pread(complaints, 1 << 14, 0).decode(errors="replace").strip()
    return said.splitlines()[-1] if said else ""


def spawn_keeper(
    channel: socket.socket, confinement: Confinement | None, complaints: int | None
) -> subprocess.Popen[bytes]:
    """Start the keeper apart from our terminal and environment, holding nothing of ours but the channel."""
    owner = os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else None
    try:
        return subprocess.Popen(
            [
                *(in_sandbox(confinement) if confinement else ()),
                *(sys.executable, "-I", "-S", "-c", START_KEEPER, str(PACKAGE_FOLDER)),
                *(("confined",) if confinement else ()),
                *(str(channel.fileno()), str(-1 if owner is None else owner)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            pass_fds=[channel.fileno(), *([] if owner is None else [owner])],
            start_new_session=True,
            env={},
            cwd="/",
        )
    except OSError as error:
        raise CannotStart(f"the process keeper does not start: {error}", errno=error.errno or 0) from error
    finally:
        if owner is not None:
            os.close(owner)


def in_sandbox(confinement: Confinement) -> list[str]:
    """What comes before the keeper: a shell that cleans up after it if we cannot, and the way into the sandbox."""
    from toolyard.process.sandbox.cleanup import CLEANS_UP

    shell = ["/bin/sh", "-c", CLEANS_UP, "sh", confinement.lasting, sys.executable, str(PACKAGE_FOLDER)]
    return [*shell, *confinement.words]


def innermost(pid: int) -> int:
    """The last of a chain of processes that each have started one."""
    while found := children_of(pid):
        pid = found[0]
    return pid


def socketpair() -> tuple[socket.socket, socket.socket]:
    try:
        return socket.socketpair()
    except OSError as error:
        raise CannotStart(f"the process keeper cannot be reached: {error}", errno=error.errno or 0) from error


def close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
