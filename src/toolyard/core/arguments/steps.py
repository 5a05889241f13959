"""How much work a schema may make: every step of a check counts, and those of one check have a bound.

References let a schema of a few lines ask for the same value to be looked at a million times, and nothing can
interrupt that. Whoever checks opens a bound; whatever walks a schema or a value spends steps of it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.tool import Json

MOST_STEPS = 30_000
"""For one check, whatever it is about; they take some tenths of a second."""
STEPS_FOR_A_PART = 40
"""More for each part of a value, so that a long list of numbers can be checked as well as a short one."""

PARTS_OF_A_STEP = 20
CHARACTERS_OF_A_STEP = 2_000


class TooManySteps(ValueError):
    """Whether a value fits would take too long to find out."""


class StepsLeft:
    """What is left of a bound."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooManySteps("the schema asks for too many steps")


BOUND: ContextVar[StepsLeft | None] = ContextVar("steps left of the check that runs", default=None)


@contextmanager
def bounded_steps(value: Json = None) -> Iterator[None]:
    """Let what runs inside spend only so many steps for a value; one bound inside another is the outer one."""
    if BOUND.get() is not None:
        yield
        return
    token = BOUND.set(StepsLeft(MOST_STEPS + STEPS_FOR_A_PART * sum(1 for _ in each_part(value))))
    try:
        yield
    finally:
        BOUND.reset(token)


def spend(steps: int = 1) -> None:
    """Count steps; raises TooManySteps when there are none left."""
    if (bound := BOUND.get()) is not None:
        bound.spend(steps)


def weight_of(value: Json) -> int:
    """How many steps it takes about as long as to compare or print a value."""
    if not isinstance(value, str | dict | list):
        return 0
    parts = characters = 0
    for part in each_part(value):
        parts += 1
        characters += len(part) if isinstance(part, str) else 0
    return parts // PARTS_OF_A_STEP + characters // CHARACTERS_OF_A_STEP


def each_part(value: Json) -> Iterator[Json]:
    """A value and all that are in it."""
    todo = [value]
    while todo:
        current = todo.pop()
        yield current
        if isinstance(current, dict):
            todo.extend(current.values())
        elif isinstance(current, list):
            todo.extend(current)
