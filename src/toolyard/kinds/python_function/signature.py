"""A typed function as a tool's input: a JSON Schema from its annotations, and its arguments from JSON."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from toolyard.core.problems import Problem
from toolyard.core.tool import JsonInput
from toolyard.plugins.author_code.context import ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolyard.core.tool import Json, JsonObject


Kind = inspect._ParameterKind


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes."""

    description: str
    input: JsonInput
    context: str | None
    """The parameter that wants the call's context."""
    arguments: type[msgspec.Struct]
    positional: tuple[str, ...] = ()
    """Parameters that cannot be given by name."""

    def convert(self, values: JsonObject) -> dict[str, Any]:
        """The function's arguments, in the types that it asks for; raises `msgspec.ValidationError`."""
        known = {name: value for name, value in values.items() if name in self.arguments.__struct_fields__}
        given = msgspec.convert(known, self.arguments, dec_hook=decode_custom)
        converted = {name: value for name in known if (value := getattr(given, name)) is not msgspec.UNSET}
        return {**values, **converted}

    def call(self, function: Callable[..., Any], arguments: Mapping[str, Any], context: ToolContext) -> Any:
        named = {name: value for name, value in arguments.items() if name not in self.positional}
        if self.context:
            named[self.context] = context
        return function(*(arguments[name] for name in self.positional if name in arguments), **named)


def read_signature(function: Callable[..., Any]) -> Signature | Problem:
    """What a function takes, by its annotations and its docstring."""
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError, AttributeError) as error:
        return Problem(
            code="plugin_signature",
            message=f"its annotations cannot be read: {error}",
            hint="import at run time what annotations name, not only for type checkers",
        )
    if any(parameter.kind is Kind.VAR_POSITIONAL for parameter in parameters):
        message = "it takes *args, but arguments come by name"
        return Problem(code="plugin_signature", message=message, hint="take a list instead")
    context = next((p.name for p in parameters if wants_context(hints.get(p.name))), None)
    shown = [p for p in parameters if p.name != context and p.kind is not Kind.VAR_KEYWORD]
    docstring = read_docstring(function.__doc__)
    fields = [field_of(parameter, hints.get(parameter.name, Any), docstring) for parameter in shown]
    open_ended = any(parameter.kind is Kind.VAR_KEYWORD for parameter in parameters)
    try:
        struct = msgspec.defstruct(function.__name__, fields, forbid_unknown_fields=not open_ended, kw_only=True)
        schema = schema_of(struct, open_ended=open_ended)
        plain = [(name, without_patterns(hint), *default) for name, hint, *default in fields]
        converted = msgspec.defstruct(function.__name__, plain, forbid_unknown_fields=not open_ended, kw_only=True)
    except (TypeError, ValueError, NotImplementedError) as error:
        hint = "use str, int, float, bool, list, dict, Literal, a dataclass or a TypedDict"
        return Problem(
            code="plugin_signature", message=f"its parameters have no JSON form: {one_line(error)}", hint=hint
        )
    add_defaults(schema, shown, struct)
    return Signature(
        description=docstring.description,
        input=JsonInput(schema=schema),
        context=context,
        arguments=converted,
        positional=tuple(p.name for p in shown if p.kind is Kind.POSITIONAL_ONLY),
    )


def wants_context(hint: Any) -> bool:
    """Whether a parameter is for the context, with or without `| None`."""
    return hint is ToolContext or ToolContext in get_args(hint)


def field_of(parameter: inspect.Parameter, hint: Any, docstring: Docstring) -> tuple[Any, ...]:
    """A parameter as the field of a struct; one with a default need not be given."""
    if parameter.default is None and hint is not Any:
        hint = hint | None
    described = describe(hint, docstring.arguments.get(parameter.name))
    if parameter.default is parameter.empty:
        return (parameter.name, described)
    return (parameter.name, described | msgspec.UnsetType if hint is not Any else described, msgspec.UNSET)


