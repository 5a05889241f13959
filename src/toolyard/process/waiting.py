"""Waiting with a deadline, and in spite of cancellations; and long work of which nobody has to wait for the end."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from toolyard.core.tool import Truncation  # noqa: TC001 - the struct's fields are looked at while it is made

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from toolyard.process.output import Captured


T = TypeVar("T")
SLICE = 0.005
"""Seconds after which others have a turn: most sweeps take less, and cost nothing more than they did."""


class PrintedBefore(msgspec.Struct, frozen=True):
    """What something had printed when it was cancelled."""

    text: str
    total_bytes: int
    truncated: Truncation | None = None


def cancelled_with(*streams: Captured) -> asyncio.CancelledError:
    """The cancellation of something that had printed by then; no class of its own, since a start has no event loop."""
    text = "".join(stream.text for stream in streams)
    cut = next((stream.truncated for stream in streams if stream.truncated), None)
    return asyncio.CancelledError(PrintedBefore(text, sum(stream.total_bytes for stream in streams), cut))


def printed_before(error: asyncio.CancelledError | None) -> PrintedBefore | None:
    """What was printed before a cancellation, if it tells."""
    told = error.args[0] if error and error.args else None
    return told if isinstance(told, PrintedBefore) else None


class Promise(Generic[T]):
    """A value that comes later. Unlike a future it can be waited for again after a deadline or a cancellation.

    One may wait for it at a time.
    """

    __slots__ = ("_value", "_waiter")

    def __init__(self) -> None:
        self._value: T | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_set(self) -> bool:
        return self._value is not None

    def set(self, value: T) -> None:
        """Only the first value counts."""
        self._value = value if self._value is None else self._value
        self._wake()

    async def get(self) -> T:
        while self._value is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._value

    async def get_within(self, seconds: float | None, deadlines: Deadlines) -> T | None:
        """The value, or None when it takes longer."""
        if self._value is None:
            alarm = None if seconds is None else deadlines.add(seconds, self._wake)
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                if alarm is not None:
                    deadlines.discard(alarm)
        return self._value

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Deadlines:
    """Wakes those whose time is over, by one timer of the loop for all of them.

    Nearly nobody's time is ever over, and a timer for each would cost more than all else that a wait does.
    """

    def __init__(self) -> None:
        self._wakes: dict[int, tuple[float, Callable[[], None]]] = {}
        self._last = 0
        self._fires_at = math.inf
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, seconds: float, wake: Callable[[], None]) -> int:
        """Wake somebody in so many seconds; returns what to `discard`."""
        due, loop = time.monotonic() + seconds, asyncio.get_running_loop()
        self._last += 1
        self._wakes[self._last] = (due, wake)
        if due < self._fires_at or loop is not self._loop:
            self._fire_at(due, loop)
        return self._last

    def discard(self, number: int) -> None:
        """They were woken by something else. The timer stays: the next who waits will need it."""
        self._wakes.pop(number, None)

    def rest(self) -> None:
        """If nobody waits, keep no timer either."""
        if not self._wakes:
            self._stop()

    def _stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._fires_at = math.inf

    def _fire_at(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        self._stop()
        self._fires_at, self._loop = due, loop
        self._timer = loop.call_later(due - time.monotonic(), self._fire, loop)

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._fires_at, now = math.inf, time.monotonic()
        for number, (due, wake) in sorted(self._wakes.items(), key=lambda one: one[1][0]):
            if due <= now:
                del self._wakes[number]
                wake()
        if self._wakes:
            self._fire_at(min(due for due, _ in self._wakes.values()), loop)


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Do what must be done to its end; a cancellation, be it the first or the tenth, is raised only then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # or asyncio would complain that nobody has looked at it
    raise cancelled


async def in_slices(steps: Generator[dict[str, str], None, None], moved: dict[str, str]) -> None:
    """Take all steps and note what each moved; who is cancelled in between knows by that what was done so far."""
    until = time.monotonic() + SLICE
    try:
        for some in steps:
            moved |= some
            if time.monotonic() >= until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE
    finally:
        steps.close()
