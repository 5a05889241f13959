"""What tokens cost, as far as it is known; a configuration's own prices come first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.core.conversation import Usage
    from toolyard.core.tool import Json


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input that came from a cache; as other input where nothing is said."""
    cache_written: float | None = None


def openai_price(input: float, output: float, cached: float) -> Price:
    return Price(input=input, output=output, cached=cached)


def anthropic_price(input: float, output: float) -> Price:
    """There, writing a cache costs a quarter more than input, and reading it a tenth."""
    return Price(input=input, output=output, cached=input * 0.1, cache_written=input * 1.25)


KNOWN = {
    "gpt-5": openai_price(1.25, 10, 0.125),
    "gpt-5-mini": openai_price(0.25, 2, 0.025),
    "gpt-5-nano": openai_price(0.05, 0.4, 0.005),
    "gpt-4.1": openai_price(2, 8, 0.5),
    "gpt-4.1-mini": openai_price(0.4, 1.6, 0.1),
    "gpt-4.1-nano": openai_price(0.1, 0.4, 0.025),
    "gpt-4o": openai_price(2.5, 10, 1.25),
    "gpt-4o-mini": openai_price(0.15, 0.6, 0.075),
    "o3": openai_price(2, 8, 0.5),
    "o4-mini": openai_price(1.1, 4.4, 0.275),
    "claude-opus-4": anthropic_price(15, 75),
    "claude-opus-4-1": anthropic_price(15, 75),
    "claude-opus-4-5": anthropic_price(5, 25),
    "claude-sonnet-4": anthropic_price(3, 15),
    "claude-sonnet-4-5": anthropic_price(3, 15),
    "claude-haiku-4-5": anthropic_price(1, 5),
    "claude-3-5-haiku": anthropic_price(0.8, 4),
}
"""The list prices of models by name; those of others are not guessed."""
VERSION = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def price_of(models: Sequence[str], given: Mapping[str, Price]) -> Price | None:
    """By one of the names that a model has, or one without the date of a version."""
    names = [name for model in models for name in (model, VERSION.sub("", model))]
    return next((prices[name] for prices in (given, KNOWN) for name in names if name in prices), None)


def with_cost(usage: Usage, price: Price | None) -> Usage:
    """The usage with what it cost, unless the service itself said so or the price is not known."""
    if usage.cost is not None or price is None:
        return usage
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.cache_written is None else price.cache_written
    fresh = max(0, usage.input - usage.cached - usage.cache_written)
    cost = fresh * price.input + usage.cached * cached + usage.cache_written * written + usage.output * price.output
    return replace(usage, cost=cost / 1_000_000)


def tokens_at(given: Json, *path: str) -> int:
    """A number somewhere in what a service says of usage; 0 where there is none."""
    for key in path:
        given = given.get(key) if isinstance(given, dict) else None
    return int(given) if isinstance(given, int | float) else 0
