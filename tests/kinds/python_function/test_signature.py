"""A typed function with a docstring is a tool: its schema, its descriptions, its arguments."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import msgspec
import pydantic
import pytest
from pydantic import BaseModel

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.schema import schema_fault
from toolyard.core.problems import Problem
from toolyard.kinds.python_function.signatures.docstring import read_docstring
from toolyard.kinds.python_function.signatures.signature import Signature, read_signature
from toolyard.plugins.author_code.context import ToolContext


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place on a map."""

    x: int
    y: int = 0


class Box(TypedDict):
    width: float


class Shape(msgspec.Struct):
    points: list[Point]


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


class Person(BaseModel):
    name: str


BOX = {"type": "object", "additionalProperties": False}


def typed(hint: Any) -> Any:
    """A function with one parameter of that type."""

    def function(value):
        pass

    function.__annotations__ = {"value": hint}
    return function


def signature(function: Any) -> Signature:
    found = read_signature(function)
    assert isinstance(found, Signature), found
    return found


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["z", 1, True, None], {"enum": ["z", 1, True, None]}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (Annotated[int, msgspec.Meta(ge=1)], {"type": "integer", "minimum": 1}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Path, {"type": "string"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (Any, {}),
        (Box, {**BOX, "properties": {"width": {"type": "number"}}, "required": ["width"]}),
        (list, {"type": "array", "items": {}}),
        (dict, {"type": "object"}),
    ],
)
def test_a_type_becomes_a_schema(hint, schema):
    assert signature(typed(hint)).input.schema["properties"]["value"] == schema


def test_parts_are_written_out_where_they_stand():
    value = signature(typed(Shape)).input.schema["properties"]["value"]
    assert value["properties"]["points"]["items"]["properties"] == {
        "x": {"type": "integer"},
        "y": {"type": "integer", "default": 0},
    }
    assert "$ref" not in str(value)


def test_a_type_that_holds_itself_is_referred_to():
    found = signature(typed(Node))
    assert schema_fault(found.input.schema) is None
    decoder = ArgumentDecoder(found.input.schema)
    arguments = {"value": {"name": "a", "children": [{"name": "b", "children": []}]}}
    assert decoder.decode(arguments) == arguments
    assert found.convert(arguments)["value"].children[0] == Node("b")


@pytest.mark.parametrize(
    ("hint", "given", "value"),
    [
        (Point, {"x": 1}, Point(1, 0)),
        (Colour, "red", Colour.RED),
        (Path, "a/b", Path("a/b")),
        (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 1], {1}),
        (Box, {"width": 1.5}, {"width": 1.5}),
        (Person, {"name": "Ada"}, Person(name="Ada")),
        (Any, {"free": [1]}, {"free": [1]}),
    ],
)
def test_arguments_arrive_in_the_types_of_the_annotations(hint, given, value):
    assert signature(typed(hint)).convert({"value": given}) == {"value": value}


class Tree(BaseModel):
    """A tree of names."""

    name: str
    colour: Colour = Colour.BLUE
    below: list[Tree] = []


class Garden(BaseModel):
    trees: list[Tree]
    first: Person | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


def test_models_inside_models_are_written_out_and_those_inside_themselves_referred_to():
    found = signature(typed(Garden))
    schema = found.input.schema
    assert schema_fault(schema) is None
    tree = schema["properties"]["value"]["properties"]["trees"]["items"]
    assert tree["properties"]["colour"] == {"type": "string", "enum": ["red", "blue"], "default": "blue"}
    assert tree["properties"]["below"]["items"] == {"$ref": "#/$defs/Tree"}
    assert list(schema["$defs"]) == ["Tree"]
    sent = {"value": {"trees": [{"name": "a", "below": [{"name": "b", "colour": "red"}]}], "first": {"name": "Ada"}}}
    decoded = ArgumentDecoder(schema).decode(sent)
    assert found.convert(decoded)["value"] == Garden.model_validate(sent["value"])
    odd = {"name": "a", "below": [{"name": "b", "colour": "green"}]}
    assert "below[0].colour" in str(ArgumentDecoder(schema).decode({"value": {"trees": [odd]}}))


