"""The dialects of JSON Schema as arguments are checked in: exact about numbers, and within a bound of steps."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from toolyard.core.arguments.plain_schema import TYPE_NAMES
from toolyard.core.arguments.steps import spend, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

    from toolyard.core.tool import Json

WORDS_OF_A_STEP = 20
"""How many names, values or schemas of a keyword are looked at in about the time of a step."""
PAIRS_OF_A_STEP = 2_000


@cache
def exact_dialect(dialect: type[Validator]) -> type[Validator]:
    """A dialect in which 3.0 is no integer, so that it is seen and handed on as 3, and no schema takes for ever."""
    from jsonschema.validators import extend

    from toolyard.core.arguments.named_properties import KEYWORDS

    standard = dialect.VALIDATORS
    own: dict[str, Callable[..., Any]] = {name: check for name, check in KEYWORDS.items() if name in standard}
    own["type"] = exact_type(standard["type"])
    counted = {name: in_steps(check) for name, check in own.items()}
    counted |= {name: in_weighed_steps(check) for name, check in standard.items() if name not in own}
    if "uniqueItems" in standard:
        counted["uniqueItems"] = in_steps(check_unique)
    extended: type[Validator] = extend(dialect, counted)  # type: ignore[no-untyped-call]  # has no types
    return extended


def exact_type(standard: Callable[..., Any]) -> Callable[..., Any]:
    from jsonschema.exceptions import ValidationError

    def check(validator: Any, types: Any, instance: Any, schema: Any) -> Any:
        names = TYPE_NAMES.get(type(instance))
        if names is None:
            return standard(validator, types, instance, schema)
        if types in names if isinstance(types, str) else any(name in types for name in names):
            return ()
        return (ValidationError("of another type"),)

    return check


def in_steps(check: Callable[..., Any]) -> Callable[..., Any]:
    """A keyword of ours, which costs as many steps as it has to look at."""

    def counted(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
        spend(1 + len(wanted) // WORDS_OF_A_STEP if isinstance(wanted, str | list | dict) else 1)
        return check(validator, wanted, instance, schema)

    return counted


def in_weighed_steps(check: Callable[..., Any]) -> Callable[..., Any]:
    """A keyword of the library's, which prints the whole value into each of its errors, and may compare all of it."""

    def counted(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        spend(1 + len(wanted) // WORDS_OF_A_STEP if isinstance(wanted, str | list | dict) else 1)
        if isinstance(instance, list):
            # For `unevaluatedItems` it looks through a list of all items for each item.
            spend(len(instance) ** 2 // PAIRS_OF_A_STEP if check.__name__.startswith("unevaluated") else 0)
        if isinstance(instance, list | dict) and check.__name__ in ("enum", "const"):
            spend(weight_of(wanted))
        for error in check(validator, wanted, instance, schema) or ():
            spend(1 if error.schema_path else 1 + weight_of(instance))  # one with a path comes from further down
            yield error

    return counted


def check_unique(_: Any, wanted: bool, instance: Json, __: Json) -> Iterator[ValidationError]:  # a keyword's value
    """Whether no item is there twice; the library compares each with each."""
    from jsonschema.exceptions import ValidationError

    if wanted and isinstance(instance, list):
        spend(weight_of(instance))
        if len({hashable(item) for item in instance}) < len(instance):
            yield ValidationError("has the same item twice")


def hashable(value: Json) -> Hashable:
    """Something that equals that of another value if the two are the same in JSON, where true is not 1."""
    if isinstance(value, dict):
        return frozenset((name, hashable(each)) for name, each in value.items())
    if isinstance(value, list):
        return tuple(map(hashable, value))
    return frozenset((value,)) if isinstance(value, bool) else value
