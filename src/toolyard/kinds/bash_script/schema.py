"""What a bash tool file says of itself: the JSON object that its `schema` subcommand prints."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from toolyard.core.arguments.faults import kind_of
from toolyard.core.arguments.schema import schema_fault
from toolyard.core.json_values import refuse_constant
from toolyard.core.tool import Json  # noqa: TC001 - msgspec reads the annotations when the program runs

if TYPE_CHECKING:
    from collections.abc import Iterator


ArgsMode = Literal["flags", "positional", "json"]
SchemaFaultCode = Literal[
    "bash_schema_exit_status",
    "bash_schema_timeout",
    "bash_schema_too_large",
    "bash_schema_not_json",
    "bash_schema_not_object",
    "bash_schema_missing_field",
    "bash_schema_args_mode",
    "bash_schema_tool_count",
    "bash_schema_tool_type",
    "bash_schema_name_mismatch",
    "bash_schema_positional_missing",
    "bash_schema_positional_unknown",
    "bash_schema_config_keys",
    "bash_schema_parameters",
    "bash_schema_comments",
]


FUNCTION = ("tools", 0, "function")


class SchemaFault(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a tool file breaks its contract."""

    code: SchemaFaultCode
    message: str
    hint: str
    pointer: tuple[str | int, ...] | None = None
    """Which value of the schema object it is about: keys and indices from its root."""
    printed: str = ""
    """A line of the output that shows the fault, and may stand in the file."""
    line: int | None = None
    """On which line of the file it is, where that is known."""


class Positional(msgspec.Struct, frozen=True, kw_only=True):
    """One place on the command line; `default` is unset when there is none."""

    name: str
    required: bool = False
    default: Json = msgspec.UNSET


class BashSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A valid schema; `args_mode` is `comments` when the file declares itself in its comments."""

    id: str
    version: str
    args_mode: Literal["flags", "positional", "json", "comments"]
    parameters: dict[str, Json]
    description: str = ""
    positional: list[Positional] = []
    config_keys: list[str] = []
    function: str = ""
    """Of a file with several commands, the one that is this tool."""

    def defaults(self) -> dict[str, Json]:
        """Defaults that stand in `positional`; those in `parameters` are found there."""
        return {place.name: place.default for place in self.positional if place.default is not msgspec.UNSET}


class BashSchemas(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one file: one, or one for each of the commands that its comments declare."""

    tools: list[BashSchema]


def parse_schema(text: str) -> BashSchema | tuple[SchemaFault, ...]:
    """Check what `schema` printed; every fault at once."""
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        return (not_json(text, error),)
    if not isinstance(value, dict):
        message = f"`schema` printed {kind_of(value)}, not an object"
        hint = 'print one object: {"id": …, "version": …, "args_mode": …, "tools": […]}'
        return (SchemaFault(code="bash_schema_not_object", message=message, hint=hint),)
    return tuple(schema_faults(value)) or build_schema(value)


def not_json(text: str, error: Exception) -> SchemaFault:
    """Not JSON, with the place in the output that shows it."""
    printed = ""
    if not text.strip():
        message = "`schema` printed nothing"
    elif isinstance(error, json.JSONDecodeError):
        message = f"`schema` did not print JSON: {error.msg} at line {error.lineno} column {error.colno} of its output"
        printed = text.split("\n")[error.lineno - 1].strip()
    else:
        message = f"`schema` did not print JSON: {error}"
    hint = "run it by hand: bash FILE schema | python3 -m json.tool"
    return SchemaFault(code="bash_schema_not_json", message=message, hint=hint, printed=printed)


def schema_faults(value: dict[str, Json]) -> Iterator[SchemaFault]:
    yield from field_faults(value)
    yield from tool_faults(value)
    yield from positional_faults(value)
    keys = value.get("config_keys", [])
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        hint = 'for example "config_keys": ["smtp_user"]'
        yield fault("bash_schema_config_keys", "'config_keys' must be a list of strings", hint, "config_keys")


def fault(code: SchemaFaultCode, message: str, hint: str, *pointer: str | int) -> SchemaFault:
    return SchemaFault(code=code, message=message, hint=hint, pointer=pointer)


