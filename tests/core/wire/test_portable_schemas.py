"""Schemas in the part of JSON Schema that every client takes, and in words what that part cannot say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.core.schema_parts import parts
from toolyard.core.wire.portable_schemas import TAKEN, portable


def of(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("given", "lowered"),
    [
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"const": "x"}, {"enum": ["x"]}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "description": "(exclusiveMinimum: 0)"}),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": '(format: "uri")'}),
        (
            {"type": "string", "pattern": "^(?!x)", "description": "Not x."},
            {"type": "string", "description": 'Not x. (pattern: "^(?!x)")'},
        ),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        (
            {"allOf": [{"type": "object", "properties": {"b": {"type": "string"}}}, {"required": ["b"]}]},
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        ),
    ],
)
def test_what_some_receiver_refuses_is_said_in_another_way(given, lowered):
    assert portable(of(**given))["properties"]["a"] == lowered


def test_references_are_written_out_and_have_an_end():
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "name": {"type": "string"}}}
    schema = {"type": "object", "properties": {"root": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}}
    found = portable(schema)
    assert "$ref" not in json.dumps(found)
    assert found["properties"]["root"]["properties"]["left"] == {}
    assert found["properties"]["root"]["properties"]["name"] == {"type": "string"}


def test_a_schema_that_grows_without_end_stays_small():
    definitions = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    found = portable({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
    assert len(list(parts(found))) < 10_000


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"anyOf": [{"required": ["a"]}]}, {"$ref": "#/$defs/none"}])
def test_there_is_always_an_object_at_the_root(schema):
    found = portable(schema)
    assert found["type"] == "object"
    assert isinstance(found["properties"], dict)
    assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & set(found)


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
KEYWORDS = [
    "type",
    "anyOf",
    "oneOf",
    "allOf",
    "items",
    "properties",
    "enum",
    "const",
    "$ref",
    "pattern",
    "required",
    "x",
]
SCHEMAS = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), SCHEMAS, max_size=5))
def test_whatever_an_author_wrote_is_lowered(schema):
    for _, part in parts(portable(schema)):
        assert set(part) <= TAKEN
