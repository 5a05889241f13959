"""How much a turn may take: steps, tokens, money, time."""

from __future__ import annotations

import msgspec

from toolyard.core.conversation import Usage


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of one turn; None for no bound."""

    steps: int | None = 200
    """Answers of the model, each with or without calls."""
    tokens: int | None = None
    """Of input that no cache had, and of output."""
    cost: float | None = None
    """In dollars, as far as prices are known."""
    seconds: float | None = None
    """Of work; the time in which a person is waited for does not count."""


class Spent(msgspec.Struct, kw_only=True):
    """What a turn has taken so far."""

    steps: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0

    def add(self, usage: Usage) -> None:
        self.steps += 1
        self.usage = self.usage + usage


def spent_up(budget: Budget, spent: Spent) -> str | None:
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
