"""A Node package or module as it lies there: which tools it holds, what it takes to make it ready, where a fault is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.config.document import Document, Place, read_document
from toolyard.core.problems import Position, Problem
from toolyard.files.inside import leads_inside
from toolyard.files.walk import Tree, digest, lone_file, scan, too_large
from toolyard.kinds.node_module.reference import NodeFile, NodeFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json

PACKAGE = "package.json"
TOOLS: Pointer = ("agent", "tools")
EXAMPLE = '"agent": {"tools": [{"id": "my_tool", "entry": "index.js"}]}'
MOST_BYTES = 512 << 20


class DeclaredTool(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tool is in its package."""

    id: str
    entry: str
    """A file, relative to the package."""
    export: str | None = None
    may_be_several: bool = False
    """Whether each function that it exports is a tool, where the module itself is none."""


class NodePackage(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one package, ready to be run."""

    root: str
    tools: tuple[DeclaredTool, ...]
    fingerprint: str
    """Of its content."""


def with_exports(package: NodePackage, names: Sequence[str]) -> NodePackage:
    """The package once the names of its tools are known, which may be several of one module."""
    known = {tool.id: tool for tool in package.tools}
    modules = [tool for tool in package.tools if tool.may_be_several]
    found = [DeclaredTool(id=name, entry=each.entry, export=name) for each in modules for name in names]
    return replace(package, tools=tuple(known.get(each.id, each) for each in found) or package.tools)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A package as it was seen."""

    reference: NodeFile | NodeFolder
    folder: str
    tree: Tree
    fingerprint: str
    facts: PackageFacts


def main_file(reference: NodeFile | NodeFolder) -> Path:
    return Path(reference.file) if isinstance(reference, NodeFile) else Path(reference.folder, "package.json")


def tree_now(reference: NodeFile | NodeFolder) -> Tree:
    """What there is; nothing when there is nothing."""
    if isinstance(reference, NodeFolder):
        return scan(reference.folder)
    return {} if os.path.isdir(reference.file) else lone_file(reference.file)


def read(reference: NodeFile | NodeFolder, tree: Tree) -> tuple[Snapshot | None, list[Problem]]:
    """A package with what it says of itself; none when there is nothing to go on with."""
    file = main_file(reference)
    if reason := too_large(str(file.parent), tree, MOST_BYTES):
        return None, [at(file, "node_package", f"this is no package: {reason}", "check the path")]
    facts, problems = facts_at(reference, file)
    if facts is None:
        return None, problems
    folder = str(file.parent)
    try:
        number = digest(folder if isinstance(reference, NodeFolder) else reference.file, tree)
    except OSError as error:  # a file has gone meanwhile, or may not be read
        message = f"cannot be read: {error.strerror or error}"
        return None, [at(Path(error.filename or file), "node_unreadable", message, "check its permissions")]
    return Snapshot(reference=reference, folder=folder, tree=tree, fingerprint=number, facts=facts), problems


def facts_at(reference: NodeFile | NodeFolder, file: Path) -> tuple[PackageFacts | None, list[Problem]]:
    if isinstance(reference, NodeFile):
        return lone_module(file, reference.id, reference.export), []
    return read_package(reference, file.parent)


def nothing_there(reference: NodeFile | NodeFolder) -> Problem:
    if isinstance(reference, NodeFile):
        return at(Path(reference.file), "node_file_missing", "no such file", "check the path")
    folder = Path(reference.folder)
    if folder.is_dir():
        return at(folder, "node_package", "this folder is empty", "check the path")
    return at(folder, "plugin_missing", "no such folder", "check the path")


def problem_of(fault: NodeFault, snapshot: Snapshot, package: NodePackage) -> Problem:
    """A fault where it is in the author's own folder, which the place of a copy is not."""
    message, hint = fault.message, fault.hint
    tools = {tool.id: tool for tool in package.tools}
    if fault.code == "node_entry_missing" and fault.id in tools:
        message = f"'{tools[fault.id].entry}' does not exist"
        hint = missing_hint(built=package.root != snapshot.folder)
        return Problem(code=fault.code, message=message, hint=hint, where=declaration(fault, snapshot))
    where = declaration(fault, snapshot)
    if fault.file:
        inside = os.path.relpath(os.path.realpath(fault.file), os.path.realpath(package.root))
        own = Path(snapshot.folder, inside)
        where = Position(file=own if own.exists() else Path(fault.file), line=fault.line)
    return Problem(code=fault.code, message=message, hint=hint, where=where)


def declaration(fault: NodeFault, snapshot: Snapshot) -> Position:
    facts = snapshot.facts
    places = {tool.id: place for tool, place in zip(facts.tools, facts.places, strict=True)}
    if not facts.is_package:
        return Position(file=main_file(snapshot.reference))
    return facts.document.position(places.get(fault.id or "", ()))


def missing_hint(*, built: bool) -> str:
    if built:
        return "the build must write it; run the build script in the package and look"
    return "write it, or give the package a build script; plugin_policy.node_build must be true for that"


def at(file: Path, code: str, message: str, hint: str) -> Problem:
    return Problem(code=code, message=message, hint=hint, where=Position(file=file))


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


def read_package(reference: NodeFolder, folder: Path) -> tuple[PackageFacts | None, list[Problem]]:
    """What there is to load, and what is wrong with the rest; nothing when it cannot be told."""
    document = read_document(folder / PACKAGE, reference.at.document.door)
    if isinstance(document, Problem):
        if document.code == "config_unreadable" and reference.entry is not None:
            document = Document(folder / PACKAGE, "{}", {})  # a folder whose module the configuration itself names
        else:
            return None, [explain_missing(document, folder)]
    if not isinstance(document.value, dict):
        return None, [fault(document, (), "a package.json is an object")]
    if reference.entry is not None:
        tool = DeclaredTool(
            id=reference.id or tool_name(reference.entry), entry=reference.entry, export=reference.export
        )
        declared, problems = within(folder, [(tool, ())], document)
    else:
        declared, problems = declared_tools(reference, folder, document)
    facts = facts_of(document, folder, [tool for tool, _ in declared], [place for _, place in declared])
    return facts if declared else None, problems


def lone_module(file: Path, id: str | None, export: str | None) -> PackageFacts:
    """The same of a module that stands alone."""
    is_free = id is None and export is None
    tool = DeclaredTool(id=id or tool_name(file.name), entry=file.name, export=export, may_be_several=is_free)
    return facts_of(Document(file.with_name(PACKAGE), "{}", {}), file.parent, [tool], [()])


def tool_name(file: str) -> str:
    """The name of a tool that is given none: its file's, in characters that every model takes."""
    return Path(file).stem.replace("-", "_")


Declared = tuple[DeclaredTool, "Pointer"]


def declared_tools(reference: NodeFolder, folder: Path, document: Document) -> tuple[list[Declared], list[Problem]]:
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
    kept, outside = within(folder, selected(declared, reference), document)
    if not kept and not problems and not outside:
        known = ", ".join(tool.id for tool, _ in declared)
        problems.append(
            fault(document, TOOLS, f"no tool of this package is named '{reference.id}'", f"there are: {known}")
        )
    return kept, [*problems, *outside]


def declared_tool(entry: Json) -> DeclaredTool | None:
    match entry:
        case {"id": str(id), "entry": str(file), **rest} if id and file:
            export = rest.get("export")
            return DeclaredTool(id=id, entry=file, export=export) if isinstance(export, str | None) else None
    return None


def selected(declared: Sequence[Declared], reference: NodeFolder) -> list[Declared]:
    """All, or the one that the configuration names, with the export that it names."""
    if reference.id is None:
        return list(declared)
    return [
        (DeclaredTool(id=tool.id, entry=tool.entry, export=reference.export or tool.export), place)
        for tool, place in declared
        if tool.id == reference.id
    ]


def within(folder: Path, declared: Sequence[Declared], document: Document) -> tuple[list[Declared], list[Problem]]:
    """A package lists only modules of its own."""
    outside = [each for each in declared if not leads_inside(str(folder / each[0].entry), str(folder))]
    hint = "a package lists only files of its own"
    problems = [
        Place(document, place).problem("plugin_outside", f"'{tool.entry}' is outside the package", hint, "entry")
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
        return at(folder, "plugin_missing", "no such folder", "check the path")
    return at(folder, "node_package", f"no {PACKAGE} in this folder", f"create it with {EXAMPLE}")


def fault(document: Document, place: Pointer, message: str, hint: str = f"for example {EXAMPLE}") -> Problem:
    return Place(document, place).problem("node_package", message, hint)


class NodeFault(msgspec.Struct, frozen=True, kw_only=True):
    """Why a tool of a package, or all of them, cannot be used."""

    code: str
    message: str
    hint: str = ""
    id: str | None = None
    file: str | None = None
    line: int | None = None
