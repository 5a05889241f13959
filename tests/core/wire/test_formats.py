"""The exported forms are held against the vendors' own packages, not against our idea of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from toolyard.core.tool import Hints, JsonInput, TextInput, ToolSpec, WireFormat
from toolyard.core.wire.formats import Exported, FormatProblem, export, export_one, format_problems

FORMATS: tuple[WireFormat, ...] = get_args(WireFormat)
OPENAI: tuple[WireFormat, ...] = ("openai", "responses")

PATH_SCHEMA = {
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "type": "object",
    "additionalProperties": False,
}
GRAMMAR = 'start: "+" /[a-z]+/'


class NotTaken(Exception):
    """An official type does not take a form, or would lose a part of it."""


Accepts = Callable[[Any], None]


@pytest.fixture(scope="module")
def official() -> Mapping[WireFormat, Accepts]:
    """What raises `NotTaken` unless a form is exactly what the vendor's package describes."""
    # Importing the packages takes seconds, so it is not done while tests are collected.
    from anthropic.types import ToolBash20250124Param, ToolParam
    from anthropic.types.tool_param import InputSchemaTyped
    from openai.types.chat import ChatCompletionFunctionToolParam
    from openai.types.responses import CustomToolParam, FunctionToolParam

    anthropic_tool, anthropic_schema = _exactly(ToolParam), _exactly(InputSchemaTyped)

    def anthropic_custom(form: Any) -> None:
        anthropic_tool(form)
        # The tool's own type also takes any mapping as a schema, which the API does not.
        anthropic_schema(form["input_schema"])

    return {
        "openai": _exactly(ChatCompletionFunctionToolParam),
        "responses": _by_type({"function": _exactly(FunctionToolParam), "custom": _exactly(CustomToolParam)}),
        "anthropic": _by_type({None: anthropic_custom, "bash_20250124": _exactly(ToolBash20250124Param)}),
        "mcp": _mcp_tool(),
    }


def _exactly(kind: type) -> Accepts:
    adapter = TypeAdapter(kind)

    def accept(form: Any) -> None:
        try:
            taken = adapter.validate_python(form, strict=True)
        except ValidationError as error:
            raise NotTaken(str(error)) from error
        # A TypedDict silently drops the keys that it does not know.
        _nothing_lost(form, taken)

    return accept


def _by_type(kinds: Mapping[str | None, Accepts]) -> Accepts:
    def accept(form: Any) -> None:
        if form.get("type") not in kinds:
            raise NotTaken(f"no such type: {form.get('type')!r}")
        kinds[form.get("type")](form)

    return accept


def _mcp_tool() -> Accepts:
    """The model of the package, and the wire as two revisions of the protocol know it."""
    from mcp_types import Tool
    from mcp_types.methods import serialize_server_result

    envelopes: dict[str, dict[str, Any]] = {
        "2025-11-25": {},
        "2026-07-28": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
    }

    def accept(form: Any) -> None:
        try:
            model = Tool.model_validate(form, by_name=False).model_dump(by_alias=True, exclude_unset=True)
            wires = [serialize_server_result("tools/list", v, {"tools": [form], **e}) for v, e in envelopes.items()]
        except ValidationError as error:
            raise NotTaken(str(error)) from error
        for taken in (model, *(wire["tools"][0] for wire in wires)):
            _nothing_lost(form, taken)

    return accept


def _nothing_lost(form: Any, taken: Any) -> None:
    if taken != form:
        raise NotTaken(f"{form} became {taken}")


def a_tool(**changes: Any) -> ToolSpec:
    whole: dict[str, Any] = {"name": "read", "description": "Read a file.", "input": JsonInput(schema=PATH_SCHEMA)}
    return ToolSpec(**{**whole, **changes})


def with_schema(schema: Mapping[str, Any]) -> ToolSpec:
    return a_tool(input=JsonInput(schema=schema))


def codes(problems: tuple[FormatProblem, ...]) -> list[str]:
    return [problem.code for problem in problems]


def schema_of(form: Any) -> Any:
    """The schema of a form of any format."""
    inner = form.get("function", form)
    return next(inner[key] for key in ("parameters", "input_schema", "inputSchema") if key in inner)


