"""One process at a time works on a session; a second is told who does."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from toolyard.agents.sessions.database import StoreError
from toolyard.files.own.entering import enter, open_own, remove_own

if TYPE_CHECKING:
    from pathlib import Path


LOCKS = "locks"
"""The folder beside the file of the sessions that has a file for each that was ever open."""


class SessionTaken(StoreError):
    """Another process works on the session."""


class SessionClaim:
    """Holds a session until it is released, or its process ends, however it does."""

    def __init__(self, folder: Path, session: str) -> None:
        self._path = folder / f"{session}.lock"
        if self._path.parent != folder:
            raise StoreError(f"'{session}' is no id of a session")
        try:
            os.close(enter(folder, make=True))
            self._fd = open_own(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror or error}") from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._fd, 20, 0).decode(errors="replace").strip()
            os.close(self._fd)
            by = f"process {who}" if who else "another process"
            raise SessionTaken(f"{by} works on the session '{session}'") from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def remove(self) -> None:
        """Leave nothing behind of a session that is gone; it stays held."""
        remove_own(self._path)

    def release(self) -> None:
        """Let others have it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
