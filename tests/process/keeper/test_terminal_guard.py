"""A terminal has its modes again when the program that changed them is gone, however it went."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from support import PATIENCE

PROGRAM = """
import os, sys, termios, tty
from toolyard.process.keeper.terminal_guard import guarded_terminal
with guarded_terminal(0):
    before = termios.tcgetattr(0)
    tty.setraw(0)
    changed = termios.tcgetattr(0)
    if sys.argv[1] == "as a shell":
        changed[3] |= termios.ISIG
        termios.tcsetattr(0, termios.TCSANOW, changed)
    if sys.argv[1] == "unseen":
        changed = before
        changed[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, changed)
    print("ready", flush=True)
    sys.stdin.read(1) if sys.argv[1] != "ends" else None
"""


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = os.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def started(terminal: tuple[int, int], how: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, how], stdin=terminal[1], stdout=terminal[1])
    seen = b""
    while b"ready" not in seen:
        assert select.select([terminal[0]], [], [], PATIENCE)[0]
        seen += os.read(terminal[0], 1000)
    return process


def guards_of(terminal: tuple[int, int]) -> list[str]:
    """The processes that have the terminal open, but for ourselves."""
    name, found = os.ttyname(terminal[1]), []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        if int(pid) != os.getpid() and name in open_files(pid):
            found.append(pid)
    return found


def open_files(pid: str) -> set[str]:
    """What a process has open; one that just starts closes files while it is looked at."""
    links = set()
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return links


@pytest.mark.parametrize("how", ["raw", "unseen"])
def test_a_program_that_is_killed_leaves_its_terminal_as_it_was(terminal: tuple[int, int], how: str):
    before = termios.tcgetattr(terminal[1])
    process = started(terminal, how)
    assert termios.tcgetattr(terminal[1]) != before
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    until_gone(terminal)
    assert termios.tcgetattr(terminal[1]) == before


def test_a_terminal_that_a_shell_has_taken_over_is_the_shells(terminal: tuple[int, int]):
    process = started(terminal, "as a shell")
    taken = termios.tcgetattr(terminal[1])
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    until_gone(terminal)
    assert termios.tcgetattr(terminal[1]) == taken


def test_a_program_that_ends_by_itself_takes_its_guard_with_it(terminal: tuple[int, int]):
    process = started(terminal, "ends")
    changed = termios.tcgetattr(terminal[1])
    assert process.wait(PATIENCE) == 0
    assert guards_of(terminal) == []
    assert termios.tcgetattr(terminal[1]) == changed, "who changes modes changes them back"


def until_gone(terminal: tuple[int, int]) -> None:
    deadline = time.monotonic() + PATIENCE
    while guards_of(terminal):
        assert time.monotonic() < deadline
        time.sleep(0.01)
