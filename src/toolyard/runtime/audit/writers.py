"""Who writes a log, and whose turn it is: kept in the machine's memory, where nothing in a sandbox can reach it.

What can be opened can be locked, and a lock that a tool holds would stop recording. So the lock on a log does not lie
beside it but in a folder of its owner's in `/dev/shm`, of which a sandbox has one of its own. There each application
that writes also has a file, locked as long as it lives: by that the next one knows who was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.files.locks import try_lock
from toolyard.runtime.audit.gaps import Loss

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


PLACES = ("/dev/shm", "/tmp")  # noqa: S108 - a folder there is used only if it is its owner's alone
"""Empty after a start of the machine, and the same for everybody on it, whatever their variables say."""
LOCK_FILES = 64
"""Logs share them: one is held for microseconds."""
LOCK_PATIENCE = 0.5
"""Only another application of ours can hold the lock, for microseconds; one that holds it for longer is stopped."""
HEAD_PATIENCE = 0.01
"""Whoever can open the head can lock it, so it is not waited for."""
NOBODY = -1


class LogLock:
    """The turn to write to one log: the lock that no tool can reach, and beside it one on the head.

    The second keeps out those who do not share our memory, such as another container; it is done without when it is
    never given back.
    """

    def __init__(self, folder: Path) -> None:
        self.disturbed = False
        """Whether somebody holds on to the head, whom we do not wait for."""
        place = own_place(folder)
        self._fd = NOBODY
        if place:
            number = int(log_id(folder), 16) % LOCK_FILES
            with contextlib.suppress(OSError):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._fd = os.open(os.path.join(place, f"lock-{number}"), flags, 0o600)

    def take(self, head: int, kind: int = fcntl.LOCK_EX, *, patience: float | None = None) -> None:
        """Wait for our turn, or fail with an OSError when another application never lets go."""
        if self._fd != NOBODY and not self.disturbed:
            try:  # as nearly always, twice in every call
                fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
                fcntl.flock(head, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                pass  # somebody has one of them, and whoever has the first already gets it again
            else:
                return
        patience = LOCK_PATIENCE if patience is None else patience
        if self._fd == NOBODY:
            if not try_lock(head, kind, patience):
                raise OSError("another process holds its lock")
            return
        if not try_lock(self._fd, kind, patience):
            raise OSError("another application holds its lock")
        self.disturbed = not try_lock(head, kind, 0.0 if self.disturbed else HEAD_PATIENCE)

    def give_back(self, head: int) -> None:
        fcntl.flock(head, fcntl.LOCK_UN)
        if self._fd != NOBODY:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd != NOBODY:
            os.close(self._fd)
            self._fd = NOBODY


class GoneWriter(msgspec.Struct, frozen=True, kw_only=True):
    """An application that ended without a word."""

    id: str
    loss: Loss
    """What it could not write."""
    file: str


class LogWriter:
    """Our own file among those who write a log. Without a place for it, nobody hears of our end."""

    def __init__(self, folder: Path) -> None:
        self.id = os.urandom(4).hex()
        self._log = log_id(folder)
        self._place = own_place(folder)
        self._fd = NOBODY
        if self._place:
            with contextlib.suppress(OSError):
                self._file = os.path.join(self._place, f"{self._log}.{self.id}")
                self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def note(self, loss: Loss) -> None:
        """Leave word of what we could not write, in case that we end before we can."""
        if self._fd != NOBODY:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
                os.pwrite(self._fd, encode_json(loss), 0)

    def others(self) -> tuple[list[GoneWriter], list[str]]:
        """Those that are gone, and the ids of those that live. Only within the lock is that true for a while."""
        gone: list[GoneWriter] = []
        living: list[str] = []
        for name in os.listdir(self._place) if self._place else ():
            log, _, id = name.partition(".")
            if log == self._log and id != self.id:
                found = read_gone(os.path.join(str(self._place), name), id)
                if found:
                    gone.append(found)
                else:
                    living.append(id)
        return gone, living

    def close(self, *, leaving: bool = False) -> None:
        """Take our file away; `leaving` a loss behind that others shall write."""
        if self._fd != NOBODY:
            if not leaving:
                os.unlink(self._file)
            os.close(self._fd)
            self._fd = NOBODY


def read_gone(file: str, id: str) -> GoneWriter | None:
    """What a writer left behind; None while it lives."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return GoneWriter(id=id, loss=Loss(), file=file)
    with open(fd, "rb") as left:
        if not try_lock(fd, fcntl.LOCK_SH, 0.0):
            return None
        try:
            loss = decode_json(left.read(1 << 16) or b"{}", Loss)
        except msgspec.MsgspecError:
            loss = Loss()
    return GoneWriter(id=id, loss=loss, file=file)


def forget(gone: Sequence[GoneWriter]) -> None:
    for one in gone:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(one.file)


def log_id(folder: Path) -> str:
    return sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]


def own_place(folder: Path) -> str | None:
    """The folder in memory of the owner of a log; None where there is none that only they can enter."""
    owner = os.stat(folder).st_uid
    for place in filter(os.path.isdir, PLACES):
        path = os.path.join(place, f"toolyard-audit-{owner}")
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
                os.chown(path, owner, NOBODY)
            facts = os.lstat(path)
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == owner and not facts.st_mode & 0o077:
                return path if os.access(path, os.W_OK | os.X_OK) else None
    return None
