"""Tools in the forms that model APIs and MCP take, and what each form cannot carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from toolyard.core.regexes import late_pattern
from toolyard.core.schema_parts import parts
from toolyard.core.tool import JsonInput, TextInput
from toolyard.core.wire.wire_schemas import (
    allows_array,
    with_items,
    with_object_root,
    without_root_keywords,
    written_out,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Hints, Json, JsonObject, ToolSpec, WireFormat


FormatProblemCode = Literal[
    "name_empty", "name_too_long", "name_characters", "name_taken", "description_missing", "schema_not_object",
    "schema_root_keyword", "schema_incomplete", "property_name", "array_items_missing", "pattern_lookaround",
    "grammar_incomplete",
]  # fmt: skip


class FormatProblem(msgspec.Struct, frozen=True, kw_only=True):
    """What a format does not take of a tool; when it is fatal, the tool is left out."""

    tool: str
    format: WireFormat
    code: FormatProblemCode
    message: str
    hint: str
    fatal: bool


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that a format can carry, in order, and all that stood in the way."""

    tools: tuple[JsonObject, ...]
    problems: tuple[FormatProblem, ...]


def export(specs: Iterable[ToolSpec], format: WireFormat) -> Exported:
    """Put tools into a format, without those that would make the receiver refuse them all."""
    tools: list[JsonObject] = []
    problems: list[FormatProblem] = []
    taken: set[str] = set()
    for spec in specs:
        form = export_one(spec, format)
        names = {spec.name, wire_name(form, otherwise=spec.name)}
        found = [*format_problems(spec, format), *(_taken(spec, format, name) for name in sorted(names & taken))]
        if not any(problem.fatal for problem in found):
            tools.append(form)
        problems += found
        taken |= names
    return Exported(tools=tuple(tools), problems=tuple(problems))


def export_one(spec: ToolSpec, format: WireFormat) -> JsonObject:
    """Put one tool into a format, whether or not the format can carry it."""
    if format in spec.native:
        return spec.native[format]
    match format:
        case "openai":
            return {"type": "function", "function": {**_named(spec), "parameters": _schema(spec, format)}}
        case "responses":
            return _responses_form(spec)
        case "anthropic":
            return {**_named(spec), "input_schema": _schema(spec, format)}
        case "mcp":
            return {**_named(spec), "inputSchema": _schema(spec, format), **_annotations(spec.hints)}


def format_problems(spec: ToolSpec, format: WireFormat) -> tuple[FormatProblem, ...]:
    """Find what a format does not take of a tool; a native form is its author's own business."""
    if format in spec.native:
        return ()
    return (*_name_problems(spec, format), *_description_problems(spec, format), *_input_problems(spec, format))


