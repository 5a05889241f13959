"""Work that must be done to its end and may take seconds, in slices, so that the event loop has a turn in between."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


SLICE = 0.005
"""Seconds after which others have a turn: most sweeps take less, and cost nothing more than they did."""


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
