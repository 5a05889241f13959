"""What is wrong with tools that load all the same: what is passed over, and which formats leave them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from toolyard.core.problems import Position, Problem
from toolyard.core.tool import JsonInput, WireFormat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolyard.core.tool import Tool
    from toolyard.core.wire.formats import FormatProblem

NOTES = {
    "default": ("default_does_not_fit", "mend the default or the schema; until then it is not used"),
    "pattern": ("pattern_unreadable", "write it as JavaScript would read it"),
}
"""What a note of a schema is called as a problem, and what to do about it."""


def tool_problems(tools: Mapping[str, tuple[Path, Tool]]) -> Iterator[Problem]:
    """All of an agent's tools, by their names and with the files that they come from."""
    for name, (file, tool) in tools.items():
        yield from note_problems(name, file, tool)
    yield from export_problems(tools)


def note_problems(name: str, file: Path, tool: Tool) -> Iterator[Problem]:
    from toolyard.core.arguments.notes import schema_notes

    given = tool.spec.input
    for note in schema_notes(given.schema, given.defaults) if isinstance(given, JsonInput) else ():
        code, hint = NOTES[note.keyword]
        yield warning(code, f"tool '{name}': {note}", hint, file)


def export_problems(tools: Mapping[str, tuple[Path, Tool]]) -> Iterator[Problem]:
    """A problem for each reason why a tool is missing in some formats."""
    from toolyard.core.wire.formats import export

    found: dict[tuple[str, str], list[FormatProblem]] = {}
    for format in get_args(WireFormat):
        for problem in export((tool.spec for _, tool in tools.values()), format).problems:
            if problem.fatal:
                found.setdefault((problem.tool, problem.code), []).append(problem)
    for (name, code), same in found.items():
        formats = ", ".join(problem.format for problem in same)
        message = f"tool '{name}' is left out of the format{'s' * (len(same) > 1)} {formats}: {same[0].message}"
        yield warning(f"format_{code}", message, same[0].hint, tools[name][0])


def warning(code: str, message: str, hint: str, file: Path) -> Problem:
    return Problem(code=code, message=message, hint=hint, where=Position(file=file), severity="warning")
