"""When tools could write where: kept in the user's own folder, so that it is known later what they may have changed.

The time of a change (`ctime`) and that of a file's birth are the kernel's; nobody can set them. A later change of
rights or names also sets the former, and says nothing of who wrote the content: that was somewhere between the two. So
a file is its owner's when tools could not write it in all that time, or when its last change was that of its content.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.files.atomic import replace_file
from toolyard.files.user_folders import is_named_in_record, user_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Identity: TypeAlias = "tuple[int, int]"
"""Which file it is: its device and its number there."""
MOST_SPANS = 100
TICK = 0.02
"""By how much the kernel's time of a change may lag behind."""
EMPTY_PATH, BIRTH = 0x1000, 0x800
BIRTH_ASKED = BIRTH | 0x7FF
TELL_BIRTH = {
    "ext4": 0xEF53,
    "xfs": 0x58465342,
    "btrfs": 0x9123683E,
    "tmpfs": 0x01021994,
    "f2fs": 0xF2F52010,
    "zfs": 0x2FC12FC1,
    "bcachefs": 0xCA451A4E,
    "overlay": 0x794C7630,
}.values()
"""File systems that keep when a file came to be and let nobody set it, unlike those of other machines."""


class Span(msgspec.Struct):
    """A time in which something ran that could write a workspace."""

    since: float
    live: str
    """The file that whoever opened it has locked; free when they are gone."""
    until: float | None = None
    """When the last process had ended; None while it lasts."""
    guarded: dict[str, Identity] = msgspec.field(default_factory=dict)
    """Files and folders in the workspace that nobody could write all the same."""

    def meets(self, since: float, until: float) -> bool:
        """Whether it lasted at some moment of a time."""
        return self.since - TICK <= until and (self.until is None or since <= self.until)

    def has_seen(self, born: float) -> bool:
        """Whether a file came to be while it lasted: then it is not the one that was guarded, whose number it has."""
        return self.since <= born and (self.until is None or born <= self.until)

    def guards(self, path: str, facts: os.stat_result, born: Callable[[], float]) -> bool:
        """Whether nobody could write a file all the same: it is the one that was guarded, or in a folder that was."""
        if self.guarded.get(path) == identity(facts) and not self.has_seen(born()):
            return True
        return self.guards_above(path)

    def guards_above(self, path: str) -> bool:
        """Whether a path is in a folder that nobody could write."""
        return any(self._was_guarded(above) for above in Path(path).parents)

    def _was_guarded(self, folder: Path) -> bool:
        """Whether a folder is the very one that was guarded."""
        which = self.guarded.get(str(folder))
        try:
            return which is not None and which == identity(os.stat(folder))
        except OSError:
            return False


class WriteTimes(msgspec.Struct):
    """The spans of one workspace."""

    workspace: str
    spans: list[Span] = msgspec.field(default_factory=list)


