"""How much a turn may take: steps, tokens, money, time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from toolyard.agents.sessions.events import AnswerReceived, CallAnswered, TurnStarted
from toolyard.core.conversation import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.agents.sessions.events import Stored
    from toolyard.config.agent_settings import BudgetSettings


class Spent(msgspec.Struct, kw_only=True):
    """What a turn has taken so far."""

    steps: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0

    def add(self, usage: Usage, steps: int = 1) -> None:
        self.steps += steps
        self.usage = self.usage + usage


def spent_in(events: Sequence[Stored]) -> Spent:
    """What the last turn took before it was cut off, by its events; its time is not among them."""
    spent = Spent()
    for one in reversed(events):
        match one.event:
            case TurnStarted():
                break
            case AnswerReceived(message=message):
                spent.add(message.usage)
            case CallAnswered(steps=steps, usage=usage):
                spent.add(usage, steps)
            case _:
                pass
    return spent


def spent_up(budget: BudgetSettings, spent: Spent) -> str | None:
    """Which bound is reached, in words; None when the turn may go on."""
    tokens = spent.usage.input - spent.usage.cached + spent.usage.output
    if budget.steps is not None and spent.steps >= budget.steps:
        return f"{budget.steps} steps were taken"
    if budget.tokens is not None and tokens >= budget.tokens:
        return f"{tokens} tokens were used, of {budget.tokens}"
    if budget.cost is not None and (spent.usage.cost or 0) >= budget.cost:
        return f"${spent.usage.cost:.4f} were spent, of ${budget.cost:g}"
    if budget.seconds is not None and spent.seconds >= budget.seconds:
        return f"{spent.seconds:.0f} seconds were worked, of {budget.seconds:g}"
    return None


class TimeBound:
    """Does something when time is over, as long as one is within."""

    def __init__(self, left: Callable[[], float | None], act: Callable[[], None]) -> None:
        """`left` tells how many seconds there are, and is asked again then, for they may have become more."""
        self._left = left
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._look()

    def __exit__(self, *_: object) -> None:
        if self._timer:
            self._timer.cancel()

    def _look(self) -> None:
        left = self._left()
        if left is not None and left <= 0:
            self._act()
        elif left is not None:
            self._timer = asyncio.get_running_loop().call_later(left, self._look)