@pytest.mark.parametrize(
    ("format", "form"),
    [
        (
            "openai",
            {
                "type": "function",
                "function": {"name": "read", "description": "Read a file.", "parameters": PATH_SCHEMA},
            },
        ),
        (
            "responses",
            {
                "type": "function",
                "name": "read",
                "description": "Read a file.",
                "parameters": PATH_SCHEMA,
                "strict": False,
            },
        ),
        ("anthropic", {"name": "read", "description": "Read a file.", "input_schema": PATH_SCHEMA}),
        ("mcp", {"name": "read", "description": "Read a file.", "inputSchema": PATH_SCHEMA}),
    ],
)
def test_a_tool_with_json_arguments_has_a_form_in_every_format(official, format, form) -> None:
    assert export([a_tool()], format) == Exported(tools=(form,), problems=())
    official[format](form)


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_schema_travels_untouched_with_its_keys_in_order(format) -> None:
    assert json.dumps(schema_of(export_one(a_tool(), format))) == json.dumps(PATH_SCHEMA)


@pytest.mark.parametrize(
    ("given", "openai", "others"),
    [
        ({}, {"type": "object", "properties": {}}, {"type": "object"}),
        ({"title": "T"}, {"type": "object", "title": "T", "properties": {}}, {"type": "object", "title": "T"}),
        ({"type": "object"}, {"type": "object", "properties": {}}, {"type": "object"}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}, None),
    ],
)
def test_what_a_format_requires_at_the_root_is_added(official, given, openai, others) -> None:
    for format in FORMATS:
        exported = export([with_schema(given)], format)
        assert exported.problems == ()
        assert schema_of(exported.tools[0]) == (openai if format in OPENAI else others or openai)
        official[format](exported.tools[0])


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": {}}, PATH_SCHEMA], ids=str)
def test_a_schema_that_is_verbatim_is_added_to_only_where_the_format_requires_it(official, schema) -> None:
    spec = ToolSpec(name="t", description="d", input=JsonInput(schema=schema, verbatim=True))
    for format in FORMATS:
        official[format](export_one(spec, format))
    assert export_one(spec, "openai")["function"]["parameters"] == schema
    assert export_one(spec, "responses")["parameters"] == schema
    assert export_one(spec, "anthropic")["input_schema"] == {"type": "object", **schema}
    codes = [problem.code for format in OPENAI for problem in format_problems(spec, format)]
    assert codes == ([] if schema is PATH_SCHEMA else ["schema_incomplete"] * 2)
    assert len(export([spec], "openai").tools) == 1


def test_exporting_does_not_change_the_schema_of_the_tool() -> None:
    schema: dict[str, Any] = {}
    for format in FORMATS:
        export([with_schema(schema)], format)
    assert schema == {}


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (TextInput(), {"type": "text"}),
        (TextInput(syntax="lark", grammar=GRAMMAR), {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}),
        (TextInput(syntax="regex", grammar="a+"), {"type": "grammar", "syntax": "regex", "definition": "a+"}),
    ],
)
def test_free_text_is_a_custom_tool_where_there_are_custom_tools(official, text, format) -> None:
    (form,) = export([a_tool(input=text)], "responses").tools
    assert form == {"type": "custom", "name": "read", "description": "Read a file.", "format": format}
    official["responses"](form)


@pytest.mark.parametrize("format", ["openai", "anthropic", "mcp"])
def test_free_text_is_the_one_argument_of_a_function_elsewhere(official, format) -> None:
    (form,) = export([a_tool(input=TextInput())], format).tools
    schema = schema_of(form)
    assert schema["properties"]["input"]["type"] == "string"
    assert (list(schema["properties"]), schema["required"]) == (["input"], ["input"])
    official[format](form)


@pytest.mark.parametrize("format", ["openai", "anthropic", "mcp"])
def test_a_grammar_is_told_to_the_model_where_it_cannot_be_enforced(format) -> None:
    form = export_one(a_tool(input=TextInput(syntax="lark", grammar=GRAMMAR)), format)
    about = schema_of(form)["properties"]["input"]["description"]
    assert "lark" in about
    assert GRAMMAR in about


