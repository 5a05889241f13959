"""The audit log: append-only NDJSON, a file for each UTC day, a line before each run and one after it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from toolyard.config.settings import AuditPolicy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


__all__ = ["AuditLog", "AuditUnavailable", "NdjsonAudit"]

ENCODER = msgspec.json.Encoder(enc_hook=str)


class AuditUnavailable(Exception):
    """The log cannot be written and policy says that then nothing may run."""


class AuditLog(Protocol):
    """Where calls are recorded."""

    def write(self, record: dict[str, Any]) -> None:
        """Append a record; it is on disk when this returns. Raises AuditUnavailable if policy stops calls."""

    def close(self) -> None:
        """Release what the log holds; a later write opens it again."""


class NdjsonAudit:
    """Writes each record with one `write`, so that lines of several processes never mix."""

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
        self._fd: int | None = None
        self._failed = False

    def write(self, record: dict[str, Any]) -> None:
        """Append a record with its time; a failure is said once and by policy stops calls."""
        now = self._clock().isoformat(timespec="microseconds")
        line = encoded({"time": now, **record}) + b"\n"
        try:
            written = os.write(self._file_for(now[:10]), line)
            if written != len(line):
                raise OSError("the disk is full")
            self._failed = False
        except OSError as error:
            self._report(error)

    def close(self) -> None:
        """Close the day's file."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._day = None, ""

    def _file_for(self, day: str) -> int:
        if self._fd is None or day != self._day:
            self.close()
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._fd = os.open(self._folder / f"{day}.ndjson", flags, 0o600)
            self._day = day
        return self._fd

    def _report(self, error: OSError) -> None:
        self.close()
        message = f"the audit log cannot be written: {error.strerror or error}"
        if not self._failed:
            self._failed = True
            self._on_failure(message)
        if self.policy.on_failure == "stop":
            raise AuditUnavailable(message)


def encoded(record: dict[str, Any]) -> bytes:
    """A record as JSON; half a UTF-16 character, which a model may well write, fits into it only as an escape."""
    try:
        return ENCODER.encode(record)
    except UnicodeEncodeError:
        return json.dumps(record, default=str).encode("ascii")