def test_two_classes_of_one_name_do_not_get_mixed_up():
    class Tree(msgspec.Struct):
        height: int
        below: list[Tree] = []

    Tree.__annotations__["below"] = list[Tree]
    found = signature(typed(tuple[Garden, Tree, Node]))
    assert schema_fault(found.input.schema) is None
    assert sorted(found.input.schema["$defs"]) == ["Node", "Tree", "Tree_2"]


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (Cat | Dog, {"kind": "dog"}, Dog(kind="dog")),
        (Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], {"kind": "dog"}, Dog(kind="dog")),
        (Point | Box, {"width": 1.0}, {"width": 1.0}),
        (list[Point | Person], [{"x": 1}, {"name": "Ada"}], [Point(1), Person(name="Ada")]),
        (datetime.date | str, "2024-02-29", datetime.date(2024, 2, 29)),
        (datetime.date | str, "tomorrow", "tomorrow"),
        (str | bytes, "abcd", "abcd"),
        (str | Path, "a", "a"),
        (float | int, 3, 3),
        (int | bool, True, True),
        (pydantic.PositiveInt, 3, 3),
        (pydantic.Json[list[int]], "[1]", [1]),
    ],
)
def test_of_several_types_the_one_that_fits_best_is_made(hint, sent, value):
    found = signature(typed(hint))
    decoded = ArgumentDecoder(found.input.schema).decode({"value": sent})
    got = found.convert(decoded)["value"]
    assert (got, type(got)) == (value, type(value))


def test_fields_of_pydantic_say_more_of_a_parameter():
    def function(
        a: Annotated[int, pydantic.Field(description="how many", ge=1)],
        b: str = pydantic.Field("x", max_length=3, pattern="^x"),
        c: str = pydantic.Field(description="needed"),
        d: list[str] = pydantic.Field(default_factory=lambda: ["made"]),  # noqa: B008 - as authors write it
    ):
        return (a, b, c, d)

    schema = signature(function).input.schema
    assert signature(function).call(function, {"a": 1, "c": "c"}, None) == (1, "x", "c", ["made"])
    assert schema["required"] == ["a", "c"]
    assert schema["properties"] == {
        "a": {"type": "integer", "minimum": 1, "description": "how many"},
        "b": {"type": "string", "maxLength": 3, "pattern": "^x", "default": "x"},
        "c": {"type": "string", "description": "needed"},
        "d": {"type": "array", "items": {"type": "string"}},
    }


def test_what_a_class_refuses_is_said_with_its_place():
    @dataclass
    class Even:
        number: int

        def __post_init__(self):
            if self.number % 2:
                raise ValueError("not an even number")

    with pytest.raises(ValueError, match=r"^value\[1\]: not an even number$"):
        signature(typed(list[Even])).convert({"value": [{"number": 2}, {"number": 3}]})
    with pytest.raises(ValueError, match=r"^value\.lives: Input should be"):
        signature(typed(Cat)).convert({"value": {"kind": "cat", "lives": "many"}})


def test_only_parameters_without_a_default_are_required():
    def function(a: int, b: int = 2, c: str | None = None, d: str = None, *, e: list[str] = ["x"], f=object()):  # noqa
        pass

    schema = signature(function).input.schema
    assert schema["required"] == ["a"]
    assert {name: part.get("default", "-") for name, part in schema["properties"].items()} == {
        "a": "-",
        "b": 2,
        "c": None,
        "d": None,
        "e": ["x"],
        "f": "-",
    }
    assert schema["additionalProperties"] is False
    decoded = ArgumentDecoder(schema).decode({"a": 1})
    assert signature(function).convert(decoded) == {"a": 1, "b": 2, "c": None, "d": None, "e": ["x"]}


def test_a_default_that_json_cannot_say_stays_the_functions_own():
    def function(when: datetime.date = datetime.date(2024, 1, 1), where: Path = Path("x"), limit: int = "odd"):
        pass

    properties = signature(function).input.schema["properties"]
    assert properties["when"]["default"] == "2024-01-01"
    assert properties["where"]["default"] == "x"
    assert "default" not in properties["limit"]


