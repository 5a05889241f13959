"""Processes that a test can find again by a mark of its own, whatever becomes of their parents."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Iterator


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
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                # Between two programs there are no words for a moment, and the kernel's own have none at all.
                if words := read(f"/proc/{name}/cmdline"):
                    variables = read(f"/proc/{name}/environ")
                    yield int(name), words.replace("\0", " "), variables


def read(path: str) -> str:
    """In few steps, for some tests look at all processes again and again until something is so."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(descriptor, 1 << 16):
            pieces.append(piece)
        return b"".join(pieces).decode(errors="replace")
    finally:
        os.close(descriptor)
