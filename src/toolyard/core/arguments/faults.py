"""What is wrong with a call's arguments, in words that a model can act on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from toolyard.core.arguments.patterns import readable_pattern
from toolyard.core.arguments.plain_schema import TYPE_NAMES
from toolyard.core.json_values import ABSENT, brief, cut, value_at
from toolyard.core.problems import did_you_mean

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.core.tool import Json


_MOST_FAULTS = 10
_MOST_LISTED = 20
_MOST_ALTERNATIVES = 5

_TYPE_WORDS = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}

_LIMITS = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "pattern": "must match the pattern {}",
    "format": "must be a valid {}",
    "not": "must not fit {}",
    "contains": "must have an item that fits {}",
    "uniqueItems": "must not have the same item twice",
    "oneOf": "must fit only one of the alternatives, but fits several",
}

_SIZES = {
    "minLength": "length must be at least {}",
    "maxLength": "length must be at most {}",
    "minItems": "number of items must be at least {}",
    "maxItems": "number of items must be at most {}",
    "minProperties": "number of properties must be at least {}",
    "maxProperties": "number of properties must be at most {}",
}


class ArgumentFault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and where; an empty path means the arguments as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class BadArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that keeps a call's arguments from fitting."""

    faults: tuple[ArgumentFault, ...]

    def describe(self, tool: str) -> str:
        lines = [f"Invalid arguments for '{tool}':", *(f"- {fault}" for fault in self.faults[:_MOST_FAULTS])]
        if (more := len(self.faults) - _MOST_FAULTS) > 0:
            lines.append(f"(+{more} more)")
        return "\n".join(lines)


class ValidatorError(Protocol):
    """What is read of a validator's error; the library's own type lets every field be unset."""

    message: str
    validator: Any
    validator_value: Any
    instance: Any
    schema: Any
    context: Any
    path: deque[str | int]
    relative_path: deque[str | int]
    relative_schema_path: deque[str | int]

    @property
    def absolute_path(self) -> Sequence[str | int]:
        """Where the value lies in the whole."""

    @property
    def absolute_schema_path(self) -> Sequence[str | int]:
        """Where the rule lies in the whole schema."""


def faults_in(errors: Iterable[ValidatorError], given: Json) -> tuple[ArgumentFault, ...]:
    """Describe a validator's errors in terms of the value as it was given."""
    faults = {fault for error in errors for fault in _faults_of(error, given)}
    return tuple(sorted(faults, key=_reading_order))


def kind_of(value: Json) -> str:
    """Name the type of a value: "a string", "an object"."""
    return _TYPE_WORDS[TYPE_NAMES.get(type(value), ("null",))[0]]


def branches_of_its_kind(error: ValidatorError) -> list[list[ValidatorError]]:
    """The errors of each alternative that takes a value of this type, but not this value."""
    return [branch for branch in _branches(error) if not _wanted_by(branch)]