def field_faults(value: dict[str, Json]) -> Iterator[SchemaFault]:
    for field in ("id", "version", "args_mode", "tools"):
        if field not in value:
            yield fault("bash_schema_missing_field", f"'{field}' is missing", f'add "{field}" to the schema object')
    for field, example in (("id", "my_tool"), ("version", "0.1.0")):
        if field in value and (not isinstance(value[field], str) or not value[field]):
            message, hint = f"'{field}' must be a non-empty string", f'for example "{field}": "{example}"'
            yield fault("bash_schema_missing_field", message, hint, field)
    mode = value.get("args_mode")
    if "args_mode" in value and mode not in get_args(ArgsMode):
        message = f"'args_mode' is {json.dumps(mode)}; it must be flags, positional or json"
        hint = '"flags" suits most tools, "json" takes any arguments'
        yield fault("bash_schema_args_mode", message, hint, "args_mode")


def tool_faults(value: dict[str, Json]) -> Iterator[SchemaFault]:
    if "tools" not in value:
        return
    tools = value["tools"]
    if not isinstance(tools, list) or len(tools) != 1:
        count = f"{len(tools)} entries" if isinstance(tools, list) else kind_of(tools)
        hint = "one file is one tool: put every further tool in a file of its own"
        yield fault("bash_schema_tool_count", f"'tools' has {count}; it must have exactly one", hint, "tools")
        return
    function = tools[0].get("function") if isinstance(tools[0], dict) else None
    if not isinstance(function, dict) or tools[0].get("type") != "function":
        message = "'tools[0]' must have type 'function' and an object 'function'"
        hint = '{"type": "function", "function": {"name": …, "parameters": …}}'
        yield fault("bash_schema_tool_type", message, hint, "tools", 0)
        return
    yield from function_faults(value, function)


def function_faults(value: dict[str, Json], function: dict[str, Json]) -> Iterator[SchemaFault]:
    if function.get("name") != value.get("id") and "id" in value:
        message = f"'id' is {json.dumps(value['id'])} but the function's name is {json.dumps(function.get('name'))}"
        yield fault("bash_schema_name_mismatch", message, "give both the same name", "id")
    if not isinstance(function.get("description", ""), str):
        hint = "say in a sentence what the tool does"
        yield fault("bash_schema_tool_type", "'description' must be a string", hint, *FUNCTION, "description")
    if reason := schema_fault(function.get("parameters")):
        hint, place = 'start from {"type": "object", "properties": {}}', (*FUNCTION, "parameters", *path_in(reason))
        yield fault("bash_schema_parameters", f"'parameters' is not a JSON Schema: {reason}", hint, *place)


def path_in(reason: str) -> tuple[str | int, ...]:
    """The path at the beginning of a reason such as `properties.name.type: expected …`."""
    found = re.match(r"([\w$.\[\]-]+): ", reason)
    steps = re.findall(r"\[(\d+)\]|([\w$-]+)", found[1]) if found else ()
    return tuple(int(index) if index else name for index, name in steps)


def positional_faults(value: dict[str, Json]) -> Iterator[SchemaFault]:
    if value.get("args_mode") != "positional":
        return
    places = value.get("positional")
    if not isinstance(places, list) or not all(is_place(place) for place in places):
        message = "positional mode needs 'positional', a list of objects with a 'name'"
        hint = 'for example "positional": [{"name": "path", "required": true}]'
        where = "positional" if "positional" in value else "args_mode"
        yield fault("bash_schema_positional_missing", message, hint, where)
        return
    known = property_names(value)
    for index, place in enumerate(places):
        if known is not None and place["name"] not in known:
            message = f"'positional' names '{place['name']}', which is no property of 'parameters'"
            hint = f"known properties: {', '.join(known) or 'none'}"
            yield fault("bash_schema_positional_unknown", message, hint, "positional", index)


def is_place(place: Json) -> bool:
    return (
        isinstance(place, dict)
        and isinstance(place.get("name"), str)
        and isinstance(place.get("required", False), bool)
    )


def property_names(value: dict[str, Json]) -> list[str] | None:
    """The names in `parameters`, or None when those are faulty themselves."""
    try:
        return list(value["tools"][0]["function"]["parameters"]["properties"])
    except (KeyError, IndexError, TypeError):
        return None


def build_schema(value: dict[str, Json]) -> BashSchema:
    function = value["tools"][0]["function"]
    return BashSchema(
        id=value["id"],
        version=value["version"],
        args_mode=value["args_mode"],
        description=function.get("description", ""),
        parameters=function["parameters"],
        positional=[
            Positional(
                name=place["name"], required=place.get("required", False), default=place.get("default", msgspec.UNSET)
            )
            for place in value.get("positional") or []
            if is_place(place)
        ],
        config_keys=value.get("config_keys", []),
    )
