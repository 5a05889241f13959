"""Ends a command with SIGINT, then SIGTERM, then SIGKILL, until the shell is free again."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from toolyard.process.process_tree import descendants, marked, signal_all

if TYPE_CHECKING:
    from toolyard.bash.session.command import Command
    from toolyard.bash.session.shell import Shell


PATIENCE = 0.5
STEPS = ((signal.SIGTERM, 0.7), (signal.SIGKILL, 0.3))
"""The signals for its processes after SIGINT, and how long they have to react."""
TRIES = 6
TRY_EVERY = 0.25
LAST_LOOKS = 20
ASK_EVERY = 0.1


async def interrupt_command(shell: Shell, command: Command, *, patience: float = PATIENCE) -> bool:
    """End a command with all its children; tell whether the shell lives on.

    `patience` is how long its own traps on SIGINT, and its processes, have to react to the first signal.
    """
    steps = ((signal.SIGINT, patience), *STEPS, *((signal.SIGKILL, TRY_EVERY),) * TRIES)
    for tried, (number, patience) in enumerate(steps):
        shell.interrupt(firmly=tried > 0)  # first, so that it gives up the rest of its list when the child is gone
        signal_all(processes_of(shell, command), number)
        if tried > 0:
            shell.terminal.type_end()
        if await wait_until_over(shell, command, patience) or shell.process.exit_status is not None:
            break
        if tried > len(STEPS) + 1:
            shell.end()
    await end_processes(shell, command)
    shell.terminal.drop_input()
    return command.record is not None


async def end_processes(shell: Shell, command: Command) -> None:
    """Kill what is left of a command, and look until there is nothing."""
    for _ in range(LAST_LOOKS):
        left = processes_of(shell, command)
        if not left:
            return
        signal_all(left, signal.SIGKILL)
        await asyncio.sleep(0.005)


def processes_of(shell: Shell, command: Command) -> dict[int, int]:
    """The processes of a command; where there are no marks, all that the shell started."""
    pid = shell.process.pid
    found = marked(range(command.mark, command.mark + 1)) if command.mark else descendants([pid])
    found.pop(pid, None)
    return found


async def wait_until_over(shell: Shell, command: Command, patience: float) -> bool:
    """Wait for a command's record or its shell's end, and ask for the record again meanwhile."""
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    while (left := until - loop.time()) > 0:
        if await command.next_change(within=min(left, ASK_EVERY)) in ("done", "ended"):
            return True
        shell.ask_again(command)
    return command.record is not None
