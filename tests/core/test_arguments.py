"""Arguments are read leniently, handed on strictly, and what does not fit is said in words."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from toolyard.core.arguments.decoder import ArgumentDecoder, CompiledSchema
from toolyard.core.arguments.faults import ArgumentFault, BadArguments
from toolyard.core.arguments.notes import schema_notes
from toolyard.core.arguments.schema import schema_fault

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"

INTEGER = {"type": "integer"}
OPTIONAL_INTEGER = {"anyOf": [INTEGER, {"type": "null"}]}


def an_object(properties: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **rest}


def decoded(schema: dict[str, Any], arguments: Any, **options: Any) -> Any:
    assert schema_fault(schema) is None
    return ArgumentDecoder(schema, **options).decode(arguments)


def faults(schema: dict[str, Any], arguments: Any) -> list[tuple[str, str]]:
    outcome = decoded(schema, arguments)
    assert isinstance(outcome, BadArguments), f"fits as {outcome!r}"
    return [(fault.path, fault.message) for fault in outcome.faults]


def as_json(value: Any) -> str:
    """Text in which 3 and 3.0, and 1 and true, are different."""
    return json.dumps(value, sort_keys=True)


SHAPE = {"type": "object", "oneOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/square"}]}
SHAPES = {
    "circle": an_object({"kind": {"const": "circle"}, "radius": INTEGER}, required=["kind", "radius"]),
    "square": an_object({"kind": {"const": "square"}, "filled": {"type": "boolean"}}, required=["kind", "filled"]),
}


class TestText:
    @pytest.mark.parametrize("text", ["", "   ", "\n\t", "{}", " {} "])
    def test_blank_text_and_an_empty_object_are_no_arguments(self, text):
        assert decoded({"type": "object"}, text) == {}

    def test_json_text_is_read(self):
        assert decoded({"type": "object"}, '{"a": [1, 2.5, "x", null, true]}') == {"a": [1, 2.5, "x", None, True]}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"a": 1', "not valid JSON at line 1, column 8: Expecting ',' delimiter"),
            ('{\n  "a": oops}', "not valid JSON at line 2, column 8: Expecting value"),
            ("path=x", "not valid JSON at line 1, column 1: Expecting value"),
            ("{} {}", "not valid JSON at line 1, column 4: Extra data"),
            ('{"a": NaN}', "not valid JSON: NaN is not a JSON number"),
            ('{"a": -Infinity}', "not valid JSON: -Infinity is not a JSON number"),
            ('{"a": 1e999}', "the number 1e999 is too large"),
            ('{"a": 1, "b": 2, "a": 3}', 'the key "a" is given more than once'),
            ('{"o": {"deep": 1, "deep": 1}}', 'the key "deep" is given more than once'),
            ("[1, 2]", "expected a JSON object, got an array: [1, 2]"),
            ('"{}"', 'expected a JSON object, got a string: "{}"'),
            ("null", "expected a JSON object, got null: null"),
            ("[" * 100_000, "nested too deeply, at most 64 levels are allowed"),
        ],
    )
    def test_text_that_is_not_a_json_object_is_refused_with_the_reason(self, text, message):
        assert faults({"type": "object"}, text) == [("", message)]

    def test_a_number_with_too_many_digits_is_refused(self):
        [(path, message)] = faults({"type": "object"}, f'{{"a": {"9" * 5000}}}')
        assert (path, message) == ("", "the number 99999999999999999999… has too many digits")

    @pytest.mark.parametrize("arguments", [None, 3, [], True])
    def test_a_value_that_is_not_an_object_is_refused(self, arguments):
        [(path, message)] = faults({"type": "object"}, arguments)
        assert path == ""
        assert message.startswith("expected a JSON object, got ")

    def test_any_mapping_will_do(self):
        assert decoded(an_object({"n": INTEGER}), MappingProxyType({"n": "3"})) == {"n": 3}


class TestLeniency:
    @pytest.mark.parametrize(
        ("schema", "given_value", "wanted"),
        [
            (INTEGER, "3", 3),
            (INTEGER, " -3 ", -3),
            (INTEGER, "3.0", 3),
            (INTEGER, 3.0, 3),
            ({"type": "number"}, "2.5", 2.5),
            ({"type": "number"}, "2", 2),
            ({"type": "number"}, 3.0, 3.0),
            ({"type": "boolean"}, "true", True),
            ({"type": "boolean"}, "False", False),
            ({"type": "array"}, '["a", 1]', ["a", 1]),
            ({"type": "object"}, '{"a": 1}', {"a": 1}),
            ({"type": ["integer", "null"]}, "null", None),
            ({"type": ["integer", "boolean"]}, "true", True),
            ({"enum": [1, 2, 3]}, "3", 3),
            ({"enum": ["a", None]}, "null", None),
            ({"const": True}, "TRUE", True),
            ({"type": "integer", "enum": [1, 2]}, "2", 2),
        ],
    )
    def test_a_text_is_read_as_what_it_spells_where_no_text_fits(self, schema, given_value, wanted):
        outcome = decoded(an_object({"x": schema}), {"x": given_value})
        assert as_json(outcome) == as_json({"x": wanted})

    @pytest.mark.parametrize(
        ("schema", "given_value", "wanted"),
        [
            ({"$ref": "#/$defs/count"}, "3", 3),
            ({"$ref": "#/$defs/count"}, 3.0, 3),
            (OPTIONAL_INTEGER, "3", 3),
            (OPTIONAL_INTEGER, "null", None),
            ({"anyOf": [{"type": "string", "pattern": "^x"}, INTEGER]}, "3", 3),
            ({"oneOf": [{"type": "array"}, INTEGER]}, "[]", []),
            ({"allOf": [INTEGER, {"minimum": 2}]}, "3", 3),
            ({"type": "array", "items": INTEGER}, ["1", 2, "3"], [1, 2, 3]),
            ({"type": "array", "items": INTEGER}, '["1", "2"]', [1, 2]),
            ({"type": "array", "items": OPTIONAL_INTEGER}, ["1", None, "null"], [1, None, None]),
            ({"type": "array", "prefixItems": [INTEGER, {"type": "boolean"}]}, ["1", "true", "x"], [1, True, "x"]),
            ({"type": "object", "additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}),
            ({"type": "object", "patternProperties": {"^n": INTEGER}}, {"n1": "1", "s": "1"}, {"n1": 1, "s": "1"}),
            ({"anyOf": [{"type": "object", "properties": {"a": INTEGER, "b": INTEGER}}, {"type": "null"}]},
             {"a": "1", "b": "2"}, {"a": 1, "b": 2}),
            (SHAPE, {"kind": "circle", "radius": "3"}, {"kind": "circle", "radius": 3}),
            (SHAPE, {"kind": "square", "filled": "true"}, {"kind": "square", "filled": True}),
            (SHAPE, '{"kind": "circle", "radius": "3"}', {"kind": "circle", "radius": 3}),
            ({"type": "array", "items": {"anyOf": [SHAPE, {"type": "null"}]}},
             ['{"kind": "square", "filled": "false"}', "null"], [{"kind": "square", "filled": False}, None]),
        ],
    )  # fmt: skip
    def test_leniency_reaches_into_every_corner_of_a_schema(self, schema, given_value, wanted):
        outcome = decoded(an_object({"x": schema}, **{"$defs": {"count": INTEGER, **SHAPES}}), {"x": given_value})
        assert as_json(outcome) == as_json({"x": wanted})

    @pytest.mark.parametrize(
        ("number", "text"), [(3, "3"), (3.0, "3"), (-0.5, "-0.5"), (10**30, "1" + "0" * 30), (1e300, "1e+300")]
    )
    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "string"},
            {"type": ["string", "null"]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"type": "string", "pattern": "^[-0-9.e+]+$"},
        ],
    )
    def test_a_number_for_a_text_is_its_text(self, schema, number, text):
        assert decoded(an_object({"x": schema}), {"x": number}) == {"x": text}

    def test_a_number_for_one_of_several_texts_is_that_text(self):
        assert decoded(an_object({"x": {"enum": ["1", "2"]}}), {"x": 2}) == {"x": "2"}

    @pytest.mark.parametrize(("mode", "wanted"), [("count", 3), ("text", "3")])
    def test_leniency_follows_a_condition(self, mode, wanted):
        schema = an_object(
            {"mode": {"type": "string"}},
            **{"if": {"properties": {"mode": {"const": "count"}}}, "then": {"properties": {"x": INTEGER}}},
        )
        assert decoded(schema, {"mode": mode, "x": "3"}) == {"mode": mode, "x": wanted}

    @pytest.mark.parametrize("dialect", [DRAFT_4, DRAFT_7, DRAFT_2019])
    def test_older_dialects_are_as_lenient(self, dialect):
        schema = an_object({"n": INTEGER, "next": {"$ref": "#"}}, **{"$schema": dialect})
        outcome = decoded(schema, {"n": "1", "next": {"n": 2.0}})
        assert as_json(outcome) == as_json({"n": 1, "next": {"n": 2}})

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "string"},
            {"type": ["integer", "string"]},
            {"anyOf": [INTEGER, {"type": "string"}]},
            {"enum": [3, "3", "true", "null", "[1]"]},
            {},
        ],
    )
    @pytest.mark.parametrize("text", ["3", "true", "null", "[1]"])
    def test_a_text_that_fits_stays_a_text(self, schema, text):
        assert decoded(an_object({"x": schema}), {"x": text}) == {"x": text}

    @pytest.mark.parametrize(
        ("schema", "given_value"),
        [
            ({"type": "string"}, True),
            ({"type": "string"}, ["a"]),
            ({"type": "string", "maxLength": 1}, 12),
            ({"enum": ["1", "2"]}, 3),
            (INTEGER, "3.5"),
            (INTEGER, "0x10"),
            (INTEGER, "+3"),
            (INTEGER, "1_000"),
            (INTEGER, "three"),
            (INTEGER, ""),
            (INTEGER, True),
            ({"type": "number"}, "NaN"),
            ({"type": "number"}, "1e999"),
            ({"type": "boolean"}, "yes"),
            ({"type": "boolean"}, 1),
            ({"type": "array", "items": {"type": "string"}}, "a"),
            ({"type": "array", "items": INTEGER}, 3),
            ({"type": "array"}, '{"a": 1}'),
            ({"type": "object"}, "[1]"),
            ({"type": "object"}, '{"a": 1, "a": 2}'),
            ({"enum": [1, 2]}, "true"),
            ({"anyOf": [{"type": "string", "minLength": 9}, {"type": "null"}]}, "null"),
        ],
    )
    def test_nothing_is_guessed_beyond_that(self, schema, given_value):
        [(path, _)] = faults(an_object({"x": schema}), {"x": given_value})
        assert path == "x"


class TestDefaults:
    @pytest.mark.parametrize(
        ("arguments", "wanted"),
        [
            ({}, {"depth": 3, "mode": "fast"}),
            ({"depth": 5}, {"depth": 5, "mode": "fast"}),
            ({"depth": "5", "mode": "slow"}, {"depth": 5, "mode": "slow"}),
            ({"depth": None}, {"depth": 3, "mode": "fast"}),
        ],
    )
    def test_a_missing_property_takes_its_default(self, arguments, wanted):
        schema = an_object({"depth": {**INTEGER, "default": 3}, "mode": {"type": "string", "default": "fast"}})
        assert decoded(schema, arguments) == wanted

    def test_a_default_makes_a_required_property_optional(self):
        assert decoded(an_object({"n": {**INTEGER, "default": 1}}, required=["n"]), {}) == {"n": 1}

    def test_defaults_from_outside_win_and_are_read_leniently_too(self):
        schema = an_object({"n": {**INTEGER, "default": 1}, "m": INTEGER})
        assert decoded(schema, {}, defaults={"n": "2", "m": "3"}) == {"n": 2, "m": 3}

    def test_defaults_from_outside_are_for_the_top_only(self):
        schema = an_object({"n": INTEGER, "next": {"$ref": "#"}})
        assert decoded(schema, {"next": {}}, defaults={"n": 1}) == {"n": 1, "next": {}}

    @pytest.mark.parametrize(
        "options",
        [
            an_object({"depth": {**INTEGER, "default": 3}}),
            {"$ref": "#/$defs/options"},
            {"allOf": [{"$ref": "#/$defs/options"}]},
            an_object({"depth": {"$ref": "#/$defs/depth"}}),
        ],
    )
    @pytest.mark.parametrize("options_given", [{}, "{}"])
    def test_nested_objects_that_are_given_are_filled_too(self, options, options_given):
        shared = {"options": an_object({"depth": {"$ref": "#/$defs/depth"}}, required=["depth"])}
        shared["depth"] = {**INTEGER, "default": 3}
        schema = an_object({"options": {"type": "object", **options}}, **{"$defs": shared})
        assert decoded(schema, {"options": options_given}) == {"options": {"depth": 3}}
        assert decoded(schema, {}) == {}

    def test_objects_in_a_list_are_filled_too(self):
        schema = an_object({"edits": {"type": "array", "items": an_object({"all": {"default": False}})}})
        assert decoded(schema, {"edits": [{}, {"all": True}]}) == {"edits": [{"all": False}, {"all": True}]}

    @pytest.mark.parametrize("other", [3, "3"])
    def test_a_default_stays_as_its_author_wrote_it_whatever_else_is_read_leniently(self, other):
        node = an_object({"other": INTEGER, "child": {"$ref": "#", "default": {}}})
        assert decoded(node, {"other": other}) == {"other": 3, "child": {}}

    def test_a_default_is_a_copy(self):
        decoder = ArgumentDecoder(an_object({"tags": {"type": "array", "default": []}}))
        first = decoder.decode({})
        assert isinstance(first, dict)
        first["tags"].append("x")
        assert decoder.decode({}) == {"tags": []}

    def test_a_null_default_that_does_not_fit_means_none(self):
        schema = an_object({"n": {**INTEGER, "default": None}, "o": an_object({"m": {**INTEGER, "default": None}})})
        assert decoded(schema, {"o": {}}) == {"o": {}}

    @pytest.mark.parametrize(
        ("part", "note"),
        [
            ({**INTEGER, "default": "many"}, 'the default "many" does not fit: expected an integer, got "many"'),
            ({**INTEGER, "minimum": 5, "default": 3}, "the default 3 does not fit: must be at least 5, got 3"),
            ({"enum": ["a", "b"], "default": ""}, 'the default "" does not fit: expected "a" or "b", got ""'),
            ({"type": "array", "items": INTEGER, "default": ["x"]},
             'the default ["x"] does not fit: [0]: expected an integer, got "x"'),
            ({"$ref": "#/$defs/count", "default": True},
             "the default true does not fit: expected an integer, got true"),
        ],
    )  # fmt: skip
    def test_a_default_that_does_not_fit_is_not_used_and_noted(self, part, note):
        """Nobody who calls could do anything about it."""
        schema = an_object({"n": part, "m": INTEGER}, **{"$defs": {"count": INTEGER}})
        assert decoded(schema, {"m": 1}) == {"m": 1}
        assert [str(found) for found in schema_notes(schema)] == [f"properties.n: {note}"]
        needed = {**schema, "required": ["n"]}
        assert [str(fault) for fault in decoded(needed, {"m": 1}).faults] == ["n: required property is missing"]

    @pytest.mark.parametrize(
        "part",
        [
            {**INTEGER, "default": 3}, {**INTEGER, "default": None}, {**INTEGER, "default": "3"},
            {"default": "anything"},
            {"type": "array", "items": INTEGER, "default": []}, {"type": "object", "default": {}},
            {"type": "array", "items": INTEGER, "default": ["3"]}, {"enum": ["a"], "default": "a"},
            {"anyOf": [INTEGER, {"type": "null"}], "default": None},
        ],
    )  # fmt: skip
    def test_a_default_that_fits_is_not_noted(self, part):
        assert list(schema_notes(an_object({"n": part}))) == []

    def test_defaults_that_others_give_are_noted_too(self):
        notes = schema_notes(an_object({"n": INTEGER, "m": INTEGER}), {"n": "many", "m": 3})
        assert [note.path for note in notes] == [("properties", "n")]

    def test_a_null_default_that_fits_is_handed_on(self):
        assert decoded(an_object({"n": {**OPTIONAL_INTEGER, "default": None}}), {}) == {"n": None}


class TestNull:
    def test_null_for_an_optional_property_that_takes_none_means_not_given(self):
        assert decoded(an_object({"n": INTEGER, "s": {"type": "string"}}), {"n": None, "s": "x"}) == {"s": "x"}

    def test_null_is_given_where_it_is_allowed(self):
        schema = an_object({"n": {**OPTIONAL_INTEGER, "default": 3}})
        assert decoded(schema, {"n": None}) == {"n": None}

    @pytest.mark.parametrize("schema", [{"required": ["n"]}, {"allOf": [{"required": ["n"]}]}])
    def test_null_for_a_required_property_is_a_fault(self, schema):
        assert faults(an_object({"n": INTEGER}, **schema), {"n": None}) == [("n", "expected an integer, got null")]

    def test_null_further_down_is_a_fault(self):
        schema = an_object({"o": an_object({"n": INTEGER})})
        assert faults(schema, {"o": {"n": None}}) == [("o.n", "expected an integer, got null")]


class TestFaults:
    @pytest.mark.parametrize(
        ("schema", "given_value", "message"),
        [
            (INTEGER, "abc", 'expected an integer, got "abc"'),
            ({"type": ["string", "null"]}, True, "expected a string or null, got true"),
            ({"type": ["string", "array", "object"]}, True, "expected a string, an array or an object, got true"),
            ({"enum": ["a", "b", 3]}, "c", 'expected "a", "b" or 3, got "c"'),
            ({"enum": ["a"]}, "c", 'expected "a", got "c"'),
            ({"const": {"a": 1}}, 2, 'expected {"a": 1}, got 2'),
            ({"minimum": 1}, 0, "must be at least 1, got 0"),
            ({"maximum": 1}, 2, "must be at most 1, got 2"),
            ({"exclusiveMinimum": 0}, 0, "must be more than 0, got 0"),
            ({"exclusiveMaximum": 0.5}, 3, "must be less than 0.5, got 3"),
            ({"multipleOf": 5}, 7, "must be a multiple of 5, got 7"),
            ({"type": "integer", "minimum": 1}, "0", 'must be at least 1, got "0"'),
            ({"minLength": 2}, "a", 'length must be at least 2, got 1: "a"'),
            ({"maxLength": 2}, "abc", 'length must be at most 2, got 3: "abc"'),
            ({"pattern": "^a{2}$"}, "b", 'must match the pattern ^a{2}$, got "b"'),
            ({"minItems": 1}, [], "number of items must be at least 1, got 0: []"),
            ({"maxItems": 1}, [1, 2], "number of items must be at most 1, got 2: [1, 2]"),
            ({"uniqueItems": True}, [1, 1], "must not have the same item twice, got [1, 1]"),
            ({"contains": {"const": 1}}, [2], 'must have an item that fits {"const": 1}, got [2]'),
            ({"prefixItems": [{}], "items": False}, [1, 2], "Expected at most 1 item but found 1 extra: 2"),
            ({"minProperties": 1}, {}, "number of properties must be at least 1, got 0: {}"),
            ({"propertyNames": {"pattern": "^[a-z]"}}, {"B": 1}, 'property name "B": must match the pattern ^[a-z]'),
            ({"not": {"type": "string"}}, "a", 'must not fit {"type": "string"}, got "a"'),
            (OPTIONAL_INTEGER, "abc", 'expected an integer or null, got "abc"'),
            ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "0", 'must be at least 1, got "0"'),
            ({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}, 3, 'expected "a" or null, got 3'),
            ({"anyOf": [{"anyOf": [INTEGER, {"type": "null"}]}, {"type": "array"}]}, "x",
             'expected an integer, null or an array, got "x"'),
            ({"anyOf": [False, INTEGER]}, "x", 'expected an integer, got "x"'),
            ({"oneOf": [{"type": "number"}, INTEGER]}, 3,
             "must fit only one of the alternatives, but fits several, got 3"),
            ({"type": "array", "items": INTEGER}, '["a"]', None),
        ],
    )  # fmt: skip
    def test_a_message_says_what_is_allowed_and_what_was_given(self, schema, given_value, message):
        [(path, said)] = faults(an_object({"x": schema}), {"x": given_value})
        assert (path, said) == (("x", message) if message else ("x[0]", 'expected an integer, got "a"'))

    @pytest.mark.parametrize(
        ("schema", "arguments", "paths"),
        [
            (an_object({"a": INTEGER}), {"a": "x"}, ["a"]),
            (an_object({"files": {"items": an_object({"name": {"type": "string"}})}}),
             {"files": [{}, {}, {"name": True}]}, ["files[2].name"]),
            (an_object({"n": {"items": INTEGER}}), {"n": ["x"] * 11}, [f"n[{index}]" for index in range(11)]),
            (an_object({"odd key": an_object({"": INTEGER})}), {"odd key": {"": "x"}}, ['["odd key"][""]']),
            (an_object({"b": INTEGER, "a": INTEGER}, required=["c"]), {"b": "x", "a": "x"}, ["a", "b", "c"]),
            (an_object({"\ud800": INTEGER}), {"\ud800": "\udfff"}, ['["\\ud800"]']),
        ],
    )  # fmt: skip
    def test_a_path_leads_to_the_value_and_orders_the_faults(self, schema, arguments, paths):
        assert [path for path, _ in faults(schema, arguments)] == paths

    def test_what_is_missing_is_named(self):
        schema = an_object({"o": an_object({}, required=["x"])}, required=["a", "b"])
        missing = "required property is missing"
        assert faults(schema, {"a": 1, "o": {}}) == [("b", missing), ("o.x", missing)]

    def test_what_another_property_calls_for_is_named(self):
        [(path, message)] = faults({"dependentRequired": {"a": ["b"], "c": ["d"]}}, {"a": 1})
        assert (path, message) == ("b", 'required when "a" is given')

    @pytest.mark.parametrize(
        ("schema", "name", "message"),
        [
            (an_object({"path": {}, "on": {}}), "pth", "unknown property, did you mean 'path'? Known are: path, on"),
            (an_object({"path": {}, "on": {}}), "verbose", "unknown property. Known are: path, on"),
            (an_object({}), "x", "unknown property. None is allowed here"),
            (an_object({"a": {}}, patternProperties={"^x-": {}}), "y",
             'unknown property. Known are: a, names that match "^x-"'),
        ],
    )  # fmt: skip
    def test_an_unknown_property_is_told_the_nearest_known_one(self, schema, name, message):
        assert faults({**schema, "additionalProperties": False}, {name: 1}) == [(name, message)]

    @pytest.mark.parametrize(
        ("shape", "wanted"),
        [
            ({"kind": "circle", "radius": "big"}, [("shape.radius", 'expected an integer, got "big"')]),
            ({"kind": "square", "filled": 3}, [("shape.filled", "expected a boolean, got 3")]),
            ({"kind": "cone", "radius": "3"}, [("shape.kind", 'expected "circle" or "square", got "cone"')]),
            (3, [("shape", "expected an object, got 3")]),
        ],
    )
    def test_the_alternative_that_was_meant_is_explained(self, shape, wanted):
        assert faults(an_object({"shape": SHAPE}, **{"$defs": SHAPES}), {"shape": shape})[-1:] == wanted

    def test_alternatives_that_are_equally_near_are_all_named(self):
        [(path, message)] = faults({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {})
        assert path == ""
        assert message == (
            "must fit one of several alternatives; "
            "change either (a: required property is missing) or (b: required property is missing)"
        )

    def test_what_could_be_read_leniently_is_not_complained_of(self):
        schema = an_object({"a": INTEGER, "b": INTEGER})
        assert faults(schema, {"a": "3", "b": "x"}) == [("b", 'expected an integer, got "x"')]

    def test_long_values_and_long_lists_are_cut(self):
        [(_, message)] = faults(an_object({"x": {"enum": list(range(100))}}), {"x": "y" * 500})
        assert message.startswith("expected one of 0, 1, 2, ")
        assert "… (+80 more)" in message
        assert len(message) < 250

    def test_a_description_lists_the_first_faults_and_counts_the_rest(self):
        outcome = decoded(an_object({"n": {"items": INTEGER}}), {"n": ["x"] * 13})
        lines = outcome.describe("add").splitlines()
        assert lines[:2] == ["Invalid arguments for 'add':", '- n[0]: expected an integer, got "x"']
        assert lines[10:] == ['- n[9]: expected an integer, got "x"', "(+3 more)"]

    def test_a_fault_of_the_whole_has_no_path_in_the_description(self):
        refusal = BadArguments(faults=(ArgumentFault(path="", message="too much"),))
        assert refusal.describe("add") == "Invalid arguments for 'add':\n- too much"

    @pytest.mark.parametrize(
        ("schema", "arguments"),
        [
            (an_object({"x": {"multipleOf": 0.1}}), {"x": 10**400}),
            (an_object({"x": {"maxLength": 1, "minimum": 10**5000}}), {"x": 10**4999}),
        ],
    )
    def test_what_cannot_be_checked_does_not_fit(self, schema, arguments):
        [(path, message)] = faults(schema, arguments)
        assert path == ""
        assert message.startswith("cannot be checked: ")


class TestReferences:
    @pytest.mark.parametrize(
        "schema",
        [
            {"$ref": "#/$defs/count"},
            {"$ref": "#count"},
            {"$ref": "count.json"},
            {"$ref": "https://example.com/count.json"},
            {"$ref": "#/components/schemas/count"},
            {"$ref": "#/$defs/a~1b"},
        ],
    )
    def test_references_within_the_document_work(self, schema):
        rest = {
            "$id": "https://example.com/tool.json",
            "$defs": {
                "count": INTEGER,
                "anchored": {"$anchor": "count", **INTEGER},
                "named": {"$id": "count.json", "$ref": "#/$defs/inner", "$defs": {"inner": INTEGER}},
                "a/b": INTEGER,
            },
            "components": {"schemas": {"count": INTEGER}},
        }
        assert decoded(an_object({"n": schema}, **rest), {"n": "3"}) == {"n": 3}

    @pytest.mark.parametrize("reference", ["https://example.com/x.json", "x.json", "#/$defs/none", "#none"])
    def test_nothing_is_ever_fetched(self, reference, monkeypatch):
        def refuse(*_: Any, **__: Any) -> None:
            pytest.fail("the network was used")

        monkeypatch.setattr("urllib.request.urlopen", refuse)
        schema = an_object({"n": {"$ref": reference}})
        assert schema_fault(schema) == (
            f'properties.n.$ref: "{reference}" points to nothing in this schema, and nothing is fetched from elsewhere'
        )
        outcome = ArgumentDecoder(schema).decode({"n": 1})
        assert isinstance(outcome, BadArguments)
        assert outcome.faults[0].message == "cannot be checked: a reference in the tool's schema points to nothing"

    def test_an_alternative_out_of_its_context_is_left_alone(self):
        inner = {"$id": "https://example.com/x", "anyOf": [{"$ref": "#/$defs/count"}], "$defs": {"count": INTEGER}}
        assert decoded(an_object({"n": inner}), {"n": 3}) == {"n": 3}
        assert faults(an_object({"n": inner}), {"n": "3"}) == [("n", 'expected an integer, got "3"')]


class TestSchemaFault:
    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "object"},
            {"type": ["object", "null"]},
            {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": {}}},
            {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "null"}}},
            {"$schema": "https://example.com/own-dialect"},
            {"properties": {"$ref": {"type": "string"}, "next": {"$ref": "#"}}},
            {"examples": [{"$ref": "#/nowhere"}], "default": {"$ref": "x"}},
            {"$schema": DRAFT_4, "properties": {"a": {"$ref": "#"}}, "if": False, "dependentSchemas": 3},
            {"$schema": DRAFT_7, "dependencies": {"a": {"required": ["b"]}, "c": ["d"]}},
            MappingProxyType({"type": "object"}),
        ],
    )
    def test_a_usable_schema_has_none(self, schema):
        assert schema_fault(schema) is None

    @pytest.mark.parametrize("dialect", [DRAFT_4, DRAFT_7, DRAFT_2019, "https://json-schema.org/draft/2020-12/schema"])
    def test_the_schemas_of_json_schema_can_be_referred_to(self, dialect):
        schema = {"$schema": dialect, **an_object({"s": {"$ref": dialect}})}
        assert schema_fault(schema) is None
        assert decoded(schema, {"s": {"minLength": 1}})["s"]["minLength"] == 1
        assert isinstance(decoded(schema, {"s": {"minLength": -1}}), BadArguments)

    def test_defaults_that_stand_in_each_others_way_are_left_out(self):
        schema = an_object({"a": {"default": 1}, "b": INTEGER}, dependentRequired={"a": ["b"]})
        assert decoded(schema, {}) == {}
        assert decoded(schema, {"b": "2"}) == {"a": 1, "b": 2}
        assert isinstance(decoded(schema, {"a": 1}), BadArguments)

    @pytest.mark.parametrize(
        ("schema", "fault"),
        [
            (True, "a schema is an object, not a boolean"),
            (None, "a schema is an object, not null"),
            ([], "a schema is an object, not an array"),
            ({"type": "array"}, 'type: arguments are always an object, which "array" does not allow'),
            ({"required": "a"}, 'required: expected an array, got "a"'),
            ({"properties": {"a": {"minimum": "1"}}}, 'properties.a.minimum: expected a number, got "1"'),
            ({"properties": {"a": 5}}, "properties.a: expected an object or a boolean, got 5"),
            ({"properties": {"a": {"$ref": "#/x"}}, "x": {"type": "int"}},
             'x: type: expected "array", "boolean", "integer", "null", "number", "object", "string" or an array, '
             'got "int"'),
            ({"properties": {"a": {"$ref": "#/type"}}, "type": "object"},
             'properties.a.$ref: "#/type" does not point to a schema'),
            ({"properties": {"a": {"$ref": "#/allOf/x"}}, "allOf": [{}]},
             'properties.a.$ref: "#/allOf/x" points to nothing in this schema, '
             "and nothing is fetched from elsewhere"),
            ({"$schema": DRAFT_4, "properties": {"a": {"$ref": 5}}},
             "properties.a.$ref: 5 points to nothing in this schema, and nothing is fetched from elsewhere"),
            ({"$ref": "#"}, '$ref: leads back to itself without end'),
            ({"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}},
             'properties.a.allOf[0].$ref: leads back to itself without end'),
            ({"anyOf": [{"type": "string"}, {"$ref": "#"}]}, 'anyOf[1].$ref: leads back to itself without end'),
            ({"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}},
             '$defs.a.not.$ref: leads back to itself without end'),
            ({"$schema": 7}, "$schema: expected a string, got 7"),
            ({"$schema": "http://json-schema.org/draft-03/schema#"},
             "$schema: draft 3 is not supported, use a later one"),
            ({"properties": {"a": {"$schema": DRAFT_4}}},
             "properties.a.$schema: a part must be in the same dialect as the whole"),
            ({"$schema": "http://["}, "an address in it is not valid: Invalid IPv6 URL"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_said_with_its_place(self, schema, fault):
        assert schema_fault(schema) == fault

    def test_a_schema_may_not_be_endlessly_deep(self):
        schema: dict[str, Any] = {}
        for _ in range(2_000):
            schema = {"properties": {"a": schema}}
        assert schema_fault(schema) == "nested too deeply"


def test_the_module_does_not_import_the_schema_library():
    program = "import sys, toolyard.core.arguments.decoder; sys.exit('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("wrap", [lambda value: value, json.dumps])
def test_arguments_that_are_too_deep_are_refused_before_the_validator_runs_out_of_stack(wrap):
    optional_self = an_object({"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}})

    def chain(length: int) -> dict[str, Any]:
        return {"next": chain(length - 1)} if length else {}

    assert decoded(optional_self, wrap(chain(64))) == chain(64)
    assert faults(optional_self, wrap(chain(65))) == [("", "nested too deeply, at most 64 levels are allowed")]
    assert faults(optional_self, {"next": json.dumps(chain(65))})[0][0] == "next"


def test_many_texts_in_a_list_are_all_read():
    schema = an_object({"n": {"type": "array", "items": OPTIONAL_INTEGER}})
    assert decoded(schema, {"n": [str(number) for number in range(1_000)]}) == {"n": list(range(1_000))}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
telling_texts = st.sampled_from(["3", "3.0", "true", "null", "[1]", '{"a": "1"}', "[", '"x"', "1e999", ""])
names = st.sampled_from(["a", "b", "c", "$ref", "a b"])
values = st.recursive(
    scalars | telling_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(names, values, max_size=4)


@st.composite
def fitting(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], Any]:
    """A schema, and a value that fits it as it is."""
    kinds = ["integer", "number", "string", "boolean", "null", "enum", *(["array", "object", "anyOf"] * (depth > 0))]
    match draw(st.sampled_from(kinds)):
        case "enum":
            members = draw(st.lists(scalars, min_size=1, max_size=3))
            return {"enum": members}, draw(st.sampled_from(members))
        case "array":
            schema, item = draw(fitting(depth - 1))
            return {"type": "array", "items": schema}, [item] * draw(st.integers(0, 2))
        case "object":
            properties = draw(st.dictionaries(names, fitting(depth - 1), max_size=3))
            return (
                an_object({name: schema for name, (schema, _) in properties.items()}, additionalProperties=False),
                {name: value for name, (_, value) in properties.items() if draw(st.booleans())},
            )
        case "anyOf":
            pairs = draw(st.lists(fitting(depth - 1), min_size=1, max_size=3))
            return {"anyOf": [schema for schema, _ in pairs]}, draw(st.sampled_from([value for _, value in pairs]))
        case kind:
            value = {
                "integer": st.integers(),
                "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
                "string": st.text() | telling_texts,
                "boolean": st.booleans(),
                "null": st.none(),
            }[kind]
            return {"type": kind}, draw(value)


@given(pair=fitting(), as_text=st.booleans())
def test_a_value_that_fits_is_handed_on_as_it_is(pair, as_text):
    schema, value = pair
    arguments = {"x": value}
    outcome = decoded(an_object({"x": schema}, required=["x"]), json.dumps(arguments) if as_text else arguments)
    assert as_json(outcome) == as_json(arguments)


references = st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#/properties", "#a", "http://x/y", ""])
patterns = st.sampled_from(["^a", "[0-9]+", "(?i)x", "(?P<n>a)", "("])
limits = st.integers(0, 3) | st.floats(0.1, 1e300)
type_names = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
dialects = st.sampled_from([DRAFT_4, DRAFT_7, DRAFT_2019, "http://x/y", "http://["])
sizes = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "minContains"]


@st.composite
def keywords(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Schemas that are mostly sense and sometimes nonsense."""
    several = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(names, inner, max_size=3)
    name_lists = st.lists(names, min_size=1, max_size=2, unique=True)
    possible = {
        "type": type_names | st.lists(type_names, min_size=1, max_size=2, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        **dict.fromkeys(["const", "default"], values),
        **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "multipleOf"], limits),
        **dict.fromkeys(sizes, st.integers(0, 3)),
        "uniqueItems": st.booleans(),
        "pattern": patterns,
        **dict.fromkeys(["anyOf", "oneOf", "allOf", "prefixItems"], several),
        **dict.fromkeys(["properties", "$defs", "dependentSchemas"], by_name),
        "patternProperties": st.dictionaries(patterns, inner, max_size=2),
        **dict.fromkeys(["additionalProperties", "unevaluatedProperties", "propertyNames", "items"], inner),
        **dict.fromkeys(["not", "if", "then", "else", "contains", "unevaluatedItems"], inner),
        "required": name_lists,
        "dependentRequired": st.dictionaries(names, name_lists, max_size=2),
        "dependencies": st.dictionaries(names, inner | name_lists, max_size=2),
        **dict.fromkeys(["$ref", "$dynamicRef", "$id"], references),
        "$anchor": st.just("a"),
        "$schema": dialects,
    }
    common = ["properties", "type", "anyOf", "items", "default", "$defs", "$ref"]
    chosen = draw(st.lists(st.sampled_from([*possible, *common]), unique=True, max_size=4))
    return {name: draw(possible[name]) for name in chosen}


