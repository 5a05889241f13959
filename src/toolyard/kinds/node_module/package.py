"""`package.json`: which tools a Node package holds, and what it takes to make it ready."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.document import Document, read_document
from toolyard.core.problems import Position, Problem
from toolyard.kinds.node_module.workshop import DeclaredTool
from toolyard.plugins.descriptors import is_inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Pointer
    from toolyard.core.tool import Json
    from toolyard.plugins.spec import NodeFolder


PACKAGE = "package.json"
TOOLS: Pointer = ("agent", "tools")
EXAMPLE = '"agent": {"tools": [{"id": "my_tool", "entry": "index.js"}]}'


class PackageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a package says of itself."""

    document: Document
    tools: tuple[DeclaredTool, ...]
    places: tuple[Pointer, ...]
    """Where each of the tools is declared."""
    name: str
    is_package: bool
    """Whether there is a package.json, which a single module needs not have."""
    package_manager: str | None
    has_dependencies: bool
    has_dev_dependencies: bool
    has_build_script: bool


def read_package(spec: NodeFolder, folder: Path) -> tuple[PackageFacts | None, list[Problem]]:
    """What there is to load, and what is wrong with the rest; nothing when it cannot be told."""
    document = read_document(folder / PACKAGE)
    if isinstance(document, Problem):
        if document.code == "config_unreadable" and spec.entry is not None:
            document = Document(folder / PACKAGE, "{}", {})  # a folder whose module the configuration itself names
        else:
            return None, [explain_missing(document, folder)]
    if not isinstance(document.value, dict):
        return None, [fault(document, (), "a package.json is an object")]
    if spec.entry is not None:
        tool = DeclaredTool(id=spec.id or tool_name(spec.entry), entry=spec.entry, export=spec.export)
        declared, problems = within(folder, [(tool, ())], document)
    else:
        declared, problems = declared_tools(spec, folder, document)
    facts = facts_of(document, folder, [tool for tool, _ in declared], [place for _, place in declared])
    return facts if declared else None, problems


def lone_module(file: Path, id: str | None, export: str | None) -> PackageFacts:
    """The same of a module that stands alone."""
    tool = DeclaredTool(id=id or tool_name(file.name), entry=file.name, export=export)
    return facts_of(Document(file.with_name(PACKAGE), "{}", {}), file.parent, [tool], [()])


def tool_name(file: str) -> str:
    """The name of a tool that is given none: its file's, in characters that every model takes."""
    return Path(file).stem.replace("-", "_")


Declared = tuple[DeclaredTool, "Pointer"]


def declared_tools(spec: NodeFolder, folder: Path, document: Document) -> tuple[list[Declared], list[Problem]]:
    """The entries of `agent.tools`, or the one that the configuration names."""
    agent = document.value.get("agent")
    listed = agent.get("tools") if isinstance(agent, dict) else None
    if not isinstance(listed, list) or not listed:
        return [], [fault(document, TOOLS, "'agent.tools' must be a list with at least one entry")]
    declared: list[Declared] = []
    problems: list[Problem] = []
    for index, entry in enumerate(listed):
        place = (*TOOLS, index)
        tool = declared_tool(entry)
        if tool is None:
            problems.append(fault(document, place, "an entry of 'agent.tools' needs 'id' and 'entry', both strings"))
        elif any(tool.id == other.id for other, _ in declared):
            problems.append(fault(document, place, f"'{tool.id}' is declared twice; the first counts"))
        else:
            declared.append((tool, place))
    kept, outside = within(folder, selected(declared, spec), document)
    if not kept and not problems and not outside:
        known = ", ".join(tool.id for tool, _ in declared)
        problems.append(fault(document, TOOLS, f"no tool of this package is named '{spec.id}'", f"there are: {known}"))
    return kept, [*problems, *outside]


def declared_tool(entry: Json) -> DeclaredTool | None:
    match entry:
        case {"id": str(id), "entry": str(file), **rest} if id and file:
            export = rest.get("export")
            return DeclaredTool(id=id, entry=file, export=export) if isinstance(export, str | None) else None
    return None


def selected(declared: Sequence[Declared], spec: NodeFolder) -> list[Declared]:
    """All, or the one that the configuration names, with the export that it names."""
    if spec.id is None:
        return list(declared)
    return [
        (DeclaredTool(id=tool.id, entry=tool.entry, export=spec.export or tool.export), place)
        for tool, place in declared
        if tool.id == spec.id
    ]


def within(folder: Path, declared: Sequence[Declared], document: Document) -> tuple[list[Declared], list[Problem]]:
    """A package lists only modules of its own."""
    root = os.path.realpath(folder)
    outside = [each for each in declared if not is_inside(root, each[0].entry)]
    problems = [
        Problem(
            code="plugin_outside",
            message=f"'{tool.entry}' is outside the package",
            hint="a package lists only files of its own",
            where=document.position((*place, "entry")),
        )
        for tool, place in outside
    ]
    return [each for each in declared if each not in outside], problems


def facts_of(
    document: Document, folder: Path, tools: Sequence[DeclaredTool], places: Sequence[Pointer]
) -> PackageFacts:
    value = document.value
    scripts, manager = value.get("scripts"), value.get("packageManager")
    build = scripts.get("build") if isinstance(scripts, dict) else None
    return PackageFacts(
        document=document,
        tools=tuple(tools),
        places=tuple(places),
        is_package=bool(value),
        name=str(value.get("name") or folder.name),
        package_manager=manager if isinstance(manager, str) and manager else None,
        has_dependencies=bool(value.get("dependencies") or value.get("optionalDependencies")),
        has_dev_dependencies=bool(value.get("devDependencies")),
        has_build_script=isinstance(build, str) and bool(build.strip()),
    )


def explain_missing(problem: Problem, folder: Path) -> Problem:
    """A folder without a package.json is the commonest mistake; say what it would have to hold."""
    if problem.code != "config_unreadable":
        return problem
    if not folder.is_dir():
        hint, where = "check the path", Position(file=folder)
        return Problem(code="plugin_missing", message="no such folder", hint=hint, where=where)
    message, where = f"no {PACKAGE} in this folder", Position(file=folder)
    return Problem(code="node_package", message=message, hint=f"create it with {EXAMPLE}", where=where)


def fault(document: Document, place: Pointer, message: str, hint: str = f"for example {EXAMPLE}") -> Problem:
    return Problem(code="node_package", message=message, hint=hint, where=document.position(place))
