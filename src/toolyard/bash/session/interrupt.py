"""Ending a command: ask, insist, kill, and see the shell come back."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from toolyard.process.process_tree import descendants, marked, signal_all

if TYPE_CHECKING:
    from toolyard.bash.session.command import Command
    from toolyard.bash.session.shell import Bash


STEPS = ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.7), (signal.SIGKILL, 0.3))
"""What its processes get, and how long they may take to heed it."""
TRIES = 8
TRY_EVERY = 0.25
LAST_LOOKS = 20
ASK_EVERY = 0.1


async def bring_back(bash: Bash, command: Command) -> bool:
    """End a command with all its children; tell whether the shell lives on."""
    for number, patience in (*STEPS, *((signal.SIGKILL, TRY_EVERY),) * TRIES):
        bash.interrupt()  # first, so that it gives up the rest of its list when the child is gone
        signal_all(processes_of(bash, command), number)
        if await is_over(bash, command, patience) or bash.process.exit_status is not None:
            break
    await end_processes(bash, command)
    return command.record is not None


async def end_processes(bash: Bash, command: Command) -> None:
    """Kill what is left of a command, and look until there is nothing."""
    for _ in range(LAST_LOOKS):
        left = processes_of(bash, command)
        if not left:
            return
        signal_all(left, signal.SIGKILL)
        await asyncio.sleep(0.005)


def processes_of(bash: Bash, command: Command) -> dict[int, int]:
    """The processes of a command; where there are no marks, all that the shell started."""
    shell = bash.process.pid
    found = marked(range(command.mark, command.mark + 1)) if command.mark else descendants([shell])
    found.pop(shell, None)
    return found


async def is_over(bash: Bash, command: Command, patience: float) -> bool:
    """Wait for a command's record or its shell's end."""
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    while (left := until - loop.time()) > 0:
        if await command.next_change(within=min(left, ASK_EVERY)) in ("done", "ended"):
            return True
        bash.ask_again(command)
    return command.record is not None
