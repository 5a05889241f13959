"""Whether something is at work inside, in any sandbox of an application that can change the workspace."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from toolyard.process.process_tree import children_of, is_blocked_in_read, start_time, stat_fields, threads_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator


SETTLES_WITHIN = 0.5
LOOKS_AGAIN_AFTER = 0.01


class WatchedKeeper(Protocol):
    """What there is to know of a keeper and its children."""

    @property
    def pid(self) -> int | None:
        """Its process id, while there is one."""

    @property
    def is_busy(self) -> bool:
        """Whether it has any children."""

    @property
    def changes_workspace(self) -> bool:
        """Whether it is inside, and what it owns can change the workspace."""

    @property
    def companions(self) -> int:
        """How many children there are that stay between calls."""

    def shells(self) -> dict[int, Callable[[], bool]]:
        """The shells by their process ids, each with what tells whether it runs a command."""


class InsideWork:
    """Knows all keepers that are inside, and can make calls wait until a line outside is over.

    A shell that waits for its next line does nothing, and neither does a companion that nobody calls.
    """

    def __init__(self) -> None:
        self.keepers: WeakSet[WatchedKeeper] = WeakSet()
        self._calls = 0
        """The calls under way that can change the workspace."""
        self._holders = 0
        self._waiting: list[asyncio.Future[None]] = []
        """Calls that wait; the event loop is imported after the first keeper has started."""

    async def is_under_way(self) -> bool:
        """Whether anything runs that could change the workspace just now, or in a moment.

        What has just ended takes a moment to be gone, and so does a shell to wait for its next line, which the kernel
        tells nobody: so it is looked again for a while.
        """
        import asyncio

        until = time.monotonic() + SETTLES_WITHIN
        while self._calls or any(is_at_work(keeper) for keeper in self.keepers):
            if time.monotonic() > until:
                return True
            await asyncio.sleep(LOOKS_AGAIN_AFTER)
        return False

    @property
    def is_held(self) -> bool:
        """Whether calls have to wait."""
        return bool(self._holders)

    async def wait(self, within: float) -> bool:
        """Wait until no call is held up any more; tell whether that came to be in so many seconds."""
        import asyncio

        try:
            async with asyncio.timeout(within):
                while self._holders:
                    self._waiting.append(asyncio.get_running_loop().create_future())
                    await self._waiting[-1]
        except TimeoutError:
            return False
        return True

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """A call is under way."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """No call begins inside meanwhile."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                self._let_go()

    def _let_go(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)


def is_at_work(keeper: WatchedKeeper) -> bool:
    """Whether more is below a keeper than shells that wait, and companions."""
    if not keeper.changes_workspace or not keeper.is_busy:
        return False
    shells = keeper.shells()
    if any(is_running() for is_running in shells.values()) or not all(map(is_waiting, shells)):
        return True
    owners = {int(fields[1]) for pid in shells if (fields := stat_fields(pid))} or {keeper.pid or 0}
    below = (child for owner in owners for child in children_of(owner) if child not in shells)
    return sum(start_time(child) is not None for child in below) > keeper.companions


def is_waiting(pid: int) -> bool:
    """Whether a process is blocked reading, alone and with no other below it; True of one that has ended.

    Where the kernel does not show what it is blocked in, that it sleeps has to do.
    """
    fields = stat_fields(pid)
    if not fields or fields[0] in (b"Z", b"X"):
        return True
    if len(threads_of(pid)) != 1 or children_of(pid):
        return False
    is_reading = is_blocked_in_read(pid)
    return fields[0] == b"S" if is_reading is None else is_reading
