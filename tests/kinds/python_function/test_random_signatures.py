"""Whatever a function is annotated with: it loads or is one named problem, and gets what a model sends.

Types are put together by chance, each with a value as Python has it and the JSON that a model would send for it.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import itertools
import json
import re
import typing
import uuid
from collections import abc
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.faults import BadArguments
from toolyard.core.arguments.plain_schema import TYPE_NAMES
from toolyard.core.arguments.schema import schema_fault
from toolyard.core.problems import Problem
from toolyard.core.tool import JsonInput, ToolSpec
from toolyard.core.wire.formats import export
from toolyard.kinds.python_function.signatures.signature import Signature, read_signature

NUMBERS = itertools.count()
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"
    ALPHA = "alpha"


class Level(enum.IntEnum):
    HIGH = 3
    LOW = 1


class Odd(enum.Enum):
    FIRST = (1, 2)
    SECOND = object()


class Meant(msgspec.Struct, frozen=True):
    """A type, and a value of it with the JSON that means it."""

    hint: Any
    value: Any
    sent: Any


def meant(hint: Any, values: st.SearchStrategy[Any], send: Any = lambda value: value) -> st.SearchStrategy[Meant]:
    return values.map(lambda value: Meant(hint, value, send(value)))


SCALARS = st.one_of(
    meant(str, TEXTS),
    meant(int, st.integers(-(2**53), 2**53)),
    meant(float, st.floats(allow_nan=False, allow_infinity=False)),
    meant(bool, st.booleans()),
    meant(None, st.none()),
    meant(Any, st.one_of(TEXTS, st.integers(), st.lists(st.integers(), max_size=2))),
    meant(bytes, st.binary(max_size=4), lambda value: base64.b64encode(value).decode()),
    meant(Path, st.sampled_from([Path("a/b"), Path("/c")]), str),
    meant(datetime.date, st.dates(), lambda value: value.isoformat()),
    meant(datetime.datetime, st.datetimes(timezones=st.just(datetime.UTC)), lambda value: value.isoformat()),
    meant(uuid.UUID, st.uuids(), str),
    meant(decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=2), str),
    meant(Literal["z", "a", 3], st.sampled_from(["z", "a", 3])),
    meant(Literal[True, "no"], st.sampled_from([True, "no"])),
    meant(Literal[Colour.RED, "red-ish"], st.sampled_from([Colour.RED, "red-ish"]), lambda v: getattr(v, "value", v)),
    meant(Colour, st.sampled_from(Colour), lambda value: value.value),
    meant(Level, st.sampled_from(Level), int),
    meant(Odd, st.sampled_from(Odd), lambda value: value.name),
    meant(typing.NewType("UserId", int), st.integers(0, 9)),
    meant(Annotated[int, msgspec.Meta(ge=0, le=9)], st.integers(0, 9)),
    meant(Annotated[str, pydantic.Field(min_length=1, description="some")], TEXTS.filter(bool)),
    meant(Annotated[int, "told"], st.integers(0, 9)),
)


def lists_of(one: Meant) -> st.SearchStrategy[Meant]:
    several = st.integers(0, 2)

    def build(kind: Any, make: Any) -> st.SearchStrategy[Meant]:
        return several.map(lambda count: Meant(kind[one.hint], make([one.value] * count), [one.sent] * count))

    found = [build(kind, list) for kind in (list, typing.List, abc.Sequence, abc.Iterable)]  # noqa: UP006
    found += [build(collections.deque, collections.deque)]
    found += [
        several.map(lambda count: Meant(tuple[one.hint, ...], (one.value,) * count, [one.sent] * count)),
        st.just(Meant(tuple[one.hint, int], (one.value, 1), [one.sent, 1])),
        st.just(Meant(dict[str, one.hint], {"k": one.value}, {"k": one.sent})),
        st.just(Meant(abc.Mapping[Colour, one.hint], {Colour.RED: one.value}, {"red": one.sent})),
        st.just(Meant(dict[int, one.hint], {7: one.value}, {"7": one.sent})),
    ]
    if is_hashable(one.value):
        found.append(build(frozenset, frozenset).filter(lambda whole: len(whole.sent) < 2))
    return st.one_of(found)


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def optionals_of(one: Meant) -> st.SearchStrategy[Meant]:
    return st.sampled_from(
        [
            Meant(Optional[one.hint], one.value, one.sent),  # noqa: UP045
            Meant(Optional[one.hint], None, None),  # noqa: UP045
            Meant(Annotated[one.hint, "told"], one.value, one.sent),
        ]
    )


def classes_of(fields: dict[str, Meant], extra: bool) -> st.SearchStrategy[Meant]:
    """Each kind of class with the same fields, and one more that has a default."""
    name = f"Class{next(NUMBERS)}"
    hints = {field: one.hint for field, one in fields.items()}
    values = {field: one.value for field, one in fields.items()}
    sent: dict[str, Any] = {field: one.sent for field, one in fields.items()} | ({"extra": "x"} if extra else {})
    more = {"extra": "x"} if extra else {}

    def dataclass() -> Meant:
        kind = dataclasses.make_dataclass(name, [*hints.items(), ("extra", str, "usual")])
        return Meant(kind, kind(**values, **more), sent)

    def typed_dict() -> Meant:
        kind = TypedDict(name, {**hints, "extra": NotRequired[str]})  # type: ignore[misc]  # made at run time
        return Meant(kind, {**values, **more}, sent)

    def struct() -> Meant:
        kind = msgspec.defstruct(name, [*hints.items(), ("extra", str, "usual")])
        return Meant(kind, kind(**values, **more), sent)

    def tagged() -> Meant:
        kind = msgspec.defstruct(name, [*hints.items(), ("extra", str, "usual")], tag=True, rename="camel")
        return Meant(kind, kind(**values, **more), {"type": name, **sent})

    def attr() -> Meant:
        own = {field: attrs.field(type=hint) for field, hint in hints.items()}
        kind = attrs.make_class(name, {**own, "extra": attrs.field(type=str, default="usual")})
        return Meant(kind, kind(**values, **more), sent)

    def named_tuple() -> Meant:
        kind = NamedTuple(name, [*hints.items()])  # type: ignore[misc]  # made at run time
        return Meant(kind, kind(**values), [one.sent for one in fields.values()])

    return st.sampled_from([dataclass, typed_dict, struct, tagged, attr, named_tuple]).map(lambda make: make())


def models_of(fields: dict[str, Meant]) -> st.SearchStrategy[Meant]:
    """A pydantic model, whose own rules say how values are sent; other kinds of classes stay outside of it."""
    hints: dict[str, Any] = {field: (one.hint, ...) for field, one in fields.items()}
    kind = pydantic.create_model(f"Model{next(NUMBERS)}", extra=(Colour, Colour.BLUE), **hints)
    made = kind(**{field: one.value for field, one in fields.items()})
    return st.just(Meant(kind, made, made.model_dump(mode="json")))


FOR_MODELS = st.one_of(
    meant(str, TEXTS),
    meant(int, st.integers(-(2**53), 2**53)),
    meant(Colour, st.sampled_from(Colour), lambda value: value.value),
    meant(Optional[bool], st.sampled_from([None, True])),  # noqa: UP045
    meant(list[Literal["z", "a"]], st.lists(st.sampled_from(["z", "a"]), max_size=2)),
)
MODELS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), FOR_MODELS, min_size=1, max_size=3).flatmap(models_of),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | FOR_MODELS, min_size=1, max_size=2).flatmap(
        models_of
    ),
    max_leaves=4,
)


def unions_of(pair: list[Meant]) -> st.SearchStrategy[Meant]:
    """Either of two types whose values look different in JSON, so that it can be told which is meant."""
    one, other = pair
    if json_kinds(one.hint) & json_kinds(other.hint):
        return st.just(one)
    return st.just(Meant(Union[one.hint, other.hint], one.value, one.sent))  # noqa: UP007


def json_kinds(hint: Any) -> set[str]:
    """What values of a type may be in JSON; whole numbers are numbers too."""
    schema = schema_of(hint)
    branches = schema.get("anyOf", [schema])
    words = [
        branch.get("type") or [TYPE_NAMES[type(word)][0] for word in branch.get("enum", ())] for branch in branches
    ]
    if any(not word for word in words):
        return {"array", "boolean", "number", "null", "object", "string"}
    found = {kind for word in words for kind in ([word] if isinstance(word, str) else word)}
    return {"number" if kind == "integer" else kind for kind in found}


def schema_of(hint: Any) -> Any:
    read = read_signature(function_of({"p": Meant(hint, None, None)}, set()))
    assert isinstance(read, Signature), read
    return read.input.schema["properties"]["p"]


TYPES = st.recursive(
    SCALARS | MODELS,
    lambda inner: st.one_of(
        inner.flatmap(lists_of),
        inner.flatmap(optionals_of),
        st.lists(inner, min_size=2, max_size=2).flatmap(unions_of),
        st.tuples(NAMES, st.lists(inner, min_size=4, max_size=4), st.booleans()).flatmap(
            lambda found: classes_of(dict(zip(found[0], found[1], strict=False)), found[2])
        ),
    ),
    max_leaves=6,
)


def function_of(parameters: dict[str, Meant], defaults: set[str]) -> Any:
    """A function that gives back what it got."""
    ordered = sorted(parameters, key=lambda name: name in defaults)
    words = ", ".join(f"{name}=DEFAULTS[{name!r}]" if name in defaults else name for name in ordered)
    scope: dict[str, Any] = {"DEFAULTS": {name: one.value for name, one in parameters.items()}}
    exec(f"def function({words}): return locals()", scope)
    scope["function"].__annotations__ = {name: one.hint for name, one in parameters.items()}
    return scope["function"]


SETTINGS = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(st.dictionaries(st.sampled_from("pqrs"), TYPES, min_size=1, max_size=3), st.data())
def test_what_a_model_sends_is_what_the_function_gets(parameters, data):
    defaults = data.draw(st.sets(st.sampled_from(sorted(parameters))))
    left_out = data.draw(st.sets(st.sampled_from(sorted(defaults)))) if defaults else set()
    function = function_of(parameters, defaults)
    signature = read_signature(function)
    assert isinstance(signature, Signature), signature
    schema = signature.input.schema
    assert schema_fault(schema) is None
    assert json.loads(json.dumps(schema)) == schema
    sent = {name: one.sent for name, one in parameters.items() if name not in left_out}
    decoded = ArgumentDecoder(schema).decode(json.dumps(sent))
    assert not isinstance(decoded, BadArguments), (decoded, schema, sent)
    assert signature.call(function, signature.convert(decoded), None) == {
        name: one.value for name, one in parameters.items()
    }
    spec = ToolSpec(name="tool", description="A tool.", input=JsonInput(schema=schema))
    for form in ("openai", "responses", "anthropic", "mcp"):
        assert [problem for problem in export([spec], form).problems if problem.fatal] == []


NO_FORM = [object, type, abc.Callable[[int], int], abc.Iterator[int], complex, range, typing.IO[str], re.Pattern]
"""Types that say nothing about what to send."""


@SETTINGS
@given(TYPES, st.sampled_from(NO_FORM), st.data())
def test_what_has_no_form_in_json_is_one_problem_with_a_hint(one, strange, data):
    hint = data.draw(
        st.sampled_from(
            [
                strange,
                list[strange],
                Union[one.hint, strange],  # noqa: UP007
                dict[str, strange],
                Annotated[strange, "told"],
                dataclasses.make_dataclass("Holder", [("inner", strange)]),
                TypedDict("Holder", {"inner": strange}),
                msgspec.defstruct("Holder", [("inner", strange)]),
            ]
        )
    )
    found = read_signature(function_of({"p": Meant(hint, None, None)}, set()))
    assert isinstance(found, Problem), found
    assert found.code == "plugin_signature"
    assert found.hint


@pytest.mark.parametrize("sent", [{"type": "Nothing", "a": 1}, {"a": 1, "b": 2}, {"b": 1}, {}, [], "a"])
def test_what_fits_no_class_is_refused_before_the_function_runs(sent):
    kind = msgspec.defstruct("Kind", [("a", int)], tag=True)
    signature = read_signature(function_of({"p": Meant(kind, None, None)}, set()))
    assert isinstance(signature, Signature)
    assert isinstance(ArgumentDecoder(signature.input.schema).decode({"p": sent}), BadArguments)
