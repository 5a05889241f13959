"""What can be typed for a field of a form."""

from __future__ import annotations

import pytest

from toolyard.cli.asking.form import NoValue, field_prompt, typed_value

TITLED = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "default": ["a"]}


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "string"}, "x y", "x y"),
        ({"type": "string"}, "", None),
        ({"type": "boolean"}, "NO", False),
        ({"type": "number", "maximum": 2}, "1.5", 1.5),
        (TITLED, "g", "g"),
        (SEVERAL, "b, c", ["b", "c"]),
        (SEVERAL, "", ["a"]),
    ],
)
def test_what_is_typed_becomes_a_value_of_its_field(field, text, value):
    assert typed_value(text, field, is_needed=False) == value


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ({"type": "string"}, "", "has to be filled in"),
        ({"type": "boolean"}, "maybe", "yes or no"),
        ({"type": "integer"}, "1.5", "a whole number"),
        ({"type": "integer", "minimum": 3}, "2", "at least 3"),
        ({"type": "number", "maximum": 2}, "2.5", "at most 2"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "one of a, b"),
        (TITLED, "Red", "one of r, g"),
        (SEVERAL, "a, x", "one of a, b, c"),
    ],
)
def test_what_is_no_value_is_refused_with_what_would_be_one(field, text, told):
    with pytest.raises(NoValue, match=told):
        typed_value(text, field, is_needed=True)


def test_a_prompt_says_what_can_be_chosen_and_what_nothing_typed_means():
    assert field_prompt("colour", TITLED) == "  colour (r, g): "
    assert field_prompt("letters", SEVERAL) == "  letters (a, b, c) [a]: "
