"""Checking an audit log: whether a line was changed, removed, added or put elsewhere since it was written."""

from __future__ import annotations

import contextlib
import fcntl
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.files.own.entering import has_own, open_own, reading_own
from toolyard.runtime.audit.chain import BEGINNING, Head, day_files, head_path, last_line, read_link, size_of
from toolyard.runtime.audit.writers import LogLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from toolyard.runtime.audit.chain import Link


CHANGED = "it was changed after it was written"
ELSEWHERE = "it does not follow the line before: lines were removed, added or put elsewhere"
NOT_OURS = "it is not a line of the log"
CUT_SHORT = "it was cut short by a crash or a full disk, and nothing was written since"
GAP_MARK = b'"event":"gap"'
EMPTIED = "it was begun, but neither its head nor any line is there any more"
NO_HEAD = "it is missing or unreadable, and only it says which line is the last"


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """The first place where a log is not what was written."""

    file: Path
    line: int | None
    """None when it is not about one line."""
    reason: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.reason}"


class GapLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line says that tells of others that are missing."""

    event: str
    calls: int = 0
    lines: int = 0
    reason: str = ""
    time: str = ""


class Gap(GapLine, frozen=True, kw_only=True):
    """Calls of which the log has no line, or no end."""

    file: Path
    line: int

    def __str__(self) -> str:
        calls, have = ("1 call", "has") if self.calls == 1 else (f"{self.calls} calls", "have")
        missing = f"{self.lines} lines of {calls} could not be written" if self.lines else f"{calls} {have} no end"
        return f"{self.file}:{self.line}: {missing}: {self.reason}"


class LogCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of a log found."""

    lines: int
    days: int
    head: str
    """The hash of the last line; one that was noted elsewhere shows later whether the log still leads to it."""
    starts_at_the_beginning: bool
    """Whether the first line is the first that ever was; days that were put away are not missed."""
    broken: Damage | None
    gaps: tuple[Gap, ...] = ()
    """What the log itself says is missing in it."""
    behind_head: int = 0
    """How many lines at the end the head does not know: written just before a crash, or by somebody else. The next
    line that is recorded takes them over."""

    @property
    def is_whole(self) -> bool:
        """Whether every line is there that should be, and no other; one without an end is on record all the same."""
        return self.broken is None and not self.behind_head and not any(gap.lines for gap in self.gaps)


class DayReader:
    """Reads the lines of a day's file one after the other, and looks at each by itself."""

    def __init__(self, file: Path, size: int) -> None:
        self.file = file
        self.number = 0
        """Of the line that comes next."""
        self.seq = 0
        self._lines = lines_of(file, size)
        self._next: bytes | Damage | None = None
        self._link: Link | None = None
        self._read()

    @property
    def damage(self) -> Damage | None:
        return self._next if isinstance(self._next, Damage) else None

    @property
    def prev(self) -> str | None:
        """The hash of the line that the next one follows; None when there is none."""
        return self._link.prev if self._link else None

    @property
    def is_at_end(self) -> bool:
        return self._next is None

    def take(self) -> tuple[bytes, Link]:
        """The next line; only if there is one without damage."""
        line, link = self._next, self._link
        if not isinstance(line, bytes) or link is None:
            raise ValueError("there is no such line")
        self.seq = link.seq
        self._read()
        return line, link

    def elsewhere(self) -> Damage:
        return self.damage or self._damage(ELSEWHERE)

    def _read(self) -> None:
        torn: bytes | None = None
        self._next = self._link = None
        for line in self._lines:
            self.number += 1
            link = read_link(line)
            if link is None and line.endswith(b"\n") and torn is None:
                torn = line[:-1]  # forgiven if the next line tells of it
                continue
            self._next = self._judged(line, link, torn)
            self._link = link if self._next is line else None
            return
        if torn is not None:
            self._next = self._damage(NOT_OURS)

    def _judged(self, line: bytes, link: Link | None, torn: bytes | None) -> bytes | Damage:
        if link is None:
            return self._damage(NOT_OURS if line.endswith(b"\n") else CUT_SHORT)
        if torn is not None and not tells_of(line, torn):
            return self._damage(NOT_OURS, back=1)
        if not link.holds:
            return self._damage(CHANGED)
        return line if link.seq == self.seq + 1 else self._damage(ELSEWHERE)

    def _damage(self, reason: str, *, back: int = 0) -> Damage:
        return Damage(file=self.file, line=self.number - back, reason=reason)