@pytest.mark.parametrize(
    "text", [TextInput(syntax="lark"), TextInput(grammar=GRAMMAR), TextInput(syntax="lark", grammar="")]
)
def test_half_a_grammar_is_named_and_exported_as_plain_text(official, text) -> None:
    for format in FORMATS:
        exported = export([a_tool(input=text)], format)
        assert codes(exported.problems) == ["grammar_incomplete"]
        assert exported.tools == export([a_tool(input=TextInput())], format).tools
        official[format](exported.tools[0])


@pytest.mark.parametrize(
    ("hints", "annotations"),
    [
        (Hints(), None),
        (Hints(parallel=False), None),
        (Hints(read_only=True), {"readOnlyHint": True}),
        (Hints(destructive=True), {"destructiveHint": True}),
    ],
)
def test_mcp_is_told_the_hints_that_were_given_and_promised_nothing_else(official, hints, annotations) -> None:
    form = export_one(a_tool(hints=hints), "mcp")
    assert form.get("annotations") == annotations
    official["mcp"](form)


@pytest.mark.parametrize("description", ["", "  \n"])
@pytest.mark.parametrize("text", [JsonInput(schema={}), TextInput()])
def test_a_tool_without_description_is_named_and_still_exported(official, description, text) -> None:
    for format in FORMATS:
        exported = export([a_tool(description=description, input=text)], format)
        assert [(p.code, p.fatal) for p in exported.problems] == [("description_missing", False)]
        (form,) = exported.tools
        assert "description" not in form.get("function", form)
        official[format](form)


def test_a_native_form_is_used_as_it_is_and_only_in_its_own_format(official) -> None:
    bash = {"type": "bash_20250124", "name": "bash"}
    spec = a_tool(name="bash", description="", native={"anthropic": bash})
    assert export([spec], "anthropic") == Exported(tools=(bash,), problems=())
    assert export_one(spec, "anthropic") is bash
    assert schema_of(export_one(spec, "openai")) == PATH_SCHEMA
    official["anthropic"](bash)


def test_a_problem_says_what_is_wrong_and_what_to_do() -> None:
    assert format_problems(a_tool(name="git.log"), "anthropic") == (
        FormatProblem(
            tool="git.log",
            format="anthropic",
            code="name_characters",
            message="Anthropic names do not contain '.'",
            hint="rename it, for example to 'git_log'",
            fatal=True,
        ),
    )


LONG, STRANGE = "name_too_long", "name_characters"


@pytest.mark.parametrize(
    ("name", "openai", "responses", "anthropic", "mcp"),
    [
        ("read", "", "", "", ""),
        ("Read-File_2", "", "", "", ""),
        ("-", "", "", "", ""),
        ("a" * 64, "", "", "", ""),
        ("a" * 65, LONG, "", "", ""),
        ("a" * 128, LONG, "", "", ""),
        ("a" * 129, LONG, LONG, LONG, LONG),
        ("", "name_empty", "name_empty", "name_empty", "name_empty"),
        ("git.log", STRANGE, STRANGE, STRANGE, ""),
        ("git log", STRANGE, STRANGE, STRANGE, STRANGE),
        ("git/log", STRANGE, STRANGE, STRANGE, STRANGE),
        ("read\n", STRANGE, STRANGE, STRANGE, STRANGE),
        ("lösche", STRANGE, STRANGE, STRANGE, STRANGE),
        ("٣", STRANGE, STRANGE, STRANGE, STRANGE),
    ],
)
def test_every_format_has_its_own_limits_for_names(name, openai, responses, anthropic, mcp) -> None:
    found = {format: "".join(codes(format_problems(a_tool(name=name), format))) for format in FORMATS}
    assert found == {"openai": openai, "responses": responses, "anthropic": anthropic, "mcp": mcp}


def test_all_that_is_wrong_with_a_name_is_named() -> None:
    for format in FORMATS:
        assert codes(format_problems(a_tool(name="ß" * 200), format)) == [LONG, STRANGE]


@pytest.mark.parametrize("name", ["git log", "a" * 129])
def test_a_bad_name_keeps_a_tool_out_of_the_formats_that_enforce_names(official, name) -> None:
    exported = {format: export([a_tool(name=name)], format).tools for format in FORMATS}
    assert [format for format, tools in exported.items() if tools] == ["mcp"]
    official["mcp"](exported["mcp"][0])


