"""What `tool check` says of Python plugins: why they do not load, and what a model will miss."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.tool import JsonInput
from toolyard.kinds.python_function.tool import PythonTool
from toolyard.plugins.checks.findings import Finding, from_problem, warning
from toolyard.plugins.checks.spec import gathered_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.tool import ToolSpec
    from toolyard.kinds.python_function.source import PythonSource


def python_findings(source: PythonSource) -> Iterator[Finding]:
    """All that can be said without calling a tool."""
    yield from (from_problem(problem, source.file) for problem in source.problems)
    for tool in (tool for plugin in source.plugins() for tool in plugin.tools):
        if isinstance(tool, PythonTool):
            yield from tool_findings(tool, *place_of(tool, source.file))


def tool_findings(tool: PythonTool, file: Path, line: int) -> Iterator[Finding]:
    spec = tool.spec
    if not spec.description.strip():
        message = f"'{spec.name}' has no description, and models choose tools by it"
        yield warning(file, line, "no_description", message, hint="say in a docstring what the tool does")
    yield from property_findings(spec, file, line)
    yield from format_findings(spec, file, line)


def property_findings(spec: ToolSpec, file: Path, line: int) -> Iterator[Finding]:
    """A model knows of an argument what its type and its description say."""
    properties = spec.input.schema.get("properties", {}) if isinstance(spec.input, JsonInput) else {}
    for name, shape in properties.items():
        if not isinstance(shape, dict):
            continue
        if not str(shape.get("description", "")).strip():
            hint = 'add a line below `Args:` in the docstring, or Annotated[TYPE, "what it means"]'
            yield warning(file, line, "no_description", f"'{name}' of '{spec.name}' has no description", hint=hint)
        if not shape.keys() - {"description", "default", "title"}:
            message = f"'{name}' of '{spec.name}' has no type, so that anything may come"
            yield warning(file, line, "no_type", message, hint="annotate the parameter")


def format_findings(spec: ToolSpec, file: Path, line: int) -> Iterator[Finding]:
    """What model APIs do not take."""
    for problem, message in gathered_problems(spec):
        yield warning(file, line, f"format_{problem.code}", message, hint=problem.hint)


def place_of(tool: PythonTool, otherwise: Path) -> tuple[Path, int]:
    """Where the code of a tool is written."""
    try:
        code = inspect.unwrap(tool.code)
        return Path(inspect.getsourcefile(code) or otherwise), inspect.getsourcelines(code)[1]
    except (OSError, TypeError):
        return otherwise, 1
