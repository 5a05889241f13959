"""The folder of sessions, audit log, kept states and long output: what is in it, and whether it is to be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.files.door import FileRefused
from toolyard.files.own.ownership import FolderRefused, Parts, use

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolyard.core.problems import Problem

OUTPUTS = "outputs"
LOCKED_FOLDERS = ("audit", "checkpoints", "locks")
LOCKED_FILES = (
    *("audit.head", "audit.next-day", "shell-history", "chat-history"),
    *("sessions.sqlite", "sessions.sqlite-wal", "sessions.sqlite-shm"),
)
"""Of the store: what is ours alone."""
PARTS = Parts(folders=(*LOCKED_FOLDERS, OUTPUTS), files=(*LOCKED_FILES, "sessions.sqlite-journal"))
REFUSED = "sessions_refused"


class SessionsFolder:
    """The one of an application."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refusal: FileRefused | None = None
        """Why it was not to be used when it was looked at last."""
        self._writable: tuple[str, ...] = ()

    def look(self, writable: Iterable[str]) -> None:
        """See whether it can be used by an application whose tools work in these folders; make it if it can."""
        self._writable = tuple(writable)
        try:
            self.use()
        except OSError:  # a refusal is kept; that it cannot be made is told by whoever writes to it
            return

    def use(self) -> None:
        """Make it if it is not there; FileRefused, or another OSError, when nothing may be written to it."""
        self.refusal = None
        try:
            use(self.path, PARTS, self._writable)
        except FileRefused as refused:
            self.refusal = refused
            reason = f"the folder {self.path} is not used: {refused.strerror}"
            raise FolderRefused(refused.errno, reason, str(self.path)) from None

    def problem(self) -> Problem | None:
        """That nothing is kept there, and what to do."""
        if self.refusal is None:
            return None
        found = self.refusal.problem(REFUSED)
        return replace(found, message=f"the sessions folder is not used, and nothing kept: {self.refusal.strerror}")