schemas = keywords(st.recursive(st.booleans() | st.just({}), keywords, max_leaves=4))
junk_text = st.text() | st.text('{}[]":,0123456789truefalsn. e-') | values.map(json.dumps)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
@given(schema=schemas, arguments=objects | values | junk_text, defaults=st.none() | objects)
def test_no_arguments_make_an_accepted_schema_raise(schema, arguments, defaults):
    assume(schema_fault(schema) is None)
    outcome = ArgumentDecoder(schema, defaults=defaults).decode(arguments)
    assert isinstance(outcome, dict | BadArguments)
    if isinstance(outcome, BadArguments):
        assert outcome.faults
        assert outcome.describe("tool").encode()


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
@given(schema=schemas, arguments=objects, defaults=objects)
def test_neither_the_schema_nor_what_is_given_is_ever_changed(schema, arguments, defaults):
    before = copy.deepcopy((schema, arguments, defaults))
    assume(schema_fault(schema) is None)
    ArgumentDecoder(schema, defaults=defaults).decode(arguments)
    assert as_json([schema, arguments, defaults]) == as_json(list(before))


@given(schema=values)
def test_schema_fault_has_an_answer_to_anything(schema):
    fault = schema_fault(schema)
    assert fault is None or fault.strip()


LIMITED = {
    "type": "object",
    "properties": {
        "least": {"type": "number", "minimum": 1, "default": 2},
        "more": {"type": ["integer", "string"], "exclusiveMinimum": 0, "maximum": 9},
        "less": {"type": "number", "exclusiveMaximum": 5},
        "word": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "flag": {"type": ["boolean", "null"], "minimum": 3},
    },
    "required": ["more"],
}


