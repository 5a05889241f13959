"""Where in its file a schema is at fault."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from toolyard.authoring.script_text import PARAMETERS, read_script
from toolyard.config.problems import Position

if TYPE_CHECKING:
    from toolyard.authoring.script_text import ScriptText
    from toolyard.config.document import Pointer
    from toolyard.config.problems import ConfigProblem

__all__ = ["relocated"]

POINTERS: dict[str, Pointer] = {
    "bash_schema_not_object": (),
    "bash_schema_args_mode": ("args_mode",),
    "bash_schema_tool_count": ("tools",),
    "bash_schema_tool_type": ("tools", 0),
    "bash_schema_name_mismatch": ("id",),
    "bash_schema_config_keys": ("config_keys",),
}


def relocated(problem: ConfigProblem) -> ConfigProblem:
    """The same problem at the line where the schema is written, if it is written out in the file."""
    if problem.where is None or not problem.code.startswith("bash_schema_"):
        return problem
    script = read_script(problem.where.file)
    if problem.code == "bash_schema_not_json" and script.syntax_problem:
        found = script.syntax_problem
        message = f"`schema` prints no JSON: {found.message}"
        return replace(problem, message=message, where=found.where, hint=found.hint or problem.hint)
    line = fault_line(problem, script)
    return replace(problem, where=Position(file=script.file, line=line)) if line else problem


def fault_line(problem: ConfigProblem, script: ScriptText) -> int | None:
    """The line of the value that a problem is about; None where the problem knows better."""
    match problem.code:
        case "bash_schema_missing_field":
            return script.schema_line((quoted(problem.message),))
        case "bash_schema_positional_missing":
            return script.schema_line(("positional",))
        case "bash_schema_positional_unknown":
            return script.place_line(quoted(problem.message.partition(" names ")[2]))
        case "bash_schema_parameters":
            return script.schema_line((*PARAMETERS, *path_in(problem.message)))
        case code if code in POINTERS:
            return script.schema_line(POINTERS[code])
    return None


def quoted(message: str) -> str:
    """The first name that a message quotes."""
    found = re.search(r"'([^']*)'", message)
    return found[1] if found else ""


def path_in(message: str) -> Pointer:
    """The path in `'parameters' is not a JSON Schema: properties.name.type: expected …`."""
    found = re.search(r"JSON Schema: ([\w$.\[\]-]+): ", message)
    steps = re.findall(r"\[(\d+)\]|([\w$-]+)", found[1]) if found else ()
    return tuple(int(index) if index else name for index, name in steps)
