"""A schema of a few lines cannot keep a check busy: its steps have a bound, and the call is told so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.faults import BadArguments
from toolyard.core.arguments.notes import schema_notes
from toolyard.core.arguments.schema import MOST_PARTS, schema_fault
from toolyard.core.wire.portable_schemas import portable

if TYPE_CHECKING:
    from collections.abc import Callable

LINKS = 15
"""Of a chain in which each asks twice for the next: far too many steps, and yet an end where there is no bound."""


def chained(
    link: Callable[[dict[str, Any]], dict[str, Any]], last: dict[str, Any], length: int = LINKS
) -> dict[str, Any]:
    links = {f"d{number}": link({"$ref": f"#/$defs/d{number + 1}"}) for number in range(length)}
    first = {"type": "object", "properties": {"v": {"$ref": "#/$defs/d0"}}}
    return {**first, "$defs": {**links, f"d{length}": last}}


def told(schema: dict[str, Any], arguments: dict[str, Any]) -> str:
    assert schema_fault(schema) is None
    found = ArgumentDecoder(schema).decode(arguments)
    return found.describe("t") if isinstance(found, BadArguments) else "fits"


@pytest.mark.parametrize(
    ("link", "last", "value"),
    [
        (lambda next: {"anyOf": [next, next]}, {"type": "integer"}, "no"),
        (lambda next: {"oneOf": [next, next]}, {"type": "integer"}, "no"),
        (lambda next: {"allOf": [next, next]}, {"type": "string"}, "yes"),
        (lambda next: {"if": next, "then": next}, {"type": "string"}, "yes"),
        (lambda next: {"not": next, "allOf": [next]}, {"type": "string"}, "yes"),
        (lambda next: {"dependentSchemas": {"a": next, "b": next}}, {"type": "object"}, {"a": 1, "b": 1}),
        (lambda next: {"unevaluatedProperties": False, "anyOf": [next, next]}, {"type": "object"}, {"a": 1}),
    ],
)
def test_references_that_multiply_are_given_up(link: Any, last: dict[str, Any], value: Any) -> None:
    assert "the schema asks for too many steps" in told(chained(link, last), {"v": value})


def test_defaults_that_multiply_are_given_up() -> None:
    schema = {
        "type": "object",
        "allOf": [
            {"properties": {"a": {"$ref": "#"}, "x": {"default": 1}}},
            {"properties": {"a": {"$ref": "#"}}},
        ],
    }
    value: dict[str, Any] = {}
    for _ in range(LINKS):
        value = {"a": value}
    assert "too many steps" in told(schema, value)


def test_many_defaults_behind_a_long_chain_are_given_up_when_the_schema_is_looked_at() -> None:
    schema = chained(lambda next: {"anyOf": [next, next]}, {"type": "integer"})
    schema["properties"]["v"] = {"$ref": "#/$defs/d0", "default": "no"}
    [note] = schema_notes(schema)
    assert "too many steps" in str(note)


def test_names_against_patterns_are_counted() -> None:
    several = {"type": "object", "patternProperties": {f"^{number}_": {} for number in range(2_000)}}
    assert "too many steps" in told(several, {f"{number}x": 1 for number in range(2_000)})


@pytest.mark.parametrize(
    ("item", "values"),
    [
        ({"type": "number"}, list(range(20_000))),
        (
            {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
            [{"a": "x"}] * 3_000,
        ),
        ({"enum": [f"v{number}" for number in range(200)]}, ["v199"] * 3_000),
    ],
)
def test_a_long_value_has_steps_in_proportion(item: dict[str, Any], values: list[Any]) -> None:
    schema = {"type": "object", "properties": {"v": {"type": "array", "items": item}}, "minProperties": 1}
    assert told(schema, {"v": values}) == "fits"


@pytest.mark.parametrize(
    ("items", "same"),
    [([1, 1.0], True), ([1, True], False), ([[1], True], False), ([{"a": [1]}, {"a": [1.0]}], True), (["1", 1], False)],
)
def test_the_same_item_twice_is_found_without_comparing_each_with_each(items: list[Any], *, same: bool) -> None:
    schema = {"type": "object", "properties": {"v": {"type": "array", "uniqueItems": True}}}
    assert ("must not have the same item twice" in told(schema, {"v": items})) is same


def test_a_schema_of_too_many_parts_is_a_fault() -> None:
    schema = {"type": "object", "anyOf": [{"minProperties": 0}] * MOST_PARTS}
    assert schema_fault(schema) == f"has more than {MOST_PARTS:,} parts"


def test_a_chain_of_references_beyond_the_stack_is_written_out_as_far_as_it_goes() -> None:
    written = portable(chained(lambda next: {"anyOf": [next, next]}, {"type": "integer"}, length=2_000))
    assert written["properties"]["v"]["anyOf"]


def test_an_endless_reference_is_found_among_thousands() -> None:
    schema = chained(lambda next: {"anyOf": [next]}, {"$ref": "#/$defs/d0"}, length=2_000)
    assert schema_fault(schema) == "$defs.d0.anyOf[0].$ref: leads back to itself without end"
