"""The audit log: append-only NDJSON, a file for each UTC day, a line before each run and one after it.

Lines are chained (see audit_chain). Several processes may append to one log: whoever holds the lock on the head file
reads there what the last line was, adds its own and says so. Nothing that was written is ever changed: what a crash
left unfinished is closed by a line end and a `repair` line that tells of it.
"""

from __future__ import annotations

import fcntl
import os
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from toolyard.config.settings import AuditPolicy
from toolyard.runtime.audit_chain import NO_HEAD, Head, day_files, head_path, read_link, seal, take_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


__all__ = ["AuditLog", "AuditUnavailable", "NdjsonAudit"]

CLOSED = -1
APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A link or a pipe in the place of a file is a failure, not a way to write elsewhere or to wait for ever."""
HEAD_SIZE = len(NO_HEAD._replace(day="2000-01-01").as_bytes())


class AuditUnavailable(Exception):
    """The log cannot be written and policy says that then nothing may run."""


class AuditLog(Protocol):
    """Where calls are recorded."""

    def write(self, record: dict[str, Any]) -> None:
        """Append a record; it is on disk when this returns. Raises AuditUnavailable if policy stops calls."""

    def close(self) -> None:
        """Release what the log holds; a later write opens it again."""


class NdjsonAudit:
    """Writes each record with one `write`, under a lock, so that lines of several processes never mix."""

    def __init__(
        self,
        folder: Path,
        *,
        policy: AuditPolicy | None = None,
        on_failure: Callable[[str], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folder = folder
        self.policy = policy or AuditPolicy()
        """What a failure means; may be changed while calls are running."""
        self._on_failure = on_failure
        self._clock = clock
        self._day = ""
        self._path = ""
        self._fd = self._head_fd = CLOSED
        self._inode = 0
        self._head: tuple[bytes, Head] = (b"", NO_HEAD)
        """The head as it was last seen, with its bytes."""
        self._failed = False

    def write(self, record: dict[str, Any]) -> None:
        """Append a record with its time; a failure is said once and by policy stops calls."""
        now = self._clock().isoformat(timespec="microseconds")
        try:
            self._append(now, record)
            self._failed = False
        except OSError as error:
            self._report(error)

    def close(self) -> None:
        """Close the day's file and the head."""
        for fd in (self._fd, self._head_fd):
            if fd != CLOSED:
                os.close(fd)
        self._fd = self._head_fd = CLOSED

    def _append(self, now: str, record: dict[str, Any]) -> None:
        self._lock()
        try:
            head = self._settled(now)
            # A clock that was set back over midnight must not write into a day that is over.
            self._add(now, record, head, max(now[:10], head.day))
        finally:
            fcntl.flock(self._head_fd, fcntl.LOCK_UN)

    def _settled(self, now: str) -> Head:
        """The head, after a line on whatever in the log is not as the head says."""
        data = os.pread(self._head_fd, HEAD_SIZE, 0)
        head = self._head[1] if data and data == self._head[0] else Head.read(data)
        if head is None:
            return self._begin(now)
        size = self._size_of(head.day)
        if size == head.size:
            return head
        if size < head.size:
            return self._repair(head, now, "missing lines")
        head = last_link(self._day_file(head.day), head)
        if size == head.size:
            return head  # somebody was killed between a line and its head
        return self._repair(head, now, "torn or foreign lines")

    def _begin(self, now: str) -> Head:
        """There is no head: there is no log either, or somebody took the head away, which then is recorded."""
        days = day_files(self._folder)
        if not days:
            return NO_HEAD
        head = last_link(days[-1], Head(days[-1].stem, 0, 0, NO_HEAD.hash), trusting=True)
        return self._repair(head, now, "no head")

    def _repair(self, head: Head, now: str, found: str) -> Head:
        """End a line that a crash tore, and add one that says what was found."""
        head = head._replace(size=self._size_of(head.day))
        record: dict[str, Any] = {"event": "repair", "found": found}
        if torn := read_from(self._day_file(head.day), 0).rpartition(b"\n")[2]:
            record["torn"] = sha256(torn).hexdigest()
        return self._add(now, record, head, head.day, before=b"\n" if torn else b"")

    def _add(self, now: str, record: dict[str, Any], head: Head, day: str, *, before: bytes = b"") -> Head:
        """Write the line that follows the head, and then the new head."""
        line, seq, hash = seal(now, record, head, day)
        data = before + line
        size = head.size if day == head.day else self._size_of(day)
        if os.write(self._fd, data) != len(data):
            raise OSError("the disk is full")
        after = Head(day, size + len(data), seq, hash)
        self._head = (after.as_bytes(), after)
        os.pwrite(self._head_fd, self._head[0], 0)
        return after

    def _lock(self) -> None:
        """Be the only writer."""
        if self._head_fd == CLOSED:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._head_fd = os.open(head_path(self._folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        take_lock(self._head_fd)

    def _size_of(self, day: str) -> int:
        """The size of a day's file, which is open from now on."""
        if self._fd != CLOSED and day == self._day:
            try:
                stat = os.stat(self._path)
                if stat.st_ino == self._inode:
                    return stat.st_size
            except FileNotFoundError:
                pass  # and is made again
        return self._open_day(day)

    def _open_day(self, day: str) -> int:
        if self._fd != CLOSED:
            os.close(self._fd)
            self._fd = CLOSED
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = str(self._day_file(day))
        self._fd = os.open(self._path, APPENDING, 0o600)
        self._day = day
        stat = os.fstat(self._fd)
        self._inode = stat.st_ino
        return stat.st_size

    def _day_file(self, day: str) -> Path:
        return self._folder / f"{day}.ndjson"

    def _report(self, error: OSError) -> None:
        self.close()
        message = f"the audit log cannot be written: {error.strerror or error}"
        if not self._failed:
            self._failed = True
            self._on_failure(message)
        if self.policy.on_failure == "stop":
            raise AuditUnavailable(message)


def last_link(file: Path, head: Head, *, trusting: bool = False) -> Head:
    """The head moved to the last whole line that follows it; trusting, wherever the chain then begins."""
    offset = head.size
    for line in read_from(file, offset).splitlines(keepends=True):
        offset += len(line)
        link = read_link(line)
        if link and link.holds and (trusting or link.prev == head.hash):
            head = head._replace(size=offset, seq=link.seq, hash=link.hash)
    return head


def read_from(file: Path, offset: int) -> bytes:
    with file.open("rb") as log:
        log.seek(offset)
        return log.read()
