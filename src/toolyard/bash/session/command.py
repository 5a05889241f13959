"""A command of a shell from the moment it is sent: what it is, and what happens to it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from toolyard.bash.session.channels import OutputChannel, ShellOutput
    from toolyard.bash.session.control_channel import Record
    from toolyard.process.output import Transcript


NO_MARK = -1
"""Of a command that starts no process, so that none carries its mark."""

Change = Literal["done", "ended", "timeout", "waiting", "too_much", "interrupted", "lost"]
"""It is over, its shell has ended, its time is over, it waits for input, it printed more than it may, it shall end,
its shell waits for the next command without having told its end."""


class Command:
    __slots__ = (
        *(
            "_changes",
            "_waiter",
            "channel",
            "end_number",
            "ended",
            "has_records",
            "has_terminal",
            "mark",
            "notice",
            "number",
        ),
        *("record", "rest", "started", "text", "transcript"),
    )

    def __init__(self, number: int, text: str, transcript: Transcript, mark: int) -> None:
        self.number = number
        self.text = text
        self.transcript = transcript
        self.mark = mark
        """What all its processes carry."""
        self.started = self.ended = time.monotonic()
        self.record: Record | None = None
        self.channel: OutputChannel | ShellOutput | None = None
        self.has_records = False
        """Whether records of ours came into its output."""
        self.rest = 0
        """How many bytes bash has still to read when it has its first line, before which nothing runs."""
        self.has_terminal = False
        """Whether it reads what is typed at its shell's terminal."""
        self.end_number: int | None = None
        """Of a job, whose own record tells that it has begun: the number of the record that tells its end."""
        self.notice: str | None = None
        """What the caller has to know of the shell that it runs in."""
        self._changes: list[Change] = []
        self._waiter: asyncio.Future[None] | None = None

    def notify(self, change: Change) -> None:
        self._changes.append(change)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next_change(self, *, within: float | None = None) -> Change:
        """The next thing that happens; `timeout` when nothing does in time."""
        loop = asyncio.get_running_loop()
        if not self._changes:
            self._waiter = loop.create_future()
            alarm = None if within is None else loop.call_later(max(within, 0.0), self.notify, "timeout")
            try:
                await self._waiter
            finally:
                if alarm:
                    alarm.cancel()
        return self._changes.pop(0)