class ChainCheck:
    """Follows the lines of a log from file to file, and stops where no line follows.

    Mostly a day follows a day; where the clock was set, the chain leads to another file and perhaps back.
    """

    def __init__(self, head: Head | None, sizes: Mapping[Path, int]) -> None:
        self.head = head
        self.head_seen = head is not None and head.hash == BEGINNING
        self.lines = 0
        self.behind_head = 0
        self.last = BEGINNING
        self.gaps: list[Gap] = []
        self.readers = {file.stem: DayReader(file, size) for file, size in sizes.items()}
        self.at: DayReader | None = None
        """The file of the last line."""
        self.first_prev: str | None = None

    def follow(self) -> Damage | None:
        """Go along the chain to its end; says what is wrong if that is not the end of all files."""
        reader = self._first()
        if reader is None:
            return None
        self.first_prev = self.last = reader.prev or BEGINNING
        while reader:
            while reader.prev == self.last:
                self._take(reader)
            if reader.damage:
                break
            reader = self._following()
        unread = [each for each in (self.at, *self.readers.values()) if each and not each.is_at_end]
        return unread[0].elsewhere() if unread else None

    def _take(self, reader: DayReader) -> None:
        number = reader.number
        line, link = reader.take()
        self.lines += 1
        self.at, self.last = reader, link.hash
        self.behind_head += self.head_seen
        if self.head and (self.head.day, self.head.seq, self.head.hash) == (reader.file.stem, link.seq, link.hash):
            self.head_seen = True
            self.behind_head = 0
        if GAP_MARK in line and (gap := read_gap(reader.file, number, line)):
            self.gaps.append(gap)

    def _first(self) -> DayReader | None:
        """The file where the chain begins: its first line follows none that is here."""
        readers = [reader for reader in self.readers.values() if not reader.is_at_end]
        found = next((reader for reader in readers if reader.prev == BEGINNING), None)
        if found or len(readers) < 2:
            return found or next(iter(readers), None)
        here = known_hashes({reader.prev for reader in readers if reader.prev}, [reader.file for reader in readers])
        return next((reader for reader in readers if reader.prev not in here), readers[0])

    def _following(self) -> DayReader | None:
        return next((reader for reader in self.readers.values() if reader.prev == self.last), None)

    def check_end(self, folder: Path) -> Damage | None:
        """Whether the last line there is is the last that was written."""
        if self.head is None:
            return Damage(file=head_path(folder), line=None, reason=NO_HEAD)
        if self.head_seen or self._is_turned(self.head):
            return None
        reason = f"lines are missing at its end, up to line {self.head.seq} of {self.head.day}"
        files = [reader.file for reader in self.readers.values()]
        return Damage(file=files[-1] if files else folder, line=None, reason=reason)

    def _is_turned(self, head: Head) -> bool:
        """Whether the head is that of the last line, but already says that the next will be in another file."""
        reader = self.readers.get(head.day)
        return head.hash == self.last and head.seq == (reader.seq if reader else 0)


def check_log(folder: Path) -> LogCheck:
    """Follow the whole chain; calls that are recorded meanwhile are not waited for."""
    was_begun = has_own(folder)  # before the head is looked for, which is there before the folder is
    head, sizes = snapshot(folder)
    chain = ChainCheck(head, sizes)
    broken = chain.follow()
    if broken is None and (sizes or head):
        broken = chain.check_end(folder)
    elif broken is None and was_begun and not has_own(head_path(folder)):
        broken = Damage(file=folder, line=None, reason=EMPTIED)
    return LogCheck(
        lines=chain.lines,
        days=len(sizes),
        head=chain.last,
        starts_at_the_beginning=chain.first_prev in (None, BEGINNING),
        broken=broken,
        gaps=tuple(chain.gaps),
        behind_head=chain.behind_head,
    )


def end_of_chain(folder: Path) -> Head | None:
    """Where the next line goes in a log whose head is gone; None in a log without a line."""
    chain = ChainCheck(None, sizes_of(folder))
    chain.follow()
    if chain.at is None:
        return None
    file = chain.at.file
    link, size = last_line(file)
    return Head(file.stem, size, link.seq, link.hash) if link else None


def known_hashes(wanted: set[str], files: Sequence[Path]) -> set[str]:
    """Which of these are hashes of lines."""
    found: set[str] = set()
    for file in files:
        with reading_own(file) as log:
            found |= {hash for line in log if (hash := line[-67:-3].decode("ascii", "replace")) in wanted}
    return found


def read_gap(file: Path, number: int, line: bytes) -> Gap | None:
    try:
        record = decode_json(line, GapLine)
    except msgspec.MsgspecError:
        return None
    return Gap(file=file, line=number, **msgspec.structs.asdict(record)) if record.event == "gap" else None


def snapshot(folder: Path) -> tuple[Head | None, dict[Path, int]]:
    """The head and the sizes of all files at one moment between two lines."""
    sizes = sizes_of(folder)  # before the head is looked for, which is there before the first line is
    try:
        fd = open_own(head_path(folder))
        lock = LogLock(folder)
    except OSError:
        return None, sizes
    try:
        with contextlib.suppress(OSError):  # a writer that was stopped
            lock.take(fd, fcntl.LOCK_SH)
        return Head.read(os.read(fd, 4096)), sizes_of(folder)
    finally:
        lock.close()
        os.close(fd)


def sizes_of(folder: Path) -> dict[Path, int]:
    return {file: size_of(file) for file in day_files(folder)}


def lines_of(file: Path, size: int) -> Iterator[bytes]:
    """The lines of a file up to a size."""
    with reading_own(file) as log:
        while size > 0 and (line := log.readline(size)):
            size -= len(line)
            yield line


def tells_of(line: bytes, torn: bytes) -> bool:
    """Whether a line is the repair of one that was cut off."""
    try:
        record = decode_json(line, dict[str, Any])
    except msgspec.DecodeError:
        return False
    return bool(record.get("event") == "repair" and record.get("torn") == sha256(torn).hexdigest())
