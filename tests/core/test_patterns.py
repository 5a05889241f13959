"""Patterns of JSON Schemas mean what they mean in JavaScript, and are matched in bounded time, whatever they are."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.faults import BadArguments
from toolyard.core.arguments.notes import schema_notes
from toolyard.core.arguments.patterns import BadPattern, Pattern, read_shape
from toolyard.core.arguments.schema import schema_fault
from toolyard.core.arguments.steps import TooManySteps
from toolyard.kinds.python_function.signatures.signature import Signature, read_signature

ENDLESS = "a" * 20_000 + "!"
"""With a step for each way to split it, no match is found in the lifetime of the machine."""


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^\d+$", "12", "١٢"),
        (r"^\w+$", "a_1", "é"),
        (r"^\p{L}+$", "é", "1"),
        (r"^\p{Script=Greek}$", "α", "a"),
        (r"^(?=.*\d)(?=.*[a-z]).{4,}$", "abc1", "abcd"),
        (r"^(?!\s*$).+", "a", "   "),
        (r"(?<=\$)\d+", "$5", "5"),
        (r"(?<!a)b", "cb", "ab"),
        (r"^(?<year>\d{4})-\k<year>$", "2020-2020", "2020-2021"),
        (r"^(?P<x>a|b)(?P=x)$", "aa", "ab"),
        (r"^(a|b)\1$", "bb", "ba"),
        (r"^a$", "a", "a\n"),
        (r"^a\Z", "a", "ab"),
        (r"^[^]$", "\n", ""),
        (r"^([]|a)$", "a", "b"),
        (r"^[\w-.]+$", "a-b.c", "a b"),
        (r"^[\d-x]+$", "1-x", "y"),
        (r"^[]a]+$", "]a", "b"),
        (r"^[\b]$", "\b", "b"),
        (r"^\0$", "\0", "0"),
        (r"^\/a\-b$", "/a-b", "a-b"),
        (r"^\ü$", "ü", "u"),
        (r"^{a}$", "{a}", "a"),
        (r"^a{,2}$", "aa", "aaa"),
        (r"^\u0041\x42$", "AB", "ab"),
        (r"^\u{1F600}$", "\N{GRINNING FACE}", "a"),
        (r"(?#why)^a", "a", "b"),
        (r"^[^\d\s]+$", "ab", "a b"),
        (r"^.$", "x", "\n"),
        ("", "anything", None),
    ],
)
def test_a_pattern_means_what_its_author_meant(pattern, matching, other):
    found = Pattern(pattern)
    assert found.found_in(matching)
    assert other is None or not found.found_in(other)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(.*a){20}$",
        r"^(\w+\s?)*$",
        "^([a-zA-Z0-9]+)*$",
        "(a*)*b",
        "a*a*a*a*a*b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "^(?!x)(a+)+$",
        "^(?=(a+)+$)a",
    ],
)
def test_a_pattern_with_many_ways_to_match_is_answered(pattern):
    assert not Pattern(pattern).found_in(ENDLESS)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(.*)*(?!x)y", "a" * 3000),
        (r"^(a|aa)+(?!x)$", "a" * 1000 + "!"),
        (r"(a*)*\1b", "a" * 5000),
    ],
)
def test_what_has_to_be_tried_out_is_given_up_after_a_number_of_tries(pattern, text):
    with pytest.raises(TooManySteps, match="takes too many steps to match against the pattern"):
        Pattern(pattern).found_in(text)


@pytest.mark.parametrize(
    ("pattern", "length"),
    [("(a{1,99}){1,99}!", 20_000), ("(?<=a+)b", 100_000), ("(?=.*x)b", 100_000), ("^(?:a(?=.*x))*$", 100_000)],
)
def test_a_text_that_is_too_long_for_a_pattern_is_not_begun_with(pattern, length):
    with pytest.raises(TooManySteps, match=f"{length} characters are too many for the pattern"):
        Pattern(pattern).found_in("a" * length)


@pytest.mark.parametrize("pattern", [r"^(?!\s*$)[\s\S]+$", r"^(?=.*a)(?!.*z)[a-z]+$", "^[a-z]*$", "a{1,100}$"])
def test_a_long_text_can_be_checked_against_a_usual_pattern(pattern):
    assert Pattern(pattern).found_in("a" * 150_000)


@pytest.mark.parametrize(
    ("pattern", "states", "looks_around", "roams"),
    [
        ("abc", 3, False, False),
        ("(a{3}b){2,5}", 20, False, False),
        ("a{2,}", 2, False, False),
        ("[a-z]+x?", 2, False, False),
        ("^(?=a)b", 2, True, False),
        ("^(?=(?:a|b){2})b", 5, True, False),
        ("^(?=a|b)(?!c)d", 4, True, False),
        ("^(?=a)b|c", 3, True, True),
        ("a|^(?=b)c", 4, True, True),
        ("^(?=a(?!b))c", 3, True, True),
        ("x(?=a)", 2, True, True),
        ("^(?<=a)b", 2, True, True),
        (r"^(a)\1", 2, True, True),
    ],
)
def test_what_a_pattern_costs_is_read_from_it(pattern, states, looks_around, roams):
    shape = read_shape(pattern)
    assert (shape.states, shape.looks_around, shape.roams) == (states, looks_around, roams)


@pytest.mark.parametrize("pattern", ["(", ")", "[a", "a**", "(?>a)", r"\k<no>", "(a{1000}){1000}", "*"])
def test_what_is_no_pattern_is_said(pattern):
    with pytest.raises(BadPattern, match="is not a regular expression"):
        Pattern(pattern)


def decoded(schema: dict[str, Any], arguments: Any) -> Any:
    assert schema_fault(schema) is None
    return ArgumentDecoder(schema).decode(arguments)


SLOW = "^(a+)+$"


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"x": {"pattern": SLOW}}}, {"x": ENDLESS}),
        ({"patternProperties": {SLOW: {}}, "additionalProperties": False}, {ENDLESS: 1}),
        ({"patternProperties": {SLOW: {}}, "additionalProperties": {"type": "integer"}}, {ENDLESS: []}),
        ({"patternProperties": {SLOW: {}}, "unevaluatedProperties": False}, {ENDLESS: 1}),
        ({"allOf": [{"patternProperties": {SLOW: {}}}], "unevaluatedProperties": False}, {ENDLESS: 1}),
        ({"propertyNames": {"pattern": SLOW}}, {ENDLESS: 1}),
        ({"properties": {"x": {"anyOf": [{"type": "string", "pattern": SLOW}, {"type": "null"}]}}}, {"x": ENDLESS}),
    ],
)
@pytest.mark.parametrize("draft", ["2020-12", "2019-09"])
def test_every_keyword_with_a_pattern_is_answered(draft, schema, arguments):
    whole = {"$schema": f"https://json-schema.org/draft/{draft}/schema", "type": "object", **schema}
    assert isinstance(decoded(whole, arguments), BadArguments)


def test_a_value_that_takes_too_long_to_check_is_refused_with_the_reason():
    outcome = decoded({"type": "object", "properties": {"x": {"pattern": "(.*)*(?!x)y"}}}, {"x": "a" * 3000})
    assert isinstance(outcome, BadArguments)
    [fault] = outcome.faults
    assert fault.message.startswith("cannot be checked: ")
    assert "takes too many steps" in fault.message


@pytest.mark.parametrize(
    ("schema", "arguments", "fits"),
    [
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, True),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}, False),
        ({"patternProperties": {"^x": {}}, "unevaluatedProperties": False}, {"x1": 1}, True),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, True),
        ({"anyOf": [{"properties": {"a": {"type": "null"}}}, {}], "unevaluatedProperties": False}, {"a": 1}, False),
        ({"$ref": "#/$defs/p", "$defs": {"p": {"patternProperties": {"^x": {}}}}, "unevaluatedProperties": False},
         {"x1": 1}, True),
        ({"if": {"required": ["a"]}, "then": {"properties": {"a": {}, "b": {}}}, "else": {"properties": {"c": {}}},
          "unevaluatedProperties": False}, {"a": 1, "b": 1}, True),
        ({"if": {"required": ["a"]}, "then": {"properties": {"a": {}, "b": {}}}, "else": {"properties": {"c": {}}},
          "unevaluatedProperties": False}, {"b": 1, "c": 1}, False),
        ({"dependentSchemas": {"a": {"properties": {"a": {}, "b": {}}}}, "unevaluatedProperties": False},
         {"a": 1, "b": 1}, True),
        ({"allOf": [{"additionalProperties": {"type": "integer"}}], "unevaluatedProperties": False}, {"z": 1}, True),
        ({"unevaluatedProperties": {"type": "integer"}}, {"z": "x"}, False),
        ({"unevaluatedProperties": {"type": "integer"}}, {"z": 1}, True),
    ],
)  # fmt: skip
def test_what_no_part_of_a_schema_speaks_of_is_unevaluated(schema, arguments, fits):
    assert isinstance(decoded({"type": "object", **schema}, arguments), dict) is fits


def test_a_reference_back_to_the_whole_is_followed_when_names_are_looked_for():
    schema = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$recursiveAnchor": True,
        "type": "object",
        "properties": {"child": {"$recursiveRef": "#"}, "name": {"type": "string"}},
        "unevaluatedProperties": False,
    }
    assert decoded(schema, {"child": {"name": "a"}}) == {"child": {"name": "a"}}
    assert isinstance(decoded(schema, {"child": {"other": "a"}}), BadArguments)


Slow = Annotated[str, msgspec.Meta(pattern="^(a+)+$|!$", min_length=1, description="as many as you like")]


def slow_tool(one: Slow, many: list[Slow], none: Slow | None = None) -> None:
    """Takes texts with a pattern."""


def test_a_pattern_in_an_annotation_is_not_matched_a_second_time_by_re():
    signature = read_signature(slow_tool)
    assert isinstance(signature, Signature)
    arguments = {"one": ENDLESS, "many": [ENDLESS], "none": ENDLESS}
    decoder = ArgumentDecoder(signature.input.schema)
    assert decoder.decode(arguments) == arguments
    assert signature.convert(arguments) == arguments
    assert isinstance(decoder.decode({"one": "b", "many": []}), BadArguments)
    assert isinstance(decoder.decode({"one": "", "many": []}), BadArguments)


UNREADABLE = ["(", "a**", "(?>a)b", r"\p{Nothing}"]


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_pattern_that_cannot_be_read_costs_only_itself(text):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": text, "minLength": 2}, "b": {"type": "integer"}},
        "patternProperties": {text: {"type": "null"}},
        "additionalProperties": False,
    }
    assert schema_fault(schema) is None
    assert decoded(schema, {"a": "anything", "other": 1}) == {"a": "anything", "other": 1}
    assert isinstance(decoded(schema, {"a": "x"}), BadArguments)
    assert isinstance(decoded(schema, {"b": "x"}), BadArguments)
    notes = list(schema_notes(schema))
    assert [(note.keyword, note.path) for note in notes] == [("pattern", ()), ("pattern", ("properties", "a"))]
    assert "is not checked" in str(notes[1])


@pytest.mark.parametrize(
    ("text", "fits", "fails"),
    [
        (r"^[\w-.]+$", "a-b.c", "a b"),
        (r"^(?<year>\d{4})-(?<month>\d\d)$", "2024-01", "24-01"),
        (r"^\p{L}+$", "\u00e4b", "a1"),
        (r"^(?!foo)\w+$", "bar", "foobar"),
        (r"(?<=\$)\d+", "$42", "42"),
        (r"^\uD83D\uDE00$", "\U0001f600", "x"),
        ("^[[]$", "[", "]"),
        ("^[a-c&&b~~]+$", "&~b", "d"),
        ("^[[:alpha:]]+$", "ab", "1"),
    ],
)
def test_what_is_valid_in_javascript_is_checked_as_there(text, fits, fails):
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": text}}}
    assert list(schema_notes(schema)) == []
    assert decoded(schema, {"a": fits}) == {"a": fits}
    assert isinstance(decoded(schema, {"a": fails}), BadArguments)