@pytest.mark.parametrize("arguments", [
    {"more": 1},
    {"more": 0},
    {"more": 10},
    {"more": "-5"},
    {"more": True},
    {"more": 1, "least": 0.5},
    {"more": 1, "least": 1},
    {"more": 1, "least": float("nan")},
    {"more": 1, "less": 5},
    {"more": 1, "less": 4.9},
    {"more": 1, "word": "b"},
    {"more": 1, "word": "c"},
    {"more": 1, "word": 1},
    {"more": 1, "flag": True},
    {"more": 1, "flag": None},
    {"more": 1, "other": 1},
    {"least": 2},
])  # fmt: skip
def test_what_is_told_without_the_library_is_what_the_library_says(arguments):
    assert repr(ArgumentDecoder(LIMITED).decode(arguments)) == repr(CompiledSchema(LIMITED, {}).decode(arguments))


def test_arguments_that_fit_a_plain_schema_need_no_schema_library():
    source = (
        "import json, sys\n"
        "from toolyard.core.arguments.decoder import ArgumentDecoder\n"
        "decoder = ArgumentDecoder(json.loads(sys.argv[1]))\n"
        "print(decoder.decode({'more': 3, 'word': 'b'}), 'jsonschema' in sys.modules, 'referencing' in sys.modules)\n"
        "print(decoder.decode({'more': 3, 'word': 'c'}).faults[0].path, 'jsonschema' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, json.dumps(LIMITED)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'more': 3, 'word': 'b', 'least': 2} False False\nword True\n"
