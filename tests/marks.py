"""Processes that a test can find again by a mark of its own, whatever becomes of their parents."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path


def fresh_mark() -> str:
    """A number of seconds that nobody else sleeps, short enough that nothing outlives a failed test for long."""
    return f"97.{uuid.uuid4().int % 10**12:012}"


def marked(mark: str) -> list[str]:
    """Pid and command line of every living process with the mark in its arguments or environment."""
    return [f"{pid} {words}" for pid, words, variables in processes() if mark in words or mark in variables]


def end_marked(mark: str) -> None:
    for found in marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(found.split()[0]), signal.SIGKILL)


def processes() -> Iterator[tuple[int, str, str]]:
    """Pid, command line and environment of every process that lives; a zombie has neither."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words, variables = ((entry / name).read_bytes() for name in ("cmdline", "environ"))
                if words:  # between two programs there are none for a moment
                    yield (
                        int(entry.name),
                        words.replace(b"\0", b" ").decode(errors="replace"),
                        variables.decode(errors="replace"),
                    )
