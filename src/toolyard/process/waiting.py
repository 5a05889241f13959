"""Waiting with a deadline, and in spite of cancellations; and long work of which nobody has to wait for the end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from toolyard.core.tool import Truncation  # noqa: TC001 - the struct's fields are looked at while it is made

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

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

    async def get_within(self, seconds: float | None) -> T | None:
        """The value, or None when it takes longer."""
        if self._value is None:
            loop = asyncio.get_running_loop()
            alarm = None if seconds is None else loop.call_later(seconds, self._wake)
            self._waiter = loop.create_future()
            try:
                await self._waiter
            finally:
                if alarm:
                    alarm.cancel()
        return self._value

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


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
