"""Checking an audit log: whether a line was changed, removed, added or put elsewhere since it was written."""

from __future__ import annotations

import contextlib
import fcntl
import os
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from toolyard.runtime.audit.chain import BEGINNING, Head, day_files, head_path, read_link, take_lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


CHANGED = "it was changed after it was written"
ELSEWHERE = "it does not follow the line before: lines were removed, added or put elsewhere"
NOT_OURS = "it is not a line of the log"
CUT_SHORT = "it was cut short by a crash or a full disk, and nothing was written since"
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


class LogCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of a log found."""

    lines: int
    days: int
    head: str
    """The hash of the last line; one that was noted elsewhere shows later whether the log still leads to it."""
    starts_at_the_beginning: bool
    """Whether the first line is the first that ever was; days that were put away are not missed."""
    broken: Damage | None


class ChainCheck:
    """Follows the lines of a log, and stops at the first that is not linked to the one before it."""

    def __init__(self, head: Head | None) -> None:
        self.head = head
        self.head_seen = False
        self.lines = 0
        self.last = BEGINNING
        self.first_prev: str | None = None

    def follow_day(self, file: Path, size: int) -> Damage | None:
        seq, torn = 0, None
        for number, line in enumerate(lines_of(file, size), 1):
            self.lines += 1
            link = read_link(line)
            if link is None and line.endswith(b"\n") and torn is None:
                torn = line[:-1]  # forgiven if the next line tells of it
                continue
            if link is None:
                return Damage(file=file, line=number, reason=NOT_OURS if line.endswith(b"\n") else CUT_SHORT)
            if torn is not None and not tells_of(line, torn):
                return Damage(file=file, line=number - 1, reason=NOT_OURS)
            if not link.holds:
                return Damage(file=file, line=number, reason=CHANGED)
            self.first_prev = self.first_prev or link.prev
            if link.seq != seq + 1 or link.prev != (self.last if self.last != BEGINNING else self.first_prev):
                return Damage(file=file, line=number, reason=ELSEWHERE)
            seq, torn, self.last = link.seq, None, link.hash
            self.see(file.stem, link.seq, link.hash)
        return None if torn is None else Damage(file=file, line=number, reason=NOT_OURS)

    def see(self, day: str, seq: int, hash: str) -> None:
        """Note whether the head is this line; lines after it were written just before a crash."""
        if self.head and (self.head.day, self.head.seq, self.head.hash) == (day, seq, hash):
            self.head_seen = True


def check_log(folder: Path) -> LogCheck:
    """Follow the whole chain; calls that are recorded meanwhile are not waited for."""
    head, sizes = snapshot(folder)
    chain = ChainCheck(head)
    broken = next(filter(None, (chain.follow_day(file, size) for file, size in sizes.items())), None)
    if broken is None and (sizes or head):
        broken = check_end(folder, chain, [*sizes])
    return LogCheck(
        lines=chain.lines,
        days=len(sizes),
        head=chain.last,
        starts_at_the_beginning=chain.first_prev in (None, BEGINNING),
        broken=broken,
    )


def check_end(folder: Path, chain: ChainCheck, files: list[Path]) -> Damage | None:
    """Whether the last line there is is the last that was written."""
    if chain.head is None:
        return Damage(file=head_path(folder), line=None, reason=NO_HEAD)
    if chain.head_seen:
        return None
    reason = f"lines are missing at its end, up to line {chain.head.seq} of {chain.head.day}"
    return Damage(file=files[-1] if files else folder, line=None, reason=reason)


def snapshot(folder: Path) -> tuple[Head | None, dict[Path, int]]:
    """The head and the sizes of all files at one moment between two lines."""
    sizes = sizes_of(folder)  # before the head is looked for, which is there before the first line is
    try:
        fd = os.open(head_path(folder), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None, sizes
    try:
        with contextlib.suppress(OSError):  # a writer that was stopped
            take_lock(fd, fcntl.LOCK_SH)
        return Head.read(os.read(fd, 4096)), sizes_of(folder)
    finally:
        os.close(fd)


def sizes_of(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_size for file in day_files(folder)}


def lines_of(file: Path, size: int) -> Iterator[bytes]:
    """The lines of a file up to a size."""
    with file.open("rb") as log:
        while size > 0 and (line := log.readline(size)):
            size -= len(line)
            yield line


def tells_of(line: bytes, torn: bytes) -> bool:
    """Whether a line is the repair of one that was cut off."""
    try:
        record = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return bool(record.get("event") == "repair" and record.get("torn") == sha256(torn).hexdigest())
