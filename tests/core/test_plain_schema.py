"""Which schemas are so plain that no library is needed to check by them."""

from __future__ import annotations

import pytest

from toolyard.core.arguments.plain_schema import is_plain, property_types


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({}, True),
        ({"type": "string"}, True),
        ({"type": ["string", "null"]}, True),
        ({"type": []}, False),
        ({"type": ["string", "string"]}, False),
        ({"type": "text"}, False),
        ({"type": ["string", "text"]}, False),
        ({"type": 3}, False),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, True),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, False),
        ({"type": "object", "properties": []}, False),
        ({"required": ["a", "b"]}, True),
        ({"required": ["a", "a"]}, False),
        ({"required": [1]}, False),
        ({"required": "a"}, False),
        ({"minimum": 1.5}, True),
        ({"minimum": True}, False),
        ({"minLength": 0}, True),
        ({"minLength": -1}, False),
        ({"minLength": 1.5}, False),
        ({"$ref": "#"}, False),
        ([], False),
        (True, False),
    ],
)
def test_only_common_keywords_with_valid_values_are_plain(schema, plain):
    assert is_plain(schema) is plain


SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "maybe": {"type": ["boolean", "null"]},
        "any": {},
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"text": "a"}, True),
        ({"text": "c"}, False),
        ({"text": 1}, False),
        ({}, False),
        ({"text": "a", "count": 1}, True),
        ({"text": "a", "count": 3}, True),
        ({"text": "a", "count": 0}, False),
        ({"text": "a", "count": 4}, False),
        ({"text": "a", "count": True}, False),
        ({"text": "a", "maybe": None}, True),
        ({"text": "a", "maybe": False}, True),
        ({"text": "a", "maybe": 0}, False),
        ({"text": "a", "any": 1}, False),
        ({"text": "a", "other": 1}, False),
    ],
)
def test_what_surely_fits_is_told_by_exact_types_and_limits(value, fits):
    types = property_types(SCHEMA)
    assert types is not None
    assert types.fit(value) is fits