@pytest.mark.parametrize("format", FORMATS)
def test_a_tool_without_name_is_in_no_format(format) -> None:
    assert export([a_tool(name="")], format).tools == ()


@settings(deadline=None)
@given(name=st.text(alphabet=st.one_of(st.sampled_from("abZ09._-/ "), st.characters()), max_size=140))
def test_the_limits_for_mcp_names_are_those_of_its_own_package(name) -> None:
    from mcp.shared.tool_name_validation import validate_tool_name

    assert (format_problems(a_tool(name=name), "mcp") == ()) == validate_tool_name(name).is_valid


@given(name=st.text(min_size=1, max_size=200))
def test_the_name_in_a_hint_would_be_accepted(name) -> None:
    for format in FORMATS:
        for problem in format_problems(a_tool(name=name), format):
            proposed = problem.hint.split("'", 1)[1].rstrip("'")
            assert format_problems(a_tool(name=proposed), format) == ()


def test_of_two_tools_with_one_name_the_first_is_exported() -> None:
    first, second, third = a_tool(description="First."), a_tool(description="Second."), a_tool(name="write")
    for format in FORMATS:
        exported = export([first, second, third], format)
        assert exported.tools == (export_one(first, format), export_one(third, format))
        assert [(p.tool, p.code, p.fatal) for p in exported.problems] == [("read", "name_taken", True)]


@pytest.mark.parametrize(
    ("format", "native"),
    [
        ("anthropic", {"type": "bash_20250124", "name": "bash"}),
        ("openai", {"type": "custom", "custom": {"name": "bash"}}),
        ("responses", {"type": "custom", "name": "bash"}),
    ],
)
def test_the_name_in_a_native_form_is_taken_as_well(format, native) -> None:
    exported = export([a_tool(name="shell", native={format: native}), a_tool(name="bash")], format)
    assert exported.tools == (native,)
    assert codes(exported.problems) == ["name_taken"]


def test_native_forms_without_a_name_do_not_clash() -> None:
    hosted = [
        a_tool(name=kind, native={"responses": {"type": kind}}) for kind in ("web_search", "image_generation", "custom")
    ]
    assert export(hosted, "responses").problems == ()


def test_a_tool_that_is_left_out_does_not_take_the_others_with_it() -> None:
    specs = [a_tool(name="a"), a_tool(name="b b"), with_schema({"type": "array"}), a_tool(name="c")]
    exported = export(specs, "anthropic")
    assert [form["name"] for form in exported.tools] == ["a", "c"]
    assert [(p.tool, p.code) for p in exported.problems] == [
        ("b b", "name_characters"),
        ("read", "schema_not_object"),
    ]


@pytest.mark.parametrize("root", [["object"], ["object", "null"], ["null", "string", "object"]])
def test_a_root_that_may_be_an_object_is_one(official, root) -> None:
    for format in FORMATS:
        exported = export([with_schema({"type": root, "properties": {}})], format)
        assert exported.problems == ()
        assert schema_of(exported.tools[0]) == {"type": "object", "properties": {}}
        official[format](exported.tools[0])


@pytest.mark.parametrize("root", ["string", "array", ["string", "null"], None])
def test_a_root_that_is_not_an_object_fits_no_format(official, root) -> None:
    spec = with_schema({"type": root})
    for format in FORMATS:
        assert [(p.code, p.fatal) for p in format_problems(spec, format)] == [("schema_not_object", True)]
        assert export([spec], format).tools == ()
    for format in ("anthropic", "mcp"):
        with pytest.raises(NotTaken):
            official[format](export_one(spec, format))


@pytest.mark.parametrize(
    ("keyword", "value", "refused_by"),
    [
        ("oneOf", [{}], [*OPENAI, "anthropic"]),
        ("anyOf", [{"required": ["path"]}], [*OPENAI, "anthropic"]),
        ("allOf", [{}], [*OPENAI, "anthropic"]),
        ("enum", [{}], [*OPENAI]),
        ("const", {}, [*OPENAI]),
        ("not", {}, [*OPENAI]),
        ("$defs", {}, []),
        ("additionalProperties", False, []),
    ],
)
def test_some_keywords_are_refused_at_the_root_of_a_schema(keyword, value, refused_by) -> None:
    at_root, inside = with_schema({keyword: value}), with_schema({"properties": {"a": {keyword: value}}})
    found = {format: format_problems(at_root, format) for format in FORMATS}
    assert [format for format in FORMATS if codes(found[format]) == ["schema_root_keyword"]] == refused_by
    assert not any(problem.fatal for problems in found.values() for problem in problems)
    assert all(format_problems(inside, format) == () for format in FORMATS)
    for format in FORMATS:
        (form,) = export([at_root], format).tools
        assert (keyword in schema_of(form)) is (format not in refused_by)


