"""Which processes a contestant has, and what they hold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

MARK = "TOOLYARD_BENCH_WORKER"
"""The environment variable that all processes of one worker inherit, daemons included."""


class Memory(TypedDict):
    """A worker and all below it."""

    processes: int
    pss_kib: int


def marked(id: str) -> list[int]:
    """All processes that carry the mark, and those below them that dropped it."""
    parents = dict(parentage())
    wanted = f"{MARK}={id}".encode()
    found = {pid for pid in parents if wanted in environment(pid)}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return sorted(found)


def memory(id: str) -> Memory:
    """Counted together; shared pages are counted once, in parts."""
    pids = [pid for pid in marked(id) if argv(pid)]
    return Memory(processes=len(pids), pss_kib=sum(pss_kib(pid) for pid in pids))


def running(id: str, *words: str) -> list[int]:
    """The processes with just these words as their command line."""
    return [pid for pid in marked(id) if argv(pid) == list(words)]


def parentage() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def environment(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def argv(pid: int) -> list[str]:
    """Empty for what has ended and is only not yet waited for."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    return []


def pss_kib(pid: int) -> int:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return 0
