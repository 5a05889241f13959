"""Lenient in: a text that spells what was wanted is read as that, and a number for a text is its text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from toolyard.core.arguments.faults import branches_of_its_kind
from toolyard.core.arguments.plain_schema import TYPE_NAMES
from toolyard.core.json_values import ABSENT, STRICT_JSON, value_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jsonschema.protocols import Validator

    from toolyard.core.arguments.faults import ValidatorError
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


Repairs: TypeAlias = "dict[Pointer, Json]"
"""New values by their paths; `ABSENT` removes one."""

MOST_LEVELS = 64
"""How deep arguments may be nested. The validator needs about ten frames for a level, and out of stack its part in
Rust may panic, which no `except Exception` stops."""

MOST_ROUNDS = 8
"""Each round may uncover texts inside a text that the round before has read; nobody nests them deeper."""

MOST_TRIALS = 5_000
"""How many alternatives are tried for one call; nested ones multiply."""


class Repair:
    """Makes one call's values fit by reading texts as what they spell, guided by the validator's errors."""

    def __init__(self) -> None:
        self._trials_left = MOST_TRIALS

    def changes(self, validator: Validator, value: Json, errors: Sequence[ValidatorError]) -> Repairs:
        """The values to put in place of those that the errors complain of."""
        changes: Repairs = {}
        for error in errors:
            path = tuple(error.path)
            # What is complained of may also be a property's name, which stays as it is.
            if path not in changes and value_at(value, path) is error.instance:
                better = self._better(validator, error)
                if better is not error.instance:
                    changes[path] = better
        return changes

    def _better(self, validator: Validator, error: ValidatorError) -> Json:
        match error.validator:
            case "type":
                types = error.validator_value
                return as_type(error.instance, [types] if isinstance(types, str) else types)
            case "enum":
                return as_member(error.instance, error.validator_value)
            case "const":
                return as_member(error.instance, [error.validator_value])
            case "anyOf" | "oneOf" if error.context:
                return self._as_alternative(validator, error)
            case _:
                return error.instance

    def _as_alternative(self, validator: Validator, error: ValidatorError) -> Json:
        """Repair the value for the first alternative that it then fits; else repair it as far as one could."""
        nearest = error.instance
        takes_text = bool(branches_of_its_kind(error))
        whole = validator.evolve(schema={str(error.validator): error.validator_value})
        for schema in error.validator_value:
            attempt = self.settled(validator.evolve(schema=schema), error.instance)
            if attempt is error.instance or (attempt is None and takes_text):
                continue
            if whole.is_valid(attempt):
                return attempt
            if nearest is error.instance:
                nearest = attempt
        return nearest

    def settled(self, validator: Validator, value: Json) -> Json:
        """A value with all that can be repaired."""
        from referencing.exceptions import Unresolvable

        for _ in range(MOST_ROUNDS):
            self._trials_left -= 1
            if self._trials_left < 0:
                break
            try:
                changes = self.changes(validator, value, list(validator.iter_errors(value)))
            except Unresolvable:
                # An alternative inside a part with an `$id` of its own is out of its context here.
                break
            if not changes:
                break
            value = changed(value, changes)
        return value


def as_type(value: Json, types: Sequence[str]) -> Json:
    if type(value) in (int, float) and "string" in types:
        return number_text(value)
    spelled = spelled_value(value)
    if isinstance(spelled, float) and spelled.is_integer() and "integer" in types and "number" not in types:
        return int(spelled)
    return spelled if any(name in types for name in TYPE_NAMES.get(type(spelled), ())) else value


def as_member(value: Json, members: Sequence[Json]) -> Json:
    spelled = number_text(value) if type(value) in (int, float) else spelled_value(value)
    return spelled if spelled in members else value


def number_text(value: float) -> str:
    """A number as a model would have written it: without a fraction where there is none."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return json.dumps(int(value) if whole else value)


def spelled_value(value: Json) -> Json:
    """Read a text as JSON; a text that spells another text, or nothing, stays as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        spelled = STRICT_JSON.decode(text.lower() if text.lower() in ("true", "false") else text)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(spelled, str) or is_deeper(spelled, MOST_LEVELS) else spelled


def is_deeper(value: Json, levels: int) -> bool:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(is_deeper(child, levels - 1) for child in children if isinstance(child, dict | list))


def changed(value: Json, changes: Repairs) -> Json:
    """A copy with other values at some paths; all that does not change is shared."""
    if () in changes:
        return changes[()]
    below: dict[str | int, Repairs] = {}
    for (head, *rest), new in changes.items():
        below.setdefault(head, {})[tuple(rest)] = new
    copy = value.copy()
    for head, deeper in below.items():
        copy[head] = changed(value[head], deeper)
        if copy[head] is ABSENT:
            del copy[head]
    return copy
