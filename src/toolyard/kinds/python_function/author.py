"""For people who write Python plugins: why they do not load, what a model will miss, and a new one."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.document import json_of
from toolyard.config.layers import mapping
from toolyard.core.tool import JsonInput
from toolyard.files.door import LARGEST_CONFIGURATION, Door
from toolyard.kinds.python_function.tool import PythonTool
from toolyard.plugins.checks.findings import warning, with_line
from toolyard.plugins.checks.samples import greeting_cases
from toolyard.plugins.checks.spec import gathered_problems
from toolyard.plugins.kind import DESCRIPTOR, Found, NewFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject, ToolSpec
    from toolyard.kinds.python_function.source import PythonSource

MODULE = '''"""Try it: toolyard tool check .    toolyard tool test ."""

from toolyard.plugins.contract import ToolError, tool


def preview(name: str, loud: bool = False) -> str:
    """One line for the person who watches."""
    return f"greet {name}"


@tool(read_only=True, preview=preview)
def @NAME@(name: str, loud: bool = False) -> str:
    """Greet somebody by name.

    Args:
        name: Whom to greet.
        loud: Whether to shout.
    """
    if not name:
        raise ToolError("name must not be empty", exit_code=3)
    greeting = f"Hello, {name}!"
    return greeting.upper() if loud else greeting
'''


class PythonAuthoring:
    """Python plugins: imported where they are, so that an author sees the files that were written."""

    form = "a Python module *.py"

    def entries(self, path: Path) -> Sequence[Json]:
        """A module, or a folder whose descriptor lists entries."""
        if not path.is_dir():
            return [{"path": str(path)}] if path.suffix == ".py" else []
        return [{"path": str(path)}] if "entries" in mapping(json_of(path / DESCRIPTOR)) else []

    def policy(self, timeout: float) -> JsonObject:
        """Each import and each call within the time."""
        return {"python_timeout_seconds": timeout, "python_import_timeout_seconds": timeout}

    async def check(self, source: PythonSource, timeout: float) -> Sequence[Problem]:  # noqa: ARG002 - the policy has it
        """All that can be said without calling a tool."""
        found = [with_line(problem, source.file) for problem in source.problems]
        for tool in (tool for plugin in source.plugins() for tool in plugin.tools):
            if isinstance(tool, PythonTool):
                found += tool_findings(tool, *place_of(tool, source.file))
        return found

    def new_files(self, name: str, mode: str | None) -> Sequence[NewFile]:  # noqa: ARG002 - there is one way only
        """A module, a descriptor that names its function, and cases that pass as they are."""
        module = name.replace("-", "_")  # as Python names modules and functions
        failed = {"exit": 3, "output": "Error: name must not be empty"}
        return [
            NewFile(path=f"{module}.py", text=MODULE.replace("@NAME@", module)),
            NewFile.with_json(DESCRIPTOR, {"entries": [f"{module}.{module}"]}),
            NewFile.with_json(f"tests/{module}.json", greeting_cases(str, preview="greet Ada", empty_name=failed)),
        ]

    def discover(self, folder: Path, files: Sequence[str], place: str) -> Iterator[Found]:
        """A folder whose descriptor lists entries, and no tools of another kind; else files with tools in them."""
        descriptor = mapping(json_of(folder / DESCRIPTOR)) if DESCRIPTOR in files else {}
        if descriptor.get("entries") and not descriptor.get("bash_tools"):
            yield Found(what="Python plugin", entry=f"path:{place}")
            return
        for file in files:
            if file.endswith(".py") and has_tools(folder / file):
                yield Found(what="Python tools", entry=f"path:{place}/{file}")


def has_tools(file: Path) -> bool:
    """Whether a module marks functions with our `tool`; it is read, and not run."""
    import ast

    try:
        text = Door.here().read(file, largest=LARGEST_CONFIGURATION).text()
        # Few files even name us, and parsing all others would take long.
        tree = ast.parse(text) if "toolyard" in text and "@" in text else ast.Module([], [])
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    names = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "toolyard"
        for alias in node.names
        if alias.name == "tool"
    }
    marks = [
        mark
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for mark in node.decorator_list
    ]
    plain = (mark.func if isinstance(mark, ast.Call) else mark for mark in marks)
    return any(ast.unparse(mark) in names | {"toolyard.tool"} for mark in plain)


def tool_findings(tool: PythonTool, file: Path, line: int) -> Iterator[Problem]:
    spec = tool.spec
    if not spec.description.strip():
        message = f"'{spec.name}' has no description, and models choose tools by it"
        yield warning(file, line, "no_description", message, hint="say in a docstring what the tool does")
    yield from property_findings(spec, file, line)
    yield from format_findings(spec, file, line)


def property_findings(spec: ToolSpec, file: Path, line: int) -> Iterator[Problem]:
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


def format_findings(spec: ToolSpec, file: Path, line: int) -> Iterator[Problem]:
    """What model APIs do not take."""
    for problem, message in gathered_problems(spec):
        yield warning(file, line, f"format_{problem.code}", message, hint=problem.hint)


def place_of(tool: PythonTool, otherwise: Path) -> tuple[Path, int]:
    try:
        code = inspect.unwrap(tool.code)
        return Path(inspect.getsourcefile(code) or otherwise), inspect.getsourcelines(code)[1]
    except (OSError, TypeError):
        return otherwise, 1
