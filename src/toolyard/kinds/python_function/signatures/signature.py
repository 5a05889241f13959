"""A function as a tool's input: its parameters become a JSON Schema, and a call's arguments become its own."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import msgspec

from toolyard.core.problems import Problem
from toolyard.core.tool import JsonInput
from toolyard.kinds.python_function.signatures.constraints import constrained
from toolyard.kinds.python_function.signatures.docstring import read_docstring
from toolyard.kinds.python_function.signatures.json_types import TypeReader
from toolyard.kinds.python_function.signatures.values import JsonType, within
from toolyard.plugins.author_code.context import ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.python_function.signatures.docstring import Docstring


Kind = inspect._ParameterKind
PLAIN_TYPES: dict[str, Any] = {
    "str": str,
    "string": str,
    "int": int,
    "integer": int,
    "float": float,
    "number": float,
    "bool": bool,
    "boolean": bool,
    "list": list,
    "dict": dict,
    "list[str]": list[str],
    "list[int]": list[int],
}
"""The types that docstrings name."""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes."""

    description: str
    input: JsonInput
    context: str | None
    """The parameter that wants the call's context."""
    parameters: Mapping[str, JsonType]
    rest: JsonType | None = None
    """What `**rest` takes, if there is that."""
    positional: tuple[str, ...] = ()
    """Parameters that cannot be given by name."""
    fields: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Defaults that are none by themselves, but know one: pydantic's."""

    def convert(self, values: JsonObject) -> dict[str, Any]:
        """The function's arguments, in the types that it asks for; raises `Misfit`."""
        types = {name: self.parameters.get(name) or self.rest for name in values}
        return {
            name: within(name, found.convert, value) if (found := types[name]) else value
            for name, value in values.items()
        }

    def call(self, function: Callable[..., Any], arguments: Mapping[str, Any], context: ToolContext) -> Any:
        usual = [name for name in self.fields if name not in arguments]
        made = {name: self.fields[name].get_default(call_default_factory=True) for name in usual}
        arguments = {**arguments, **made}
        named = {name: value for name, value in arguments.items() if name not in self.positional}
        if self.context:
            named[self.context] = context
        return function(*(arguments[name] for name in self.positional if name in arguments), **named)


def read_signature(function: Callable[..., Any]) -> Signature | Problem:
    """What a function takes, by its annotations and its docstring."""
    try:
        written = written_function(function)
        hints = get_type_hints(written, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, ValueError, AttributeError, SyntaxError) as error:
        return Problem(
            code="plugin_signature",
            message=f"its annotations cannot be read: {one_line(error)}",
            hint="import at run time what annotations name, not only for type checkers",
        )
    if any(parameter.kind is Kind.VAR_POSITIONAL for parameter in parameters):
        message = "it takes *args, but arguments come by name"
        return Problem(code="plugin_signature", message=message, hint="take a list instead")
    context = next((p.name for p in parameters if wants_context(hints.get(p.name))), None)
    shown = [parameter for parameter in parameters if parameter.name != context]
    docstring = read_docstring(
        written.__doc__ or (None if isinstance(function, functools.partial) else function.__doc__)
    )
    reader = TypeReader()
    try:
        read = {parameter.name: read_parameter(parameter, hints, reader, docstring) for parameter in shown}
    except (TypeError, ValueError, NameError, NotImplementedError, RecursionError) as error:
        hint = "use str, int, float, bool, list, dict, Literal, a dataclass or a TypedDict"
        message = f"its parameters cannot be told in JSON: {one_line(error)}"
        return Problem(code="plugin_signature", message=message, hint=hint)
    rest = next((read.pop(parameter.name) for parameter in shown if parameter.kind is Kind.VAR_KEYWORD), None)
    named = [parameter for parameter in shown if parameter.kind is not Kind.VAR_KEYWORD]
    return Signature(
        description=docstring.description,
        input=JsonInput(schema=arguments_schema(read, named, rest, reader)),
        context=context,
        parameters=read,
        rest=rest,
        positional=tuple(p.name for p in named if p.kind is Kind.POSITIONAL_ONLY),
        fields={p.name: p.default for p in named if is_field(p.default) and not is_required(p)},
    )


def written_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """What has the annotations: the function of a partial, the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__name__") else type(function).__call__


def arguments_schema(
    read: Mapping[str, JsonType], parameters: list[inspect.Parameter], rest: JsonType | None, reader: TypeReader
) -> dict[str, Json]:
    """The schema of all arguments; it stands first that they are an object, and last what others refer to."""
    definitions = reader.definitions.schemas
    return {
        "type": "object",
        "properties": {name: each.schema for name, each in read.items()},
        "required": [parameter.name for parameter in parameters if is_required(parameter)],
        "additionalProperties": False if rest is None else rest.schema or True,
        **({"$defs": {name: definitions[name] for name in sorted(definitions)}} if definitions else {}),
    }


def wants_context(hint: Any) -> bool:
    """Whether a parameter is for the context, with or without `| None`."""
    return hint is ToolContext or ToolContext in get_args(hint)


def read_parameter(
    parameter: inspect.Parameter, hints: Mapping[str, Any], reader: TypeReader, docstring: Docstring
) -> JsonType:
    """The type of a parameter, with its description and its default."""
    hint, default = hints.get(parameter.name, told_type(docstring, parameter.name)), default_of(parameter)
    if default is None and hint is not Any:
        hint = hint | None
    found = reader.read(hint)
    if parameter.kind is Kind.VAR_KEYWORD:
        return found
    if is_field(parameter.default):
        found = constrained(found, [parameter.default])
    if (told := docstring.arguments.get(parameter.name)) and not describes(hint):
        found = constrained(found, [told])
    return found if default is dataclasses.MISSING else found.with_default(default)


def told_type(docstring: Docstring, name: str) -> Any:
    """The type that a docstring names, for a parameter without an annotation."""
    word, *others = (part.strip() for part in docstring.types.get(name, "").split(","))
    kind = PLAIN_TYPES.get(word, Any)
    return kind | None if "optional" in others and kind is not Any else kind


def describes(hint: Any) -> bool:
    """Whether an annotation says by itself what a parameter is."""
    return "description" in constrained(JsonType(schema={}, convert=str), annotations_of(hint)).schema


def annotations_of(hint: Any) -> tuple[Any, ...]:
    """What stands beside the type, also of one that may be null."""
    inner = next((part for part in (hint, *get_args(hint)) if type(part) is type(Annotated[int, 0])), None)
    return getattr(inner, "__metadata__", ())


def is_required(parameter: inspect.Parameter) -> bool:
    if is_field(parameter.default):
        return bool(parameter.default.is_required())
    return parameter.default is parameter.empty


def is_field(value: Any) -> bool:
    """Whether a default is none, but pydantic's way to say more of a parameter."""
    return type(value).__module__ == "pydantic.fields" and hasattr(value, "is_required")


def default_of(parameter: inspect.Parameter) -> Any:
    """The default; MISSING where there is none that is always the same."""
    default = parameter.default
    if is_field(default):
        fixed = not default.is_required() and default.default_factory is None
        return default.default if fixed else dataclasses.MISSING
    return dataclasses.MISSING if default is parameter.empty else default


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
