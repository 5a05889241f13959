"""What a schema says that will hurt, or fails to say."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, get_args

from toolyard.authoring.findings import Finding, warning
from toolyard.authoring.samples import sample_arguments
from toolyard.core.arguments import ArgumentDecoder, BadArguments
from toolyard.core.formats import format_problems
from toolyard.core.tool import WireFormat
from toolyard.plugins.script_text import FUNCTION, PARAMETERS, ScriptText

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.tool import Json
    from toolyard.kinds.bash_schema import BashSchema
    from toolyard.kinds.bash_script import BashScriptTool

__all__ = ["schema_findings"]


def schema_findings(script: ScriptText, tool: BashScriptTool) -> Iterator[Finding]:
    """Everything about a valid schema that its author should know."""
    schema = tool.schema
    yield from description_findings(script, schema)
    for name, shape in properties_of(schema).items():
        yield from passing_findings(script, schema, name, shape)
    yield from required_findings(script, schema)
    yield from default_findings(script, schema)
    yield from format_findings(script, tool)


def description_findings(script: ScriptText, schema: BashSchema) -> Iterator[Finding]:
    """A model knows of a tool what its descriptions say, and nothing else."""
    if not schema.description.strip():
        message = "the tool has no description, and models choose tools by it"
        line = script.line((*FUNCTION, "description"), "@describe", '"function"')
        yield warning(script.file, line, "no_description", message, hint="say in a sentence what the tool does")
    for name, shape in properties_of(schema).items():
        if not (isinstance(shape, dict) and str(shape.get("description", "")).strip()):
            hint = "say what it means and in which form it is wanted"
            line = script.property_line(name)
            yield warning(script.file, line, "no_description", f"'{name}' has no description", hint=hint)


def passing_findings(script: ScriptText, schema: BashSchema, name: str, shape: Json) -> Iterator[Finding]:
    """Arguments that will not arrive as the author thinks."""
    mode, kinds = schema.args_mode, types_of(shape)
    line = script.property_line(name)
    by_json = 'read it with a JSON parser, or use "args_mode": "json"'
    if mode == "flags" and "object" in kinds:
        message = f"'{name}' is an object and arrives as JSON text"
        yield warning(script.file, line, "object_in_flags", message, hint=by_json)
    if mode == "positional" and kinds & {"object", "array"}:
        kind = "an object" if "object" in kinds else "an array"
        message = f"'{name}' is {kind} and arrives as JSON text"
        yield warning(script.file, line, "list_in_positional", message, hint=by_json)
    if mode == "positional" and name not in {place.name for place in schema.positional}:
        message = f"'{name}' is not in 'positional' and never reaches the script"
        yield warning(script.file, line, "not_passed", message, hint=f'add {{"name": "{name}"}} to "positional"')


def required_findings(script: ScriptText, schema: BashSchema) -> Iterator[Finding]:
    """Every call must have what is required, also what no model has heard of."""
    for name in schema.parameters.get("required", ()):
        if name not in properties_of(schema):
            message = f"'{name}' is required, but is no property: no model knows what to send"
            line = script.line((*PARAMETERS, "required"), '"required"')
            yield warning(script.file, line, "required_unknown", message, hint="add it to the properties")


def default_findings(script: ScriptText, schema: BashSchema) -> Iterator[Finding]:
    """A default that does not fit refuses every call that leaves it out."""
    decoded = decoder_of(schema).decode(sample_arguments(schema.parameters))
    if not isinstance(decoded, BadArguments):
        return
    shapes = properties_of(schema)
    own = {name for name, shape in shapes.items() if isinstance(shape, dict) and "default" in shape}
    for fault in decoded.faults:
        if fault.path in own | schema.defaults().keys():
            message = f"the default of '{fault.path}' does not fit its own schema: {fault.message}"
            line = (None if fault.path in own else script.place_line(fault.path)) or script.property_line(fault.path)
            yield warning(script.file, line, "default_does_not_fit", message, hint="mend the default or the schema")


def format_findings(script: ScriptText, tool: BashScriptTool) -> Iterator[Finding]:
    """What model APIs do not take, each thing once, with all who do not take it."""
    problems = [
        problem
        for format in get_args(WireFormat)
        for problem in format_problems(tool.spec, format)
        if problem.code != "description_missing"
    ]
    for code, same in groupby(sorted(problems, key=lambda problem: problem.code), key=lambda problem: problem.code):
        first, *others = same
        message = first.message + (f" (the same with {', '.join(each.format for each in others)})" if others else "")
        message += "; the tool is left out there" if first.fatal else ""
        line = script.line(("id",), '"id"') if code.startswith("name_") else script.line(PARAMETERS, '"parameters"')
        yield warning(script.file, line, f"format_{code}", message, hint=first.hint)


def decoder_of(schema: BashSchema) -> ArgumentDecoder:
    return ArgumentDecoder(schema.parameters, defaults=schema.defaults())


def properties_of(schema: BashSchema) -> dict[str, Json]:
    properties = schema.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def types_of(shape: Json) -> set[Json]:
    kinds = shape.get("type") if isinstance(shape, dict) else None
    return set(kinds) if isinstance(kinds, list) else {kinds}
