"""The audit log: append-only NDJSON, a file for each UTC day, a line before each run and one after it.

Lines are chained (see `chain`). Several processes may append to one log: whoever holds the lock (see `writers`) reads
in the head what the last line was, adds its own and says so. Nothing that was written is ever changed: what a crash
left unfinished is closed by a line end and a `repair` line that tells of it. What could not be written, and calls whose
application was killed, are told of by a `gap` line as soon as lines can be written again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from toolyard.config.settings import AuditPolicy
from toolyard.files.own.entering import enter, entered, open_own, open_within
from toolyard.files.own.unversioned import make_unversioned
from toolyard.runtime.audit.chain import NO_HEAD, Head, day_files, head_path, last_line, last_link, read_from, seal
from toolyard.runtime.audit.gaps import (
    Loss,
    interrupted_calls,
    interrupted_record,
    is_from_before_boot,
)
from toolyard.runtime.audit.reserve import Reserve, become_day, give_back, keep_for_next_day, room_beyond
from toolyard.runtime.audit.running_calls import RunningCalls, call_of
from toolyard.runtime.audit.short_lines import LONGEST_LINE, shortened
from toolyard.runtime.audit.writers import LogLock, LogWriter, forget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


CLOSED = -1
APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT
DISK_FULL = "the disk is full"
HEAD_SIZE = len(Head("2000-01-01", 0, 0, NO_HEAD.hash).as_bytes())


class AuditUnavailable(Exception):
    """The log cannot be written and policy says that then nothing may run."""


class NoRoom(OSError):
    """What room there is, is for the ends of calls that run."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, DISK_FULL)


class AuditLog(Protocol):
    """Where calls are recorded."""

    def write(self, record: dict[str, Any]) -> None:
        """Append a record; it is on disk when this returns. Raises AuditUnavailable if policy stops calls."""

    def close(self) -> None:
        """Release what the log holds; a later write opens it again."""