def describe(hint: Any, text: str | None) -> Any:
    """A type with its description: the annotation's own, as a string or `Doc`, or else the docstring's."""
    if get_origin(hint) is not Annotated:
        return Annotated[hint, msgspec.Meta(description=text)] if text else hint
    inner, *extras = get_args(hint)
    metas = [extra for extra in extras if isinstance(extra, msgspec.Meta)]
    own = next((doc for extra in extras if (doc := documentation(extra))), None)
    if (own or text) and not any(meta.description for meta in metas):
        metas.append(msgspec.Meta(description=own or text))
    return Annotated[(inner, *metas)] if metas else inner


def without_patterns(hint: Any) -> Any:
    """A type without its patterns: arguments were checked by them already, and `re` could take for ever to do so again.

    Those inside classes of the author's own stay.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        metas = [unpatterned(part) if isinstance(part, msgspec.Meta) else part for part in parts[1:]]
        return Annotated[(without_patterns(parts[0]), *metas)]
    if origin in (Union, UnionType):
        return Union[tuple(map(without_patterns, parts))]  # noqa: UP007 - of a number of types that is not known
    if origin in (list, set, frozenset, tuple, dict):
        return origin[tuple(map(without_patterns, parts))]
    return hint


def unpatterned(meta: msgspec.Meta) -> msgspec.Meta:
    if meta.pattern is None:
        return meta
    kept = {name: value for name in META_FIELDS if (value := getattr(meta, name)) is not None}
    return msgspec.Meta(**kept)


META_FIELDS = ("min_length", "max_length", "title", "description", "examples", "extra_json_schema", "extra")
"""What a type can have beside a pattern."""


def documentation(extra: Any) -> str | None:
    text = extra if isinstance(extra, str) else getattr(extra, "documentation", None)
    return text if isinstance(text, str) else None


def schema_of(struct: type[msgspec.Struct], *, open_ended: bool) -> dict[str, Json]:
    """The schema of the arguments, with everything in its place: not every model follows references."""
    (root,), parts = msgspec.json.schema_components([struct], schema_hook=schema_custom)
    schema: dict[str, Json] = inlined(root, parts, ())
    left = {name for name in parts if f'"#/$defs/{name}"' in msgspec.json.encode(schema).decode()}
    if left:  # types that hold themselves
        schema["$defs"] = {name: inlined(parts[name], parts, tuple(left)) for name in sorted(left)}
    schema.pop("title", None)
    schema.pop("description", None)
    return {**schema, "additionalProperties": open_ended}


def inlined(schema: Json, parts: Mapping[str, Json], within: tuple[str, ...]) -> Json:
    """A schema with the parts that it refers to put in, but for those that it is inside of."""
    match schema:
        case {"$ref": str(reference), **rest}:
            name = reference.removeprefix("#/$defs/")
            if name in within:
                return schema
            part: dict[str, Json] = inlined(parts[name], parts, (*within, name))
            return {**{key: value for key, value in part.items() if key != "title"}, **rest}
        case dict():
            typed = {"type": "string"} if is_text_choice(schema) else {}
            return typed | {key: inlined(value, parts, within) for key, value in schema.items()}
        case list():
            return [inlined(item, parts, within) for item in schema]
    return schema


def is_text_choice(schema: dict[str, Json]) -> bool:
    """Some APIs want a type beside the choices."""
    choices = schema.get("enum")
    return "type" not in schema and isinstance(choices, list) and all(isinstance(choice, str) for choice in choices)


def add_defaults(schema: dict[str, Json], parameters: list[inspect.Parameter], struct: type[msgspec.Struct]) -> None:
    """Say which defaults there are, as far as JSON can and they fit their own types."""
    for parameter in parameters:
        if parameter.default is parameter.empty:
            continue
        try:
            default = msgspec.to_builtins(parameter.default, enc_hook=encode_custom)
            hint = get_type_hints(struct, include_extras=True)[parameter.name]
            msgspec.convert(default, hint, dec_hook=decode_custom)
        except (TypeError, ValueError, NotImplementedError):
            continue  # the function knows it by itself
        schema["properties"][parameter.name]["default"] = default


def schema_custom(kind: type) -> dict[str, Json]:
    """Types beyond JSON that tools ask for: paths, and models that bring a schema of their own."""
    if issubclass(kind, Path):
        return {"type": "string"}
    if hasattr(kind, "model_json_schema"):
        schema: dict[str, Json] = kind.model_json_schema()
        return schema
    raise NotImplementedError(f"{kind.__name__} has no JSON form")


def decode_custom(kind: type, value: Json) -> Any:
    if issubclass(kind, Path) and isinstance(value, str):
        return kind(value)
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    raise NotImplementedError(kind.__name__)


def encode_custom(value: Any) -> Json:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value).__name__)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


ARGUMENT_TITLES = frozenset({"args", "arguments", "parameters", "params"})
TITLES = ARGUMENT_TITLES | {
    *("return", "returns", "raises", "yield", "yields", "example", "examples", "note", "notes", "see also"),
}
FIELD = re.compile(r":param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
OTHER_FIELD = re.compile(r":(?:returns?|rtype|raises?|type|yields?)\b[^:]*:")
ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
NUMPY_ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")


class Docstring(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a docstring that a model should read."""

    description: str = ""
    arguments: Mapping[str, str] = msgspec.field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring written in any of the usual three manners: `Args:`, `:param name:` or underlined titles."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    arguments: dict[str, str] = {}
    for title, body in sections(lines):
        if title is None:
            plain, fields = split_fields(body)
            description += plain
            arguments |= fields
        elif title in ARGUMENT_TITLES:
            arguments |= dict(listed_arguments(body))
    return Docstring(description="\n".join(description).strip(), arguments=arguments)


