"""Runs shfmt, which parses a line of shell text.

It is started directly, without the keeper, which is there for programs that may do anything: that halves the time, and
a shell that waits for permission waits for this. Input and output are files in memory, so that nothing can block, and
the process ends by itself even when nobody waits for it any more.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from functools import cache
from pathlib import Path

PATIENCE = 5.0
MOST_OUTPUT = 16 << 20


def parse_with_shfmt(text: bytes, *, patience: float = PATIENCE) -> bytes | None:
    """The line's syntax tree as JSON; None when it is no bash, there is no shfmt, or it takes too long."""
    program = find_shfmt()
    if program is None:
        return None
    from toolyard.process.streams import memory_file

    given = taken = -1
    try:
        given, taken = memory_file(), memory_file()
        os.pwrite(given, text, 0)
        argv = [program, "--language-dialect", "bash", "--to-json"]
        actions = [
            (os.POSIX_SPAWN_DUP2, given, 0),
            (os.POSIX_SPAWN_DUP2, taken, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        pid = os.posix_spawn(program, argv, {"GOMAXPROCS": "1"}, file_actions=actions)
        if wait_for(pid, patience) != 0:
            return None
        return os.pread(taken, MOST_OUTPUT, 0)
    except OSError:
        return None
    finally:
        for descriptor in (given, taken):
            if descriptor >= 0:
                os.close(descriptor)


@cache
def find_shfmt() -> str | None:
    """The shfmt that was installed with us; one that merely stands on PATH could be anybody's."""
    import sysconfig

    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        path = folder / "shfmt"
        if os.access(path, os.X_OK):
            return str(path)
    return None


def wait_for(pid: int, patience: float) -> int | None:
    """The exit code; None when the process had to be ended."""
    if hasattr(os, "pidfd_open"):
        ended = os.pidfd_open(pid)
        try:
            poll = select.poll()  # not `select`, which knows no descriptor beyond the first thousand
            poll.register(ended, select.POLLIN)
            if not poll.poll(patience * 1000):
                os.kill(pid, signal.SIGKILL)
        finally:
            os.close(ended)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