def test_context_is_no_argument_of_the_model():
    def function(text: str, context: ToolContext, /):
        return (text, context)

    found = signature(function)
    assert list(found.input.schema["properties"]) == ["text"]
    assert found.context == "context"


def test_keyword_arguments_are_open():
    def function(a: int, **rest: str):
        return (a, rest)

    found = signature(function)
    assert found.input.schema["additionalProperties"] == {"type": "string"}
    arguments = found.convert({"a": 1, "b": "x"})
    assert found.call(function, arguments, None) == (1, {"b": "x"})


def test_positional_only_parameters_are_given_by_place():
    def function(a: int, b: int = 0, /, *, c: int):
        return (a, b, c)

    found = signature(function)
    assert found.call(function, found.convert({"c": 3, "a": 1, "b": 2}), None) == (1, 2, 3)
    assert found.call(function, found.convert({"c": 3, "a": 1}), None) == (1, 0, 3)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (object, "no JSON form"),
        (Point | object, "no JSON form"),
        (list[type], "no JSON form"),
        ("Nowhere", "annotations cannot be read"),
    ],
)
def test_what_cannot_be_a_tool_says_why(hint, message):
    fault = read_signature(typed(hint))
    assert isinstance(fault, Problem)
    assert message in fault.message
    assert fault.hint


def test_star_args_cannot_be_given_by_name():
    def function(*values: int):
        pass

    fault = read_signature(function)
    assert isinstance(fault, Problem)
    assert "*args" in fault.message


GOOGLE = """Count the words.

    More about it,
    on two lines.

    Args:
        text: The text, which may
            go on.
        limit (int): How many: at most.
        **rest: More.

    Returns:
        A number.
    """
REST = """Count the words.

    More about it,
    on two lines.

    :param text: The text, which may
        go on.
    :param int limit: How many: at most.
    :param rest: More.
    :returns: A number.
    """
NUMPY = """Count the words.

    More about it,
    on two lines.

    Parameters
    ----------
    text : str
        The text, which may
        go on.
    limit
        How many: at most.
    **rest : str
        More.

    Returns
    -------
    int
        A number.
    """


@pytest.mark.parametrize("text", [GOOGLE, REST, NUMPY], ids=["google", "rest", "numpy"])
def test_a_docstring_of_any_manner_describes_the_tool_and_its_arguments(text):
    found = read_docstring(text)
    assert found.description == "Count the words.\n\nMore about it,\non two lines."
    assert found.arguments == {"text": "The text, which may go on.", "limit": "How many: at most.", "rest": "More."}


GOES_ON = "Do it.\n\nArgs:\n    a: One\n        two\n        three.\n    b: Four\n\n        five.\n"
LONG = {
    "google": f"{GOES_ON}\nRaises:\n    c: Six.\n",
    "rest": "Do it.\n\n:param a: One\n    two\n    three.\n:param b: Four\n    five.\n:returns: Six\n    seven.\n",
    "numpy": "Do it.\n\nParameters\n----------\na : int\n    One\n    two\n    three.\nb\n    Four\n    five.\n",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_what_is_said_of_an_argument_goes_on_over_several_lines_and_ends_where_the_next_begins(text):
    found = read_docstring(text)
    assert found.description == "Do it."
    assert found.arguments == {"a": "One two three.", "b": "Four five."}


def test_text_after_the_fields_is_about_the_tool_again():
    found = read_docstring("Do it.\n\n:param a: One\n    two.\n:returns: Three.\n\nMore of it.")
    assert found.description == "Do it.\n\n\nMore of it."
    assert found.arguments == {"a": "One two."}


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_no_docstring_describes_nothing(text):
    assert read_docstring(text).description == ""


def test_a_line_of_an_annotation_wins_over_the_docstring():
    def function(a: Annotated[int, "of the annotation"], b: int, c: int = 0, d: str | None = None):
        """Do it.

        Args:
            a: of the docstring
            b: also of the docstring
            c: with a default
            d: that may be null
        """

    found = signature(function)
    assert found.description == "Do it."
    assert [part["description"] for part in found.input.schema["properties"].values()] == [
        "of the annotation",
        "also of the docstring",
        "with a default",
        "that may be null",
    ]