def test_a_root_that_is_a_reference_is_written_out(official) -> None:
    place = {"type": "object", "properties": {"city": {"type": "string"}}}
    for format in FORMATS:
        exported = export([with_schema({"$ref": "#/$defs/place", "$defs": {"place": place}})], format)
        assert schema_of(exported.tools[0]) == {**place, "$defs": {"place": place}}
        official[format](exported.tools[0])


def test_alternatives_at_the_root_become_properties_and_a_rule_in_words(official) -> None:
    schema = {
        "type": "object",
        "description": "Where.",
        "properties": {"unit": {"type": "string"}},
        "required": ["unit"],
        "oneOf": [
            {"properties": {"city": {"type": "string"}}, "required": ["city"]},
            {"properties": {"zip": {"type": "integer"}}, "required": ["zip"]},
        ],
    }
    for format in (*OPENAI, "anthropic"):
        (form,) = export([with_schema(schema)], format).tools
        told = schema_of(form)
        assert told["properties"] == {
            "city": {"type": "string"},
            "zip": {"type": "integer"},
            "unit": {"type": "string"},
        }
        assert told["required"] == ["unit"]
        assert told["description"].startswith('Where.\nArguments must also fit: {"oneOf": [{"properties"')
        assert not {"oneOf", "anyOf", "allOf"} & told.keys()
        official[format](form)
    both = {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}
    told = schema_of(export([with_schema(both)], "openai").tools[0])
    assert (list(told["properties"]), told["required"]) == (["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("name", "fine"),
    [("a.b-c_D9", True), ("a" * 64, True), ("a" * 65, False), ("", False), ("$top", False), ("filter[id]", False)],
)
def test_anthropic_limits_the_names_of_properties_at_the_root(name, fine) -> None:
    at_root = with_schema({"properties": {name: {}}})
    inside = with_schema({"properties": {"a": {"type": "object", "properties": {name: {}}}}})
    assert codes(format_problems(at_root, "anthropic")) == ([] if fine else ["property_name"])
    assert format_problems(inside, "anthropic") == ()
    assert all(format_problems(at_root, format) == () for format in ("openai", "responses", "mcp"))


@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"type": "array"}, "properties.a"),
        ({"type": ["string", "array"]}, "properties.a"),
        ({"type": "array", "prefixItems": [{"type": "integer"}]}, "properties.a"),
        ({"type": "array", "items": {"type": "array"}}, "properties.a.items"),
        ({"anyOf": [{"type": "null"}, {"type": "array"}]}, "properties.a.anyOf.1"),
        ({"type": "object", "properties": {"b": {"type": "array"}}}, "properties.a.properties.b"),
    ],
)
def test_openai_requires_every_array_to_say_what_it_holds(part, where) -> None:
    spec = with_schema({"properties": {"a": part}})
    for format in OPENAI:
        (problem,) = format_problems(spec, format)
        assert (problem.code, problem.fatal) == ("array_items_missing", False)
        assert f"'{where}'" in problem.message
        told = schema_of(export([spec], format).tools[0])
        for key in where.split("."):
            told = told[int(key) if key.isdigit() else key]
        assert told["items"] == {}
    assert format_problems(spec, "anthropic") == format_problems(spec, "mcp") == ()


@pytest.mark.parametrize("part", [{"type": "array", "items": {}}, {"type": ["array"], "items": True}, {}, True])
def test_an_array_that_says_anything_at_all_is_fine(part) -> None:
    spec = with_schema({"properties": {"a": part}})
    assert all(format_problems(spec, format) == () for format in FORMATS)


