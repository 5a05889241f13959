"""Shells that nobody has used for a while are given back; they come again with their state when they are needed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from toolyard.errors import ProcessError, ShellError

if TYPE_CHECKING:
    from toolyard.bash.session.session import BashSession


class IdleShells:
    """One task for each session that has been used, which ends with the shell that it gives back."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._used: dict[BashSession, float] = {}
        self._tasks: dict[BashSession, asyncio.Task[None]] = {}

    def used(self, bash: BashSession) -> None:
        """Its time begins anew."""
        if self._seconds is None:
            return
        loop = asyncio.get_running_loop()
        self._used[bash] = loop.time()
        if bash not in self._tasks:
            self._tasks[bash] = loop.create_task(self._watch(bash, self._seconds))

    async def forget(self, bash: BashSession) -> None:
        """It is about to end."""
        self._used.pop(bash, None)
        if task := self._tasks.pop(bash, None):
            task.cancel()
            await asyncio.wait([task])

    async def _watch(self, bash: BashSession, seconds: float) -> None:
        """Wait until it has not been used for so long, and give it back; one that cannot be is looked at again."""
        loop, given_back = asyncio.get_running_loop(), False
        while not given_back:
            if (rest := self._used[bash] + seconds - loop.time()) > 0:
                await asyncio.sleep(rest)
                continue
            with contextlib.suppress(ShellError, ProcessError):
                given_back = await bash.give_back()
            self._used[bash] = loop.time()
        del self._tasks[bash]