class _Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the receiver of a format was seen to refuse, or says that it does."""

    receiver: str
    name_length: int
    name_characters: str
    name_enforced: bool = True
    root_keywords: tuple[str, ...] = ()
    property_name: str | None = None
    openai_schema: bool = False
    """Objects need `properties`, arrays need `items`, and patterns are of a dialect without lookaround."""


_LOOKAROUND = late_pattern(r"\(\?<?[=!]")

_OPENAI_CHAT = _Rules(
    receiver="OpenAI Chat",
    name_length=64,
    name_characters="A-Za-z0-9_-",
    root_keywords=("oneOf", "anyOf", "allOf", "enum", "const", "not"),
    openai_schema=True,
)

_RULES: Mapping[WireFormat, _Rules] = {
    "openai": _OPENAI_CHAT,
    "responses": replace(_OPENAI_CHAT, receiver="OpenAI Responses", name_length=128),
    "anthropic": _Rules(
        receiver="Anthropic",
        name_length=128,
        name_characters="A-Za-z0-9_-",
        root_keywords=("oneOf", "anyOf", "allOf"),
        property_name="[A-Za-z0-9_.-]{1,64}",
    ),
    # MCP only advises on names: its own server takes others with a warning.
    "mcp": _Rules(receiver="MCP", name_length=128, name_characters="A-Za-z0-9_.-", name_enforced=False),
}


def _named(spec: ToolSpec) -> dict[str, Json]:
    """Name and description; no format asks for a description, and an empty one says nothing."""
    return {"name": spec.name, "description": spec.description} if spec.description.strip() else {"name": spec.name}


def _responses_form(spec: ToolSpec) -> JsonObject:
    """In this format, free text is a tool type of its own."""
    match spec.input:
        case TextInput():
            return {"type": "custom", **_named(spec), "format": _text_format(spec.input)}
        case JsonInput():
            # Strict would require every property of every call, which the tool's own schema does not.
            return {"type": "function", **_named(spec), "parameters": _schema(spec, "responses"), "strict": False}


def _text_format(text: TextInput) -> JsonObject:
    if text.syntax and text.grammar:
        return {"type": "grammar", "syntax": text.syntax, "definition": text.grammar}
    return {"type": "text"}


def _schema(spec: ToolSpec, format: WireFormat) -> JsonObject:
    """The input as a schema with an object at its root, which all formats require."""
    match spec.input:
        case TextInput():
            return _text_schema(spec.input)
        case JsonInput(schema=given, verbatim=True) if _RULES[format].openai_schema:
            return _taken_schema(given, format)
        case JsonInput(schema=given):
            schema = dict(given) if "type" in given else {"type": "object", **given}
            if _RULES[format].openai_schema:
                schema.setdefault("properties", {})
            return _taken_schema(schema, format)


def _taken_schema(schema: JsonObject, format: WireFormat) -> JsonObject:
    """A schema without what the receiver would refuse; one that it takes as it is."""
    rules = _RULES[format]
    taken = without_root_keywords(with_object_root(written_out(schema)), rules.root_keywords)
    return with_items(taken) if rules.openai_schema and any(_bare_arrays(taken)) else taken


def _text_schema(text: TextInput) -> JsonObject:
    about = "The whole input, as plain text."
    if text.syntax and text.grammar:
        about = f"The whole input, as text that fits this {text.syntax} grammar:\n{text.grammar}"
    return {
        "type": "object",
        "properties": {"input": {"type": "string", "description": about}},
        "required": ["input"],
        "additionalProperties": False,
    }


def _annotations(hints: Hints) -> JsonObject:
    """The hints that were given; MCP reads silence as "changes things, perhaps for good", a denial as a promise."""
    given = {"readOnlyHint": hints.read_only, "destructiveHint": hints.destructive}
    claims = {hint: True for hint, claimed in given.items() if claimed}
    return {"annotations": claims} if claims else {}


def wire_name(form: JsonObject, *, otherwise: str) -> str:
    """The name by which a model calls a form; some native forms have none."""
    # Chat keeps everything under a key that repeats the type: {"type": "function", "function": {...}}.
    named = form.get(str(form.get("type")), form)
    name = named.get("name") if isinstance(named, Mapping) else None
    return name if isinstance(name, str) else otherwise


def _taken(spec: ToolSpec, format: WireFormat, name: str) -> FormatProblem:
    message = f"an earlier tool is already called '{name}'"
    return _problem(spec, format, "name_taken", message, hint="rename or disable one of the two")


def _name_problems(spec: ToolSpec, format: WireFormat) -> Iterator[FormatProblem]:
    rules = _RULES[format]
    if not spec.name:
        yield _problem(spec, format, "name_empty", "the tool has no name", hint="give it one, a model calls it by name")
        return
    strange = re.findall(f"[^{rules.name_characters}]", spec.name)
    fitting = re.sub(f"[^{rules.name_characters}]", "_", spec.name)[: rules.name_length]
    hint = f"rename it, for example to '{fitting}'"
    if len(spec.name) > rules.name_length:
        message = f"{rules.receiver} names have at most {rules.name_length} characters, this one has {len(spec.name)}"
        yield _problem(spec, format, "name_too_long", message, hint=hint, fatal=rules.name_enforced)
    if strange:
        message = f"{rules.receiver} names do not contain {_listed(strange)}"
        yield _problem(spec, format, "name_characters", message, hint=hint, fatal=rules.name_enforced)


def _description_problems(spec: ToolSpec, format: WireFormat) -> Iterator[FormatProblem]:
    if not spec.description.strip():
        message = "the tool has no description, so a model can only guess when to call it"
        hint = "say in a sentence or two what it does and when to use it"
        yield _problem(spec, format, "description_missing", message, hint=hint, fatal=False)


def _input_problems(spec: ToolSpec, format: WireFormat) -> Iterator[FormatProblem]:
    match spec.input:
        case JsonInput(schema=schema):
            yield from _schema_problems(spec, format, schema)
        case TextInput(syntax=syntax, grammar=grammar):
            if bool(syntax) != bool(grammar):
                message = "a grammar needs both a syntax and a definition; the input is exported as plain text"
                hint = "give both or neither"
                yield _problem(spec, format, "grammar_incomplete", message, hint=hint, fatal=False)


def _schema_problems(spec: ToolSpec, format: WireFormat, schema: JsonObject) -> Iterator[FormatProblem]:
    rules = _RULES[format]
    root = with_object_root(schema).get("type", "object")
    if root != "object":
        message = f"the input schema is of type {root!r} at its root, {rules.receiver} requires 'object'"
        hint = "make the value a property of an object"
        yield _problem(spec, format, "schema_not_object", message, hint=hint)
        return
    if keywords := [keyword for keyword in rules.root_keywords if keyword in schema]:
        message = f"{rules.receiver} does not allow {_listed(keywords)} at the root of a schema; it is told in words"
        hint = "move it into a property, or list all properties at the root and let the tool check the rest"
        yield _problem(spec, format, "schema_root_keyword", message, hint=hint, fatal=False)
    if rules.property_name:
        yield from _property_problems(spec, format, schema, pattern=rules.property_name)
    if rules.openai_schema:
        yield from _openai_problems(spec, format, schema)
        yield from _verbatim_problems(spec, format, schema)


def _property_problems(
    spec: ToolSpec, format: WireFormat, schema: JsonObject, *, pattern: str
) -> Iterator[FormatProblem]:
    """Only the names at the root are looked at, as the receiver does."""
    properties = schema.get("properties")
    names = properties if isinstance(properties, Mapping) else ()
    if strange := [name for name in names if not re.fullmatch(pattern, name)]:
        message = f"{_RULES[format].receiver} does not allow properties called {_listed(strange)}"
        hint = "rename to at most 64 letters, digits, '_', '-' and '.'"
        yield _problem(spec, format, "property_name", message, hint=hint)


def _openai_problems(spec: ToolSpec, format: WireFormat, schema: JsonObject) -> Iterator[FormatProblem]:
    receiver = _RULES[format].receiver
    if bare := list(_bare_arrays(schema)):
        message = f"{receiver} requires 'items' of every array; at {_listed(bare)} it is told that they may be anything"
        hint = 'say what the array holds, for example "items": {"type": "string"}'
        yield _problem(spec, format, "array_items_missing", message, hint=hint, fatal=False)
    if looking := [_place(path) for path, part in parts(schema) if _LOOKAROUND.search(str(part.get("pattern", "")))]:
        # Not every model refuses them, and the rest of the schema is sound.
        message = f"many {receiver} models refuse lookaround in a pattern, as in {_listed(looking)}"
        hint = "write the pattern without (?=, (?!, (?<= and (?<!, or let the tool check the value"
        yield _problem(spec, format, "pattern_lookaround", message, hint=hint, fatal=False)


def _verbatim_problems(spec: ToolSpec, format: WireFormat, schema: JsonObject) -> Iterator[FormatProblem]:
    """What is missing in a schema that must be passed on as it is; to any other it would be added."""
    missing = [key for key in ("type", "properties") if key not in schema]
    if missing and isinstance(spec.input, JsonInput) and spec.input.verbatim:
        message = f"{_RULES[format].receiver} may refuse an input schema without {_listed(missing)}"
        hint = 'begin it with {"type": "object", "properties": {}}'
        yield _problem(spec, format, "schema_incomplete", message, hint=hint, fatal=False)


def _bare_arrays(schema: JsonObject) -> Iterator[str]:
    return (_place(path) for path, part in parts(schema) if allows_array(part) and "items" not in part)


def _place(path: Pointer) -> str:
    return ".".join(map(str, path))


def _listed(values: Iterable[str]) -> str:
    return ", ".join(repr(value) for value in dict.fromkeys(values))


def _problem(
    spec: ToolSpec, format: WireFormat, code: FormatProblemCode, message: str, *, hint: str, fatal: bool = True
) -> FormatProblem:
    return FormatProblem(tool=spec.name, format=format, code=code, message=message, hint=hint, fatal=fatal)