class NoAudit:
    """Records nothing: trying a tool out is not running an agent."""

    def write(self, record: dict[str, Any]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is held."""


NO_AUDIT: AuditLog = NoAudit()


class NdjsonAudit:
    """Writes each record with one `write`, under a lock, so that lines of several processes never mix."""

    def __init__(
        self,
        folder: Path,
        *,
        policy: AuditPolicy | None = None,
        on_failure: Callable[[str], None],
        clock: Callable[[], int] = time.time_ns,
        begin: Callable[[], object] | None = None,
    ) -> None:
        """`begin` makes the folder that the log's is in; OSError when nothing may be written there."""
        self.folder = folder
        self._begin = begin or partial(make_unversioned, folder.parent)
        self.policy = policy or AuditPolicy()
        """What a failure means; may be changed while calls are running."""
        self._on_failure = on_failure
        self._clock = clock
        self._day = ""
        self._file = ""
        self._fd = self._head_fd = CLOSED
        self._inode = 0
        self._head = NO_HEAD
        self._head_bytes = b""
        """The head as we left it, which it still is unless somebody else wrote a line."""
        self._second = (0, "")
        """The second of the last line, in numbers and in words."""
        self._lock: LogLock | None = None
        self._writer: LogWriter | None = None
        self._loss = Loss()
        """What could not be written so far, and no line tells of."""
        self._lost_starts: set[tuple[str, str]] = set()
        """The calls that are counted in it, and whose ends may be lost, too."""
        self._reserve = Reserve()
        self._running = RunningCalls()
        self.trouble = ""
        """Why records cannot be written now; empty when they can."""
        self.shortage = ""
        """That the disk is full, and records are written only because there is room that was kept for them."""
        self._told_of_disturbance = False

    def write(self, record: dict[str, Any]) -> None:
        """Append a record with its time; a failure is said once and by policy stops calls."""
        now = self._now()
        try:
            self._write(now, record)
            if not self._reserve.is_short or record.get("event") == "start":
                self.trouble = ""  # that there was room for an end does not say that there is any for a start
        except OSError as error:
            self._lose(record, error.strerror or str(error), now)
            self._report(error)

    def close(self) -> None:
        """Tell of what is missing, if that can be done now; else leave word for whoever writes next."""
        if self._loss:
            with contextlib.suppress(OSError):
                self._write(self._now(), None)
        self._close_files()
        if self._writer:
            self._writer.close(leaving=bool(self._loss))
            self._writer = None

    def _write(self, now: str, record: dict[str, Any] | None) -> None:
        """Take our turn and write: first of what is missing, then the record."""
        if self._head_fd == CLOSED:
            self._open_head()
            is_new = True
        else:
            is_new = False
        lock = self._lock = self._lock or LogLock(self.folder)
        lock.take(self._head_fd, patience=0.0 if self.trouble else None)
        try:
            if is_new:
                self._tell_of_the_gone(now)
            if self._loss.lines:
                self._tell_of_loss(now, is_last=record is None)
            if lock.disturbed != self._told_of_disturbance:
                self._tell_of_disturbance(now, lock.disturbed)
            if record is not None:
                self._add_record(now, record)
        finally:
            lock.give_back(self._head_fd)

    def _add_record(self, now: str, record: dict[str, Any]) -> None:
        """A line of a call, or of what it did; only the end of one that is on record has room kept for it."""
        event, last = record.get("event"), self._last(now)
        if event == "start":
            if self._writer:
                # It says who will write the end, so that others know when that cannot come any more.
                record = {**record, "writer": self._writer.id}
            after = self._add(now, record, last, has_room=False)
            self._running.begin(record, after.size - last.size)
        else:
            self._add(now, record, last, has_room=event == "end" and self._running.end(record))

    def _tell_of_loss(self, now: str, *, is_last: bool) -> None:
        """How much is missing; not in the room for ends, unless nobody will be there later to tell it."""
        with contextlib.suppress(NoRoom):
            self._add(now, self._loss.record(), self._last(now), has_room=is_last)
            self._loss = Loss()
            self._lost_starts.clear()
            self._note_loss()

    def _lose(self, record: dict[str, Any], reason: str, now: str) -> None:
        call, event = call_of(record), record.get("event")
        self._loss.add(record, reason, now, is_counted=call in self._lost_starts)
        if event == "start":
            self._lost_starts.add(call)
        elif event == "end":
            self._lost_starts.discard(call)

    def _tell_of_the_gone(self, now: str) -> None:
        """Write what applications that were killed, or could not write, have left unsaid."""
        self._writer = self._writer or LogWriter(self.folder)
        gone, living = self._writer.others()
        for one in gone:
            if one.loss:
                self._add(now, one.loss.record(), self._last(now))
        if gone or is_from_before_boot(self._head_fd):
            calls = interrupted_calls(day_files(self.folder), {*living, self._writer.id})
            if calls:
                self._add(now, interrupted_record(calls), self._last(now))
        forget(gone)

    def _tell_of_disturbance(self, now: str, disturbed: bool) -> None:
        self._told_of_disturbance = disturbed
        if disturbed:
            record = {"event": "repair", "found": "a lock on the head that is not given back; recording goes on"}
            self._add(now, record, self._last(now))

    def _now(self) -> str:
        """The time as text; for lines of the same second only the fraction is formatted anew."""
        second, nanos = divmod(self._clock(), 1_000_000_000)
        if second != self._second[0]:
            self._second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
        return f"{self._second[1]}.{nanos // 1000:06}+00:00"

    def _last(self, now: str) -> Head:
        """The last line of the log: quickly our own, if nobody wrote since and nothing was removed."""
        head, fd = self._head, self._fd
        if fd != CLOSED and now.startswith(head.day) and os.pread(self._head_fd, HEAD_SIZE, 0) == self._head_bytes:
            file = os.fstat(fd)
            if file.st_size == head.size and file.st_nlink:
                return head
        return self._settled_last(now)

    def _settled_last(self, now: str) -> Head:
        """The last line of the log, after a repair line if the log is not as the head says."""
        head = Head.read(os.pread(self._head_fd, HEAD_SIZE, 0))
        head = self._without_head(now) if head is None else self._settled(head, now)
        # Always the day that the clock shows: one that was wrong once must not decide where all later lines go.
        return head if now[:10] == head.day else self._turn_to(now[:10], head, now)

    def _turn_to(self, day: str, head: Head, now: str) -> Head:
        """Go on in the file of another day, which may have lines already when the clock was set back."""
        size = self._size_of(day)
        last, end = last_line(self._day_file(day))
        # It may follow the head already, if somebody was killed before the head could say so.
        hash = last.hash if last and last.prev == head.hash else head.hash
        turned = Head(day, end, last.seq if last else 0, hash)
        self._save(turned)
        return turned if size == turned.size else self._repair(turned, now, "torn or foreign lines")

    def _settled(self, head: Head, now: str) -> Head:
        """The head, after a repair line if the file of its day is not as it says."""
        if not head.day:
            return head
        size = self._size_of(head.day)
        if size > head.size:
            head = last_link(self._day_file(head.day), head)  # somebody was killed between a line and its head
        if size == head.size:
            return head
        return self._repair(head, now, "missing lines" if size < head.size else "torn or foreign lines")

    def _without_head(self, now: str) -> Head:
        """The last line of a log without a head: it is empty, or somebody removed the head, which is recorded."""
        from toolyard.runtime.audit.verify import end_of_chain

        end = end_of_chain(self.folder)
        return NO_HEAD if end is None else self._repair(end, now, "no head")

    def _repair(self, head: Head, now: str, found: str) -> Head:
        """End a line that a crash cut off, and add one that says what was found."""
        head = replace(head, size=self._size_of(head.day))
        record: dict[str, Any] = {"event": "repair", "found": found}
        if torn := read_from(self._day_file(head.day), 0).rpartition(b"\n")[2]:
            record["torn"] = sha256(torn).hexdigest()
        return self._add(now, record, head, before=b"\n" if torn else b"")

    def _add(self, now: str, record: dict[str, Any], head: Head, *, before: bytes = b"", has_room: bool = True) -> Head:
        """Write the line that follows the head, or nothing of it, into the file that is open, and then the new head.

        Where room is short, only what `has_room` kept for it gets any of that.
        """
        line, after = seal(now, record, head)
        if after.size >= self._reserve.due_at or self._loss.lines:  # which is to be told as soon as there is room
            self._renew_reserve(head.size, len(line))
        if self._reserve.is_short:
            line, after = self._short_line(now, record, head, has_room=has_room)
        if before:
            line, after = before + line, replace(after, size=after.size + len(before))
        written = os.write(self._fd, line)
        if written != len(line):
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            raise OSError(errno.ENOSPC, DISK_FULL)
        self._save(after)
        return after

    def _short_line(self, now: str, record: dict[str, Any], head: Head, *, has_room: bool) -> tuple[bytes, Head]:
        """A line for which there is not much room: its texts are cut, unless there is more room again."""
        line, after = seal(now, record, head)
        needed = len(line)
        if record.get("event") == "gap":  # which is short by itself, and told only where lines can follow it
            needed += LONGEST_LINE
        else:
            short = shortened(record)
            if short is not record:
                self._renew_reserve(head.size, len(line))
                if not self._reserve.is_short:
                    return line, after
                line, after = seal(now, short, head)
            needed = len(line)
            if needed > LONGEST_LINE:
                raise NoRoom
        if not has_room and room_beyond(self._fd) - needed < self._running.room_for_ends:
            raise NoRoom
        return line, after

    def _renew_reserve(self, size: int, line: int) -> None:
        """Keep room for the lines to come; that there is no more to be had is said once, as long as it lasts."""
        self._reserve.renew(self._fd, size, line=line, ends=self._running.size)
        if not self._reserve.is_short:
            self.shortage = ""
            keep_for_next_day(self.folder)
            return
        told, room = bool(self.shortage), room_beyond(self._fd) >> 10
        self.shortage = f"the disk is full; the audit log has room for {room} KiB more, which was kept for it"
        if not told:
            self._on_failure(self.shortage)

    def _save(self, head: Head) -> None:
        self._head, self._head_bytes = head, head.as_bytes()
        os.pwrite(self._head_fd, self._head_bytes, 0)

    def _open_head(self) -> None:
        self._begin()
        self._head_fd = open_own(head_path(self.folder), os.O_RDWR | os.O_CREAT)
        os.close(enter(self.folder, make=True))  # after the head, so that one without it has lost it

    def _size_of(self, day: str) -> int:
        """Open a day's file if it is not open, and return its size."""
        if self._fd != CLOSED and day == self._day:
            try:
                with entered(self.folder) as days:
                    facts = os.stat(self._file, dir_fd=days, follow_symlinks=False)
                if facts.st_ino == self._inode:
                    return facts.st_size
            except FileNotFoundError:
                pass  # and is made again
        return self._open_day(day)

    def _open_day(self, day: str) -> int:
        if self._fd != CLOSED:
            if day != self._day:
                give_back(self._fd)
            os.close(self._fd)
            self._fd = CLOSED
        self._reserve.forget()
        self._file = self._day_file(day).name
        with entered(self.folder, make=True) as days:
            become_day(self.folder, days, self._file)
            self._fd = open_within(days, self._file, APPENDING)
        self._day = day
        facts = os.fstat(self._fd)
        self._inode = facts.st_ino
        return facts.st_size

    def _day_file(self, day: str) -> Path:
        return self.folder / f"{day}.ndjson"

    def _close_files(self) -> None:
        for fd in (self._fd, self._head_fd):
            if fd != CLOSED:
                os.close(fd)
        self._fd = self._head_fd = CLOSED
        if self._lock:
            self._lock.close()
            self._lock = None

    def _note_loss(self) -> None:
        if self._writer:
            self._writer.note(self._loss)

    def _report(self, error: OSError) -> None:
        self._note_loss()
        self._close_files()
        message = f"the audit log cannot be written: {error.strerror or error}"
        if not self.trouble:
            self._on_failure(message)
        self.trouble = message
        if self.policy.on_failure == "stop":
            raise AuditUnavailable(message)