def path_text(path: Iterable[str | int]) -> str:
    """A path as a person would write it: `files[2].name`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[\w$-]{1,80}", part):
            text += f".{part}" if text else part
        else:
            text += f"[{brief(part)}]"
    return text


def _faults_of(error: ValidatorError, given: Json) -> Iterator[ArgumentFault]:
    match error.validator:
        case "required":
            names = [name for name in error.validator_value if name not in error.instance]
            yield from _at_properties(error, names, "required property is missing")
        case "dependentRequired":
            yield from _missing_dependents(error)
        case "additionalProperties" if error.validator_value is False:
            yield from _unknown_properties(error)
        case None:
            # The schema `false`, for which the library gives the value but not its path.
            yield _fault(error, f"the value {brief(error.instance)} is not allowed here")
        case "anyOf" | "oneOf" if error.context:
            yield from _unfit_alternatives(error, given)
        case _:
            yield _fault(error, _sentence(error, given))


def _fault(error: ValidatorError, message: str) -> ArgumentFault:
    return ArgumentFault(path=path_text(error.absolute_path), message=message)


def _at_properties(error: ValidatorError, names: Iterable[str], message: str) -> Iterator[ArgumentFault]:
    for name in names:
        yield ArgumentFault(path=path_text([*error.absolute_path, name]), message=message)


def _missing_dependents(error: ValidatorError) -> Iterator[ArgumentFault]:
    for name, needed in error.validator_value.items():
        if name in error.instance:
            missing = [each for each in needed if each not in error.instance]
            yield from _at_properties(error, missing, f"required when {brief(name)} is given")


def _unknown_properties(error: ValidatorError) -> Iterator[ArgumentFault]:
    known = list(error.schema.get("properties", ()))
    patterns = list(error.schema.get("patternProperties", ()))
    allowed = [*known, *(f"names that match {brief(each)}" for each in patterns)]
    told = f"Known are: {_listed(allowed)}" if allowed else "None is allowed here"
    for name in error.instance:
        if name not in known and not any(found.found_in(name) for found in map(readable_pattern, patterns) if found):
            near = did_you_mean(name, known)
            yield from _at_properties(error, [name], f"unknown property{f', {near}' if near else '.'} {told}")


def _sentence(error: ValidatorError, given: Json) -> str:
    expected = _expected(error)
    if expected is None:
        return cut(error.message, 160)
    if "propertyNames" in error.absolute_schema_path:
        return f"property name {brief(error.instance)}: {expected}"
    original = value_at(given, error.absolute_path)
    got = brief(error.instance if original is ABSENT else original)
    if error.validator in _SIZES:
        return f"{expected}, got {len(error.instance)}: {got}"
    return f"{expected}, got {got}"


def _expected(error: ValidatorError) -> str | None:
    keyword, limit = str(error.validator), error.validator_value
    if wanted := _wanted(error):
        return f"expected {_either(wanted)}"
    if keyword in ("minimum", "maximum") and _is_exclusive(error):
        keyword = "exclusive" + keyword.capitalize()
    if template := _LIMITS.get(keyword) or _SIZES.get(keyword):
        return template.format(limit if isinstance(limit, str) else brief(limit))
    return None


def _is_exclusive(error: ValidatorError) -> bool:
    # Before draft 6 the exclusive limits were flags beside the plain ones.
    return error.schema.get("exclusive" + str(error.validator).capitalize()) is True


def _wanted(error: ValidatorError) -> list[str]:
    """The types or values that would fit, in words; empty when something else is wrong."""
    match error.validator:
        case "type":
            types = error.validator_value
            return [_TYPE_WORDS.get(str(name), brief(name)) for name in ([types] if isinstance(types, str) else types)]
        case "enum":
            return [brief(value) for value in error.validator_value]
        case "const":
            return [brief(error.validator_value)]
        case "anyOf" | "oneOf" if error.context:
            branches = [_wanted_by(branch) for branch in _branches(error)]
            return [words for branch in branches for words in branch] if all(branches) else []
        case _:
            return []


def _wanted_by(branch: Sequence[ValidatorError]) -> list[str]:
    """What an alternative wants instead of the value; empty when the type is right and the fault lies deeper."""
    at_root = [error for error in branch if not error.relative_path]
    # A list of values says more than their type does, and both are wrong at once.
    for error in sorted(at_root, key=lambda error: error.validator == "type"):
        if wanted := _wanted(error):
            return wanted
    return []


def _unfit_alternatives(error: ValidatorError, given: Json) -> Iterator[ArgumentFault]:
    """Explain the alternative that was most likely meant, or what each of the likely ones needs."""
    branches = branches_of_its_kind(error)
    if not branches:
        yield _fault(error, _sentence(error, given))
    elif tags := _wrong_tags(branches):
        wanted = [words for tag in tags for words in _wanted(tag)]
        yield _fault(tags[0], f"expected {_either(wanted)}, got {brief(tags[0].instance)}")
    else:
        yield from _one_of(error, [faults_in(branch, given) for branch in _likeliest(branches)])


def _wrong_tags(branches: Sequence[Sequence[ValidatorError]]) -> list[ValidatorError]:
    """The errors of a property that tells the alternatives apart and has none of their values."""
    tags = [next((error for error in branch if error.validator in ("const", "enum")), None) for branch in branches]
    found = [tag for tag in tags if tag is not None]
    same_place = len({tuple(tag.relative_path) for tag in found}) == 1
    return found if same_place and len(found) == len(branches) else []


def _one_of(error: ValidatorError, choices: Sequence[tuple[ArgumentFault, ...]]) -> Iterator[ArgumentFault]:
    different = list(dict.fromkeys(choices))
    if len(different) == 1:
        yield from different[0]
    else:
        texts = ["; ".join(str(fault) for fault in faults) for faults in different[:_MOST_ALTERNATIVES]]
        yield _fault(error, f"must fit one of several alternatives; change either ({') or ('.join(texts)})")


def _branches(error: ValidatorError) -> list[list[ValidatorError]]:
    branches: dict[str | int, list[ValidatorError]] = {}
    for cause in error.context:
        # The schema `false` leaves no path; nothing can be done to fit it.
        if cause.relative_schema_path:
            branches.setdefault(cause.relative_schema_path[0], []).append(cause)
    return list(branches.values())


def _likeliest(branches: Sequence[list[ValidatorError]]) -> list[list[ValidatorError]]:
    """The alternatives that need the fewest changes; a wrong tag outweighs all else."""
    distances = [(any(error.validator in ("const", "enum") for error in branch), len(branch)) for branch in branches]
    return [branch for branch, distance in zip(branches, distances, strict=True) if distance == min(distances)]


def _either(words: Sequence[str]) -> str:
    words = list(dict.fromkeys(words))
    if len(words) > _MOST_LISTED:
        return f"one of {_listed(words)}"
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _listed(words: Sequence[str]) -> str:
    left_out = len(words) - _MOST_LISTED
    return ", ".join([*words[:_MOST_LISTED], *([f"… (+{left_out} more)"] if left_out > 0 else [])])


def _reading_order(fault: ArgumentFault) -> tuple[str, str]:
    # Padded, so that item 10 comes after item 2.
    return re.sub(r"\d+", lambda digits: digits[0].zfill(9), fault.path), fault.message
