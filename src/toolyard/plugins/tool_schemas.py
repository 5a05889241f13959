"""The tools that a plugin says it has, in the forms in which authors write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.core.argument_schema import schema_fault
from toolyard.core.tool import JsonInput, TextInput, ToolSpec

if TYPE_CHECKING:
    from toolyard.core.tool import Json, JsonObject

__all__ = ["SchemaMistake", "read_tool_schema"]

EMPTY: JsonObject = {"type": "object", "properties": {}}


class SchemaMistake(str):
    """What is wrong with a schema, in words."""


def read_tool_schema(schema: Any, timeout: float) -> ToolSpec | SchemaMistake:
    """One tool: OpenAI's form for Chat or Responses, Anthropic's, a `custom` one for free text, or a `ToolSpec`."""
    match schema:
        case ToolSpec():
            return schema
        case {"type": "function", "function": dict(function)}:
            return function_spec(function, function.get("parameters"), timeout)
        case {"type": "custom", "custom": dict(custom)}:
            return text_spec(custom, timeout)
        case {"type": "custom"}:
            return text_spec(schema, timeout)
        case {"name": _, "input_schema": parameters} | {"type": "function", "name": _, "parameters": parameters}:
            return function_spec(schema, parameters, timeout)
        case {"type": "function", "name": _}:
            return function_spec(schema, None, timeout)
    return SchemaMistake('it is neither {"type": "function", …} nor {"type": "custom", …}')


def function_spec(function: dict[str, Json], parameters: Json, timeout: float) -> ToolSpec | SchemaMistake:
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return SchemaMistake("it has no name")
    if parameters is None:
        parameters = EMPTY
    if fault := schema_fault(parameters):
        return SchemaMistake(f"the parameters of '{name}' are no JSON Schema: {fault}")
    return ToolSpec(
        name=name,
        description=str(function.get("description") or ""),
        input=JsonInput(schema=parameters),
        timeout=timeout,
    )


def text_spec(custom: dict[str, Json], timeout: float) -> ToolSpec | SchemaMistake:
    name = custom.get("name")
    if not isinstance(name, str) or not name:
        return SchemaMistake("it has no name")
    form = custom.get("format") or {}
    grammar = form.get("grammar", form) if isinstance(form, dict) else {}
    syntax, definition = grammar.get("syntax"), grammar.get("definition")
    return ToolSpec(
        name=name,
        description=str(custom.get("description") or ""),
        input=TextInput(
            syntax=syntax if syntax in ("lark", "regex") else None,
            grammar=definition if isinstance(definition, str) else None,
        ),
        timeout=timeout,
    )
