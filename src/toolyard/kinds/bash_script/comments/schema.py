"""The JSON Schema of a tool that declares itself in comments."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from toolyard.core.tool import Json
    from toolyard.kinds.bash_script.comments.script import CommentTool
    from toolyard.kinds.bash_script.comments.tags import CommentParameter


ValueType = Literal["string", "integer", "number"]
NOTATION_TYPES: dict[str, ValueType] = {"INT": "integer", "NUM": "number"}


def parameters_schema(tool: CommentTool) -> dict[str, Json]:
    properties = {parameter.name: property_schema(parameter) for parameter in tool.parameters}
    # What may come from the environment, a key perhaps, is not the model's to invent.
    required = [parameter.name for parameter in tool.parameters if parameter.required and parameter.env is None]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def property_schema(parameter: CommentParameter) -> dict[str, Json]:
    schema = flag_schema(parameter) if parameter.form == "flag" else value_schema(parameter)
    return {**schema, "description": parameter.description} if parameter.description else schema


def flag_schema(parameter: CommentParameter) -> dict[str, Json]:
    """A boolean, or a count when the flag may stand more than once."""
    return {"type": "integer", "minimum": 0, "maximum": 99} if parameter.multiple else {"type": "boolean"}


def value_schema(parameter: CommentParameter) -> dict[str, Json]:
    if parameter.prefixed:
        # On a command line the first `=` ends a name.
        return {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^[^=]+$"}}
    kind = value_type(parameter)
    schema: dict[str, Json] = {"type": kind}
    if parameter.value.choices:
        schema["enum"] = [typed(choice, kind) for choice in parameter.value.choices]
    if parameter.is_list:
        schema = {"type": "array", "items": schema, **item_counts(parameter)}
    default = typed(parameter.value.default, kind)
    # A default that a caller fills in would hide what the environment has to say.
    if default is not None and parameter.env is None:
        schema["default"] = [default] if parameter.is_list else default
    return schema


def value_type(parameter: CommentParameter) -> ValueType:
    """The type that the notations name, unless a choice would not come back from it as it was written."""
    kinds = {NOTATION_TYPES.get(notation.rstrip("*+?").upper(), "string") for notation in parameter.notations}
    kind: ValueType = kinds.pop() if len(kinds) == 1 else "string"
    exact = all(value_text(typed(choice, kind)) == choice for choice in parameter.value.choices)
    return kind if exact else "string"


def typed(word: str | None, kind: ValueType) -> Json:
    """A word of the comments as a value of a type; None when it is none."""
    if word is None or kind == "string":
        return word
    if re.fullmatch(r"[+-]?\d+", word, re.ASCII):
        return int(word)
    is_number = re.fullmatch(r"[+-]?(?:\d+\.\d*|\.?\d+)(?:[eE][+-]?\d+)?", word, re.ASCII)
    return float(word) if is_number and kind == "number" else None


def value_text(value: Json) -> str:
    """A JSON value as the script reads it: a string as it is, a whole number without a fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def item_counts(parameter: CommentParameter) -> dict[str, Json]:
    """How many items the modifier or the notations ask for."""
    if parameter.multiple or parameter.takes_rest:
        return {"minItems": 1} if parameter.required else {}
    most, suffix = len(parameter.notations), parameter.notations[-1][-1:]
    least = most - 1 if suffix in ("*", "?") else most
    return {"minItems": least} if suffix in ("*", "+") else {"minItems": least, "maxItems": most}
