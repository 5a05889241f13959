"""Asks again when a service did not answer: later each time, when it said so, and not for ever."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from typing import TYPE_CHECKING

from toolyard.agents.providers.faults import TryAgain
from toolyard.core.model import Waiting

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from toolyard.core.model import ModelEvent

FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
LONGEST_ASKED = 120.0
"""A service that wants to be left alone for longer has in effect said no."""


async def with_retries(
    attempt: Callable[[], AsyncGenerator[ModelEvent, None]], *, most: int
) -> AsyncGenerator[ModelEvent, None]:
    """The events of the first attempt that comes to an end; `Waiting` before each further one.

    An attempt raises `TryAgain` to be made again; after `most` further ones its error is raised.
    """
    for number in range(1, most + 2):
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    yield event
            return
        except TryAgain as failed:
            if number > most or (failed.after or 0) > LONGEST_ASKED:
                raise failed.error from None
            seconds, reason = wait(number, failed.after), str(failed.error)
        yield Waiting(reason=reason, seconds=seconds, attempt=number)
        await asyncio.sleep(seconds)


def wait(number: int, asked: float | None) -> float:
    """How long to wait: what was asked for, else twice as long each time, and never all at the same moment."""
    spread = random.uniform(0.75, 1.25)  # noqa: S311 - no secret
    if asked is not None:
        return asked + (spread - 0.75) * min(1.0, asked)
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (number - 1)) * spread
