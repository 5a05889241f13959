"""What is missing in a log: lines that could not be written, and calls whose end nobody recorded.

As soon as recording works again, a line of its own says how many.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.files.own.entering import reading_own
from toolyard.runtime.audit.short_lines import short_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path


MOST_NAMED = 20
"""How many calls a gap names; it counts all."""
MOST_SEARCHED = 8 << 20
"""How far back the starts of calls are looked for, in bytes."""
KILLED = "an application ended before it recorded the end of its calls"


class Loss(msgspec.Struct, kw_only=True):
    """Lines that could not be written."""

    lines: int = 0
    calls: list[str] = msgspec.field(default_factory=list)
    """The calls that they were about, as far as they are named."""
    more_calls: int = 0
    reason: str = ""
    since: str = ""

    def add(self, record: dict[str, Any], reason: str, now: str, *, is_counted: bool) -> None:
        """Count a line, and its call unless that `is_counted` because of another line."""
        self.lines += 1
        self.reason = self.reason or reason
        self.since = self.since or now
        call = short_id(str(record.get("call_id", "")))
        if call and call not in self.calls:
            if len(self.calls) < MOST_NAMED:
                self.calls.append(call)
            elif not is_counted and record.get("event") in ("start", "end"):
                self.more_calls += 1

    def __bool__(self) -> bool:
        return self.lines > 0

    def record(self) -> dict[str, Any]:
        """The line that tells of it."""
        return {
            "event": "gap",
            "calls": len(self.calls) + self.more_calls,
            "lines": self.lines,
            "reason": self.reason,
            "since": self.since,
            "call_ids": self.calls,
        }


def interrupted_record(calls: dict[str, list[str]]) -> dict[str, Any]:
    """The line that tells of calls that were under way when their application was killed."""
    ids = [call for of_one in calls.values() for call in of_one]
    return {
        "event": "gap",
        "calls": len(ids),
        "lines": 0,
        "reason": KILLED,
        "call_ids": [short_id(id) for id in ids[:MOST_NAMED]],
        "writers": sorted(calls),
    }


class CallLine(msgspec.Struct, frozen=True):
    """What matters of a line when calls without an end are looked for."""

    event: str = ""
    session: str = ""
    call_id: str = ""
    writer: str = ""
    writers: list[str] = msgspec.field(default_factory=list)


def interrupted_calls(files: Iterable[Path], living: Collection[str]) -> dict[str, list[str]]:
    """The calls of applications that are no more, by their writers: starts without an end that no gap tells of."""
    open_calls: dict[tuple[str, str], CallLine] = {}
    told: set[str] = set(living)
    for line in recent_lines(files):
        match line.event:
            case "start" if line.writer:
                open_calls[line.session, line.call_id] = line
            case "end":
                open_calls.pop((line.session, line.call_id), None)
            case "gap":
                told.update(line.writers)
    found: dict[str, list[str]] = {}
    for line in open_calls.values():
        if line.writer not in told:
            found.setdefault(line.writer, []).append(line.call_id)
    return found


def recent_lines(files: Iterable[Path]) -> Iterator[CallLine]:
    """The lines of the files that were written last, as far as they can be read; oldest first."""
    newest = sorted(files, key=written_last)
    left, parts = MOST_SEARCHED, []
    for file in reversed(newest):
        if left <= 0:
            break
        parts.append(tail_of(file, left))
        left -= len(parts[-1])
    for part in reversed(parts):
        for line in part.split(b"\n"):
            try:
                yield decode_json(line, CallLine)
            except msgspec.MsgspecError:
                continue  # cut off, or not ours; `check_log` names it


def written_last(file: Path) -> int:
    with reading_own(file) as log:
        return os.fstat(log.fileno()).st_mtime_ns


def tail_of(file: Path, size: int) -> bytes:
    with reading_own(file) as log:
        end = log.seek(0, os.SEEK_END)
        log.seek(max(0, end - size))
        return log.read()


def is_from_before_boot(head_fd: int) -> bool:
    """Whether a log was last written before the machine started, so that nobody can have told who died.

    A log of the future comes from a clock that was wrong, and says nothing.
    """
    written, now = os.fstat(head_fd).st_mtime, time.time()
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return written > now or written < now - time.clock_gettime(clock)