class OpenSpan:
    """A span that lasts until it is closed; if we are killed, until somebody notices."""

    def __init__(self, workspaces: Sequence[str], guarded: Mapping[str, Identity]) -> None:
        """OSError where nothing can be kept."""
        self._workspaces = workspaces
        self.live = live_folder() / f"{os.getpid()}-{os.urandom(6).hex()}"
        self.live.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(self.live, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.span = Span(since=time.time(), live=self.live.name, guarded=dict(guarded))
        try:
            for workspace in workspaces:
                with changing(workspace) as record:
                    record.spans.append(self.span)
        except OSError:
            self._let_go()  # where it was written down already, it has ended
            raise

    def close(self, until: float, guarded: Mapping[str, Identity], cleaned: Sequence[tuple[float, float]] = ()) -> None:
        """Nothing of it runs any more. `guarded` are the files that tools have not changed.

        `cleaned` is when we cleaned up after it: a change of then may be ours to what is theirs.
        """
        known, further = dict(guarded), list[Span]()
        for began, ended in cleaned:
            if began - until < TICK:
                until = max(until, ended)
            else:
                further.append(Span(since=began, until=ended, live="", guarded=known))
        for workspace in self._workspaces:
            with contextlib.suppress(OSError), changing(workspace) as record:
                for span in record.spans:
                    if span.live == self.live.name:
                        span.until, span.guarded = until, known
                record.spans += further
        self._let_go()

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            self.live.unlink()
        os.close(self._lock)


def may_be_from_tools(path: str, facts: os.stat_result) -> bool:
    """Whether tools that can write above a path may have written the file there that these facts are of."""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    spans = [span for span in spans_above(real) if span.since - TICK <= facts.st_ctime]
    born = cache(lambda: birth_time(real, facts))  # which is asked for only where it matters
    return any(
        span.meets(facts.st_ctime if is_as_written(facts) else born(), facts.st_ctime)
        and not span.guards(real, facts, born)
        for span in spans
    )


def can_be_written_now(path: str, facts: os.stat_result) -> bool:
    """Whether something may be running that can write the file at a path."""
    born = cache(lambda: birth_time(path, facts))
    return any(span.until is None and not span.guards(path, facts, born) for span in spans_above(path))


def spans_above(path: str) -> list[Span]:
    """The spans of all folders that a path is in."""
    return [span for folder in Path(path).parents for span in ended(read(record_file(str(folder)), str(folder)))]


def is_as_written(facts: os.stat_result) -> bool:
    """Whether the last change of a file was that of its content, by this name.

    The time of the content can be set, and then that of the change is another one. Nobody inside hits in advance the
    very nanosecond of a change to come; where a file system counts no finer than milliseconds they could.
    """
    is_fine = facts.st_ctime_ns % 1_000_000 != 0
    return is_fine and facts.st_mtime_ns == facts.st_ctime_ns and facts.st_nlink == 1


def birth_time(path: str, facts: os.stat_result) -> float:
    """When the file came to be that these facts are of; 0.0 where that is not known for certain."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        return birth_of(fd, facts)
    finally:
        os.close(fd)


def birth_of(fd: int, facts: os.stat_result) -> float:
    """Python does not tell, so the system is asked itself (`struct statx` and `struct statfs`)."""
    import ctypes
    import struct

    libc, told, system = ctypes.CDLL(None), ctypes.create_string_buffer(256), ctypes.create_string_buffer(256)
    try:
        failed = libc.statx(fd, b"", EMPTY_PATH, BIRTH_ASKED, told) or libc.fstatfs(fd, system)
    except AttributeError:  # of a C library that has none
        return 0.0
    (mask,), (number,) = struct.unpack_from("I", told, 0), struct.unpack_from("Q", told, 32)
    (born, born_ns), (changed, changed_ns) = (struct.unpack_from("qI", told, at) for at in (80, 96))
    is_same = (number, changed * 10**9 + changed_ns) == (facts.st_ino, facts.st_ctime_ns)
    is_certain = struct.unpack_from("l", system)[0] in TELL_BIRTH
    return born + born_ns / 10**9 if not failed and mask & BIRTH and is_same and is_certain else 0.0


def ended(record: WriteTimes) -> list[Span]:
    """The spans of a record; those whose owner is gone have ended by now, and that is kept.

    But not before somebody has cleaned up after an owner that was killed: what it had started may go on until then.
    """
    ends = {span.live: end_of(span) for span in record.spans if is_left(span)}
    known = {live: until for live, until in ends.items() if until is not None}
    for span in record.spans:
        span.until = span.until or known.get(span.live)
    if known:
        with contextlib.suppress(OSError), changing(record.workspace) as kept:
            for span in kept.spans:
                span.until = span.until or known.get(span.live)
    return record.spans


def is_left(span: Span) -> bool:
    """Whether a span was not closed by its owner, who is gone."""
    return span.until is None and is_free(live_folder() / span.live)


def end_of(span: Span) -> float | None:
    """When a span ended whose owner was killed: as whoever cleaned up says, or now where there was nothing to clean."""
    file = live_folder() / f"{span.live}.ended"
    with contextlib.suppress(OSError):
        return os.stat(file).st_mtime
    if not is_named_in_record(span.live):
        with contextlib.suppress(OSError):  # of somebody who has cleaned up just now
            return os.stat(file).st_mtime
        return time.time()
    return None


def identity(facts: os.stat_result) -> Identity:
    return facts.st_dev, facts.st_ino


def is_free(file: Path) -> bool:
    """Whether nobody has a file locked."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


@contextlib.contextmanager
def changing(workspace: str) -> Iterator[WriteTimes]:
    """Read, change and write a record as one step, whoever else does so."""
    file = record_file(workspace)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = read(file, workspace)
        yield record
        if len(record.spans) > MOST_SPANS:
            record.spans = with_nearest_merged(record.spans)
        replace_file(file, encode_json(record))
    finally:
        os.close(lock)


def with_nearest_merged(spans: list[Span]) -> list[Span]:
    """Of those that have ended, half as many: what follows soonest on another is one with it.

    Each of them says rather too much than too little: nobody could write what nobody could write in either.
    """
    over = sorted((span for span in spans if span.until is not None), key=lambda span: span.since)
    lasting = [span for span in spans if span.until is None]
    while len(over) > MOST_SPANS // 2:
        at = min(range(1, len(over)), key=lambda at: over[at].since - (over[at - 1].until or 0.0))
        over[at - 1 : at + 1] = [merged(over[at - 1], over[at])]
    return [*over, *lasting]


def merged(one: Span, other: Span) -> Span:
    return Span(
        since=min(one.since, other.since),
        until=max(one.until or 0.0, other.until or 0.0),
        live="",
        guarded={path: which for path, which in one.guarded.items() if other.guarded.get(path) == which},
    )


def read(file: Path, workspace: str) -> WriteTimes:
    """A record; an empty one where there is none. One that cannot be read says that tools could always write."""
    try:
        return decode_json(file.read_bytes(), WriteTimes)
    except FileNotFoundError:
        return WriteTimes(workspace=workspace)
    except (OSError, ValueError):
        return WriteTimes(workspace=workspace, spans=[Span(since=0.0, live="", until=time.time())])


def has_record(workspace: str) -> bool:
    """Whether tools ever worked in a folder."""
    return os.path.exists(record_file(os.path.realpath(workspace)))


def record_file(workspace: str) -> Path:
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]
    return user_folder("state") / "written" / f"{name}.json"


def live_folder() -> Path:
    return user_folder("state") / "written" / "live"
