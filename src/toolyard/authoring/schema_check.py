"""What a bash tool's schema says that will hurt, or fails to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.bash_script.schema import FUNCTION
from toolyard.kinds.bash_script.script_text import PARAMETERS, ScriptText
from toolyard.plugins.checks.findings import Finding, warning
from toolyard.plugins.checks.spec import properties_of, spec_findings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.core.tool import Json
    from toolyard.kinds.bash_script.schema import BashSchema
    from toolyard.kinds.bash_script.tool import BashScriptTool
    from toolyard.plugins.checks.spec import Part


class ScriptPlaces:
    """Where a script says what, in its schema or in its comments."""

    def __init__(self, script: ScriptText) -> None:
        self._script = script

    @property
    def file(self) -> Path:
        """The script."""
        return self._script.file

    def line_of(self, part: Part) -> int:
        """By its place in the schema, else by the words that stand there."""
        match part:
            case "name":
                return self._script.line(("id",), '"id"')
            case "description":
                return self._script.line((*FUNCTION, "description"), "@describe", '"function"')
            case "parameters":
                return self._script.line(PARAMETERS, '"parameters"')
            case "required":
                return self._script.line((*PARAMETERS, "required"), '"required"')

    def property_line(self, name: str) -> int:
        """In the schema or in a comment."""
        return self._script.property_line(name)

    def default_line(self, name: str, *, in_schema: bool) -> int:
        """In the schema, else in `positional`."""
        return (None if in_schema else self._script.place_line(name)) or self._script.property_line(name)


def schema_findings(script: ScriptText, tool: BashScriptTool) -> Iterator[Finding]:
    """Everything about a valid schema that its author should know."""
    yield from spec_findings(ScriptPlaces(script), tool.spec)
    for name, shape in properties_of(tool.spec.input).items():
        yield from passing_findings(script, tool.schema, name, shape)


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


def types_of(shape: Json) -> set[Json]:
    kinds = shape.get("type") if isinstance(shape, dict) else None
    return set(kinds) if isinstance(kinds, list) else {kinds}
