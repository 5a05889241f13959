"""Reading the audit log: lines by what they are about, old ones and new ones as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.files.own.entering import reading_own
from toolyard.runtime.audit.chain import day_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


Record = dict[str, Any]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines are wanted; None means all."""

    tool: str | None = None
    session: str | None = None
    """The beginning of a session's name is enough."""
    day: str | None = None
    failures: bool = False

    def wants(self, record: Record) -> bool:
        """Whether a line is wanted; one without a session or a tool matches only if none is asked for."""
        return (
            (self.tool is None or record.get("tool") == self.tool)
            and (self.session is None or str(record.get("session", "")).startswith(self.session))
            and (not self.failures or is_failure(record))
        )


def is_failure(record: Record) -> bool:
    return record.get("event") == "end" and (record.get("failure") is not None or record.get("exit") not in (0, None))


def records_of(folder: Path, wanted: Filter) -> Iterator[Record]:
    """The wanted lines, oldest first; what is no line is left out, for `check_log` to name."""
    for file in files_of(folder, wanted):
        with reading_own(file) as log:
            yield from decoded(log, wanted)


def calls_of(records: Iterable[Record]) -> Iterator[Record]:
    """One line for each call: its end, or its start when it has no end (yet)."""
    started: dict[tuple[Any, Any], Record] = {}
    for record in records:
        key = (record.get("session"), record.get("call_id"))
        if record.get("event") == "start":
            started[key] = record
        else:
            started.pop(key, None)
            yield record
    yield from started.values()


class LogFollower:
    """The lines as they come: first those that are there, then each time the new ones."""

    def __init__(self, folder: Path, wanted: Filter) -> None:
        self._folder = folder
        self._wanted = wanted
        self._offsets: dict[Path, int] = {}

    def more(self) -> list[Record]:
        """The lines since the last time."""
        found: list[Record] = []
        for file in files_of(self._folder, self._wanted):
            with reading_own(file) as log:
                log.seek(self._offsets.get(file, 0))
                whole, newline, _ = log.read().rpartition(b"\n")
            self._offsets[file] = self._offsets.get(file, 0) + len(whole) + len(newline)
            found += decoded(whole.split(b"\n"), self._wanted)
        return found


def files_of(folder: Path, wanted: Filter) -> list[Path]:
    return [file for file in day_files(folder) if wanted.day in (None, file.stem)]


def decoded(lines: Iterable[bytes], wanted: Filter) -> Iterator[Record]:
    for line in lines:
        try:
            record = decode_json(line, dict[str, Any])
        except msgspec.DecodeError:
            continue
        if wanted.wants(record):
            yield record