@pytest.mark.parametrize(
    ("pattern", "looks_around"),
    [
        ("^(?=.*@).+$", True),
        ("^(?!x)", True),
        ("(?<=a)b", True),
        ("(?<!a)b", True),
        ("(?:a)(?P<n>b)(?<m>c)=!", False),
    ],
)
def test_a_pattern_with_lookaround_is_named_and_still_exported(pattern, looks_around) -> None:
    spec = with_schema({"properties": {"pattern": {"type": "string", "pattern": pattern}}})
    for format in FORMATS:
        exported = export([spec], format)
        assert len(exported.tools) == 1
        assert codes(exported.problems) == (["pattern_lookaround"] if looks_around and format in OPENAI else [])


@pytest.mark.parametrize("properties", [None, [], "a"])
def test_a_malformed_schema_is_reported_by_others_and_breaks_nothing_here(properties) -> None:
    spec = with_schema({"properties": properties, "$defs": 3, "items": 4})
    assert all(format_problems(spec, format) == () for format in FORMATS)


@pytest.mark.parametrize(
    ("format", "form"),
    [
        ("openai", {"type": "function", "name": "read", "parameters": {}}),
        ("openai", {"type": "function", "function": {"description": "nameless"}}),
        ("openai", {"type": "function", "function": {"name": "read", "input_schema": {}}}),
        ("openai", {"type": "function", "function": {"name": "read", "parameters": "object"}}),
        ("responses", {"type": "function", "name": "read", "parameters": {}}),
        ("responses", {"type": "function", "name": "read", "parameters": {}, "strict": "no"}),
        ("responses", {"type": "function", "function": {"name": "read"}}),
        ("responses", {"type": "custom", "name": "read", "format": {"type": "grammar", "definition": "a"}}),
        ("responses", {"type": "custom", "name": "read", "format": {"type": "text", "syntax": "lark"}}),
        ("anthropic", {"name": "read", "parameters": {"type": "object"}}),
        ("anthropic", {"name": "read", "input_schema": {"properties": {}}}),
        ("anthropic", {"name": "read", "input_schema": {"type": "object"}, "annotations": {}}),
        ("anthropic", {"type": "bash_20250124", "name": "shell"}),
        ("mcp", {"name": "read", "input_schema": {"type": "object"}}),
        ("mcp", {"name": "read", "inputSchema": {"properties": {}}}),
        ("mcp", {"name": "read", "inputSchema": {"type": "object"}, "strict": False}),
        ("mcp", {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"read_only": True}}),
    ],
)
def test_the_official_types_refuse_a_broken_form(official, format, form) -> None:
    with pytest.raises(NotTaken):
        official[format](form)


PROPERTY_NAMES = st.text("abcXYZ019_.-", min_size=1, max_size=64)
LEAVES = st.sampled_from([{}, {"type": "string", "default": "x"}, {"type": ["integer", "null"]}, {"enum": [1, "a"]}])
PROPERTIES = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda properties: {"type": "object", "properties": properties}, st.dictionaries(st.text(), inner))
        | st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1))
    ),
    max_leaves=6,
)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.text(),
        "properties": st.dictionaries(PROPERTY_NAMES, PROPERTIES, max_size=4),
        "type": st.just("object"),
        "required": st.lists(PROPERTY_NAMES, max_size=3),
        "additionalProperties": st.booleans() | PROPERTIES,
        "$defs": st.dictionaries(st.text(), PROPERTIES, max_size=2),
        "x-ours": st.integers(),
    },
)
SPECS = st.builds(
    ToolSpec,
    name=st.text("abcXYZ019_-", min_size=1, max_size=64),
    description=st.text(),
    input=st.builds(JsonInput, schema=SCHEMAS)
    | st.builds(TextInput, syntax=st.sampled_from(["lark", "regex", None]), grammar=st.none() | st.text()),
    hints=st.builds(Hints),
)


@settings(deadline=None)
@given(spec=SPECS)
def test_any_tool_with_a_valid_name_and_schema_is_accepted_by_all_official_types(official, spec) -> None:
    for format in FORMATS:
        exported = export([spec], format)
        assert not [problem for problem in exported.problems if problem.fatal]
        (form,) = exported.tools
        official[format](form)
        assert json.loads(json.dumps(form)) == form
        if isinstance(spec.input, JsonInput):
            kept = [(key, value) for key, value in schema_of(form).items() if key in spec.input.schema]
            assert kept == list(spec.input.schema.items())