def sections(lines: Sequence[str]) -> Iterator[tuple[str | None, list[str]]]:
    """The text before the first title, then each titled part."""
    title: str | None = None
    body: list[str] = []
    position = 0
    while position < len(lines):
        found, length = title_at(lines, position)
        if found:
            yield title, body
            title, body = found, []
        else:
            body.append(lines[position])
        position += length
    yield title, body


def title_at(lines: Sequence[str], position: int) -> tuple[str | None, int]:
    """The title that begins at a line, if one does, and how many lines it takes."""
    line = lines[position]
    word = line.rstrip(": ").lower()
    if line != line.lstrip() or word not in TITLES:
        return None, 1
    if line.rstrip().endswith(":"):
        return word, 1
    below = lines[position + 1].strip() if position + 1 < len(lines) else ""
    return (word, 2) if len(below) >= 3 and set(below) == {"-"} else (None, 1)


def split_fields(body: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Take the `:param name: text` lines out of a text."""
    plain: list[str] = []
    fields: dict[str, str] = {}
    name: str | None = None
    inside = False
    for line in body:
        if match := FIELD.match(line.strip()):
            name, inside = match[1], True
            fields[name] = match[2].strip()
        elif OTHER_FIELD.match(line.strip()):
            name, inside = None, True
        elif inside and line.strip():
            if name:
                fields[name] = f"{fields[name]} {line.strip()}".strip()
        else:
            inside = False
            plain.append(line)
    return plain, fields


def listed_arguments(body: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The arguments below a title: `name: text` with deeper lines that go on, or `name : type` with the text below."""
    margin = min((indent(line) for line in body if line.strip()), default=0)
    name, words = "", [""]
    for line in (line for line in body if line.strip()):
        match = ARGUMENT.fullmatch(line.strip()) if margin else NUMPY_ARGUMENT.fullmatch(line.strip())
        if indent(line) == margin and match:
            if name:
                yield name, " ".join(words).strip()
            name, words = match[1], [match[2] if margin else ""]
        else:
            words.append(line.strip())
    if name:
        yield name, " ".join(words).strip()


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())
