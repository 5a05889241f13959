"""A Node package or module as it lies there: what is in it, and where in it a fault is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.problems import Position, Problem
from toolyard.files.folder_content import fingerprint, look_at, too_large
from toolyard.kinds.node_module.package import PackageFacts, lone_module, read_package
from toolyard.plugins.spec import NodeFile, NodeFolder

if TYPE_CHECKING:
    from toolyard.files.folder_content import Look
    from toolyard.kinds.node_module.listing import NodeFault
    from toolyard.kinds.node_module.workshop import NodePackage


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A package as it was seen."""

    spec: NodeFile | NodeFolder
    folder: str
    look: Look
    fingerprint: str
    facts: PackageFacts


def main_file(spec: NodeFile | NodeFolder) -> Path:
    """The module, or the descriptor of the package."""
    return Path(spec.file) if isinstance(spec, NodeFile) else Path(spec.folder, "package.json")


def look_now(spec: NodeFile | NodeFolder) -> Look:
    """What there is; nothing when there is nothing."""
    if isinstance(spec, NodeFolder):
        return look_at(spec.folder)
    try:
        stat = os.stat(spec.file)
    except (OSError, ValueError):
        return {}
    name = os.path.basename(spec.file)
    return {name: (stat.st_mtime_ns, stat.st_size, stat.st_ino)} if os.path.isfile(spec.file) else {}


def read(spec: NodeFile | NodeFolder, look: Look) -> tuple[Reading | None, list[Problem]]:
    """What was seen, read; no reading when there is nothing to go on with."""
    file = main_file(spec)
    if reason := too_large(look):
        return None, [at(file, "node_package", f"this is no package: {reason}", "check the path")]
    facts, problems = facts_at(spec, file)
    if facts is None:
        return None, problems
    folder = str(file.parent)
    try:
        number = fingerprint(folder, look)
    except OSError as error:  # a file has gone meanwhile, or may not be read
        message = f"cannot be read: {error.strerror or error}"
        return None, [at(Path(error.filename or file), "node_unreadable", message, "check its permissions")]
    return Reading(spec=spec, folder=folder, look=look, fingerprint=number, facts=facts), problems


def facts_at(spec: NodeFile | NodeFolder, file: Path) -> tuple[PackageFacts | None, list[Problem]]:
    if isinstance(spec, NodeFile):
        return lone_module(file, spec.id, spec.export), []
    return read_package(spec, file.parent)


def nothing_there(spec: NodeFile | NodeFolder) -> Problem:
    """Why there is nothing to read."""
    if isinstance(spec, NodeFile):
        return at(Path(spec.file), "node_file_missing", "no such file", "check the path")
    folder = Path(spec.folder)
    if folder.is_dir():
        return at(folder, "node_package", "this folder is empty", "check the path")
    return at(folder, "plugin_missing", "no such folder", "check the path")


def located(fault: NodeFault, reading: Reading, package: NodePackage) -> Problem:
    """A fault where it is in the author's own folder, which the place of a copy is not."""
    message, hint = fault.message, fault.hint
    tools = {tool.id: tool for tool in package.tools}
    if fault.code == "node_entry_missing" and fault.id in tools:
        message = f"'{tools[fault.id].entry}' does not exist"
        hint = missing_hint(built=package.root != reading.folder)
        return Problem(code=fault.code, message=message, hint=hint, where=declaration(fault, reading))
    where = declaration(fault, reading)
    if fault.file:
        inside = os.path.relpath(os.path.realpath(fault.file), os.path.realpath(package.root))
        own = Path(reading.folder, inside)
        where = Position(file=own if own.exists() else Path(fault.file), line=fault.line)
    return Problem(code=fault.code, message=message, hint=hint, where=where)


def declaration(fault: NodeFault, reading: Reading) -> Position:
    """Where the tool at fault is declared."""
    facts = reading.facts
    places = {tool.id: place for tool, place in zip(facts.tools, facts.places, strict=True)}
    if not facts.is_package:
        return Position(file=main_file(reading.spec))
    return facts.document.position(places.get(fault.id or "", ()))


def missing_hint(*, built: bool) -> str:
    if built:
        return "the build must write it; run the build script in the package and look"
    return "write it, or give the package a build script; plugin_policy.node_build must be true for that"


def at(file: Path, code: str, message: str, hint: str) -> Problem:
    return Problem(code=code, message=message, hint=hint, where=Position(file=file))
