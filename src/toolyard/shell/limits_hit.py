"""Saying which limit a command has run into: by the signal that ended it, the group's counters, or bash's words."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolyard.process.limits import Limits

__all__ = ["which_limit"]

NO_MEMORY = ("annot allocate memory", "MemoryError", "out of memory", "Out of memory")
NO_PROCESS = ("fork: retry: ", "fork: Resource temporarily unavailable", "Cannot fork")
NO_DESCRIPTOR = ("Too many open files",)


def which_limit(limits: Limits, group_hits: Collection[str], status: int, output: str) -> str | None:
    """A sentence on the limit, or None when it was none of ours."""
    said = output[-4096:]
    if limits.cpu_seconds is not None and status == 128 + signal.SIGXCPU:
        return f"The limit of {limits.cpu_seconds} s of processor time was reached."
    if limits.file_bytes is not None and status == 128 + signal.SIGXFSZ:
        return f"The limit of {limits.file_bytes} bytes for a file was reached."
    if "memory" in group_hits or (
        status and limits.memory_bytes is not None and any(words in said for words in NO_MEMORY)
    ):
        return f"The limit of {limits.memory_bytes} bytes of memory was reached."
    if "pids" in group_hits or (limits.processes is not None and any(words in said for words in NO_PROCESS)):
        return f"The limit of {limits.processes} processes was reached."
    if status and limits.open_files is not None and any(words in said for words in NO_DESCRIPTOR):
        return f"The limit of {limits.open_files} open files was reached."
    return None
