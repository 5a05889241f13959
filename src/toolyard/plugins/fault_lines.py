"""Where in its file a schema is at fault."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.config.problems import ConfigProblem, Position

if TYPE_CHECKING:
    from toolyard.kinds.bash_schema import SchemaFault
    from toolyard.plugins.script_text import ScriptText

__all__ = ["located"]

SUBCOMMAND = re.compile(r"^[ \t]*\(?[\"']?schema[\"']?[ \t]*[)|]", re.MULTILINE)


def located(fault: SchemaFault, script: ScriptText) -> ConfigProblem:
    """A fault as a problem, at the line where the schema is written if it is written out, else where it is printed."""
    message, hint, line = fault.message, fault.hint, fault.line
    if fault.code == "bash_schema_not_json" and (found := script.syntax_problem) and found.where:
        message, hint, line = f"`schema` prints no JSON: {found.message}", found.hint or hint, found.where.line
    elif line is None and fault.pointer is not None:
        line = script.schema_line(fault.pointer)
    elif fault.printed and fault.printed in script.text:
        line = script.line_with(fault.printed)
    line = line or script.line_matching(SUBCOMMAND) or 1
    return ConfigProblem(
        code=fault.code,
        message=message,
        hint=hint.replace("FILE", str(script.file)),
        where=Position(file=script.file, line=line),
    )
