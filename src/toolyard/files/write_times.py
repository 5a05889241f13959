"""When tools could write where: kept in the user's own folder, so that it is known later what they may have changed.

The time of a change (`ctime`) is the kernel's; nobody can set it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.core.lossless_json import decode_json, encode_json
from toolyard.files.atomic import replace_file
from toolyard.files.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Identity: TypeAlias = "tuple[int, int]"
"""Which file it is: its device and its number there."""
MOST_SPANS = 100
TICK = 0.02
"""By how much the kernel's time of a change may lag behind."""


class Span(msgspec.Struct):
    """A time in which something ran that could write a workspace."""

    since: float
    live: str
    """The file that whoever opened it has locked; free when they are gone."""
    until: float | None = None
    """When the last process had ended; None while it lasts."""
    guarded: dict[str, Identity] = msgspec.field(default_factory=dict)
    """Files and folders in the workspace that nobody could write all the same."""

    def may_have_changed(self, path: str, facts: os.stat_result) -> bool:
        if self.guarded.get(path) == identity(facts) or any(self._was_guarded(above) for above in Path(path).parents):
            return False
        return self.since - TICK <= facts.st_ctime and (self.until is None or facts.st_ctime <= self.until)

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
        for workspace in workspaces:
            with changing(workspace) as record:
                record.spans.append(self.span)

    def close(self, until: float, guarded: Mapping[str, Identity]) -> None:
        """Nothing of it runs any more. `guarded` are the files that tools have not changed."""
        for workspace in self._workspaces:
            with contextlib.suppress(OSError), changing(workspace) as record:
                for span in record.spans:
                    if span.live == self.live.name:
                        span.until, span.guarded = until, dict(guarded)
        with contextlib.suppress(OSError):
            self.live.unlink()
        os.close(self._lock)


def may_be_from_tools(path: str, facts: os.stat_result) -> bool:
    """Whether tools that can write above a path may have changed the file there that these facts are of."""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for folder in Path(real).parents:
        record = read(record_file(str(folder)), str(folder))
        if any(span.may_have_changed(real, facts) for span in ended(record)):
            return True
    return False


def ended(record: WriteTimes) -> list[Span]:
    """The spans of a record; those whose owner is gone have ended by now, and that is kept."""
    left = [span for span in record.spans if span.until is None and is_free(live_folder() / span.live)]
    for span in left:
        span.until = end_of(span)
    if left:
        known = {span.live: span.until for span in left}
        with contextlib.suppress(OSError), changing(record.workspace) as kept:
            for span in kept.spans:
                span.until = span.until or known.get(span.live)
    return record.spans


def end_of(span: Span) -> float:
    """When a span ended whose owner was killed: as whoever cleaned up says, or else now."""
    file = live_folder() / f"{span.live}.ended"
    try:
        return os.stat(file).st_mtime
    except OSError:
        return time.time()


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
            record.spans = with_oldest_merged(record.spans)
        replace_file(file, encode_json(record))
    finally:
        os.close(lock)


def with_oldest_merged(spans: list[Span]) -> list[Span]:
    """Of the older half of those that have ended one is made, which says rather too much than too little."""
    over = [span for span in spans if span.until is not None][: MOST_SPANS // 2]
    if not over:
        return spans
    merged = Span(since=min(span.since for span in over), until=max(span.until or 0.0 for span in over), live="")
    return [merged, *(span for span in spans if span not in over)]


def read(file: Path, workspace: str) -> WriteTimes:
    """A record; an empty one where there is none. One that cannot be read says that tools could always write."""
    try:
        return decode_json(file.read_bytes(), WriteTimes)
    except FileNotFoundError:
        return WriteTimes(workspace=workspace)
    except (OSError, ValueError):
        return WriteTimes(workspace=workspace, spans=[Span(since=0.0, live="", until=time.time())])


def record_file(workspace: str) -> Path:
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]
    return user_folder("state") / "written" / f"{name}.json"


def live_folder() -> Path:
    return user_folder("state") / "written" / "live"
