"""Tool files on the bench: the same sources and the same call path as in an application, without a configuration."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.config.document import read_document
from toolyard.core.problems import Position, Problem
from toolyard.kinds.bash_script.schema import SchemaCache
from toolyard.kinds.bash_script.source import BashToolSource
from toolyard.kinds.bash_script.workshop import BashConditions, BashWorkshop
from toolyard.kinds.manifest.source import ManifestSource
from toolyard.kinds.manifest.tool import CommandConditions
from toolyard.kinds.node_module.bench import node_at, node_source
from toolyard.kinds.python_function.bench import python_source_at
from toolyard.plugins.catalog import Catalog
from toolyard.plugins.descriptors import DESCRIPTOR, bash_files
from toolyard.plugins.spec import MANIFEST, ManifestFile
from toolyard.process.child import Children
from toolyard.process.environment import process_secrets
from toolyard.process.interpreter import find_interpreter
from toolyard.runtime.invoke import Invoker
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from toolyard.plugins.source import Source


SUFFIXES = (".bash", ".sh")


class Workbench(msgspec.Struct, frozen=True, kw_only=True):
    """What lies on the bench."""

    sources: Sequence[Source]
    catalog: Catalog
    invoker: Invoker
    problems: Sequence[Problem]
    """What is wrong with the folder itself; each source has its own."""


class NoAudit:
    """Records nothing: trying a tool out is not running an agent."""

    def write(self, record: dict[str, Any]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is held."""


@asynccontextmanager
async def open_workbench(path: Path, *, timeout: float = 60) -> AsyncIterator[Workbench]:
    """Read the tools of a file or a folder; ends every process on leaving."""
    children = Children()
    manifest, node = manifest_at(path), node_at(path)
    python = python_source_at(path, children, timeout=timeout)
    files, problems = tool_files(path) if not (manifest or node or python) or has_scripts(path) else ([], [])
    workshop = make_workshop(children, timeout)
    if workshop is None and files:
        problems = [no_bash()]
    sources: list[Source] = [BashToolSource(str(file), workshop) for file in files if workshop]
    if manifest:
        sources.append(ManifestSource(manifest, CommandConditions(children=children)))
    if node:
        found = node_source(node, children, timeout)
        if isinstance(found, Problem):
            problems = [*problems, found]
        else:
            sources.append(found)
    if python:
        sources.append(python)
    catalog = Catalog(sources)
    try:
        await catalog.refresh()
        invoker = Invoker(tools=catalog, audit=NoAudit(), redactor=Redactor(process_secrets()))
        yield Workbench(sources=sources, catalog=catalog, invoker=invoker, problems=problems)
    finally:
        for source in sources:
            await source.aclose()
        await children.aclose()


def make_workshop(children: Children, timeout: float) -> BashWorkshop | None:
    """What the sources share; None without a bash."""
    bash = find_interpreter("bash")
    if bash is None:
        return None
    conditions = BashConditions(timeout=timeout)
    return BashWorkshop(bash=bash, children=children, conditions=conditions, cache=SchemaCache(None))


def no_bash() -> Problem:
    hint = "install bash 4.4 or newer and put it on PATH"
    return Problem(code="bash_missing", message="there is no bash on PATH", hint=hint)


def manifest_at(path: Path) -> ManifestFile | None:
    """The manifest meant by a path: a JSON file, or the one of a folder."""
    path = Path(os.path.abspath(path))
    file = path / MANIFEST if path.is_dir() else path
    is_one = file.suffix == ".json" and file.name != DESCRIPTOR and file.exists()
    return ManifestFile(path=str(file), pointer=()) if is_one else None


def has_scripts(path: Path) -> bool:
    """Whether a folder with tools of another kind has bash tools as well."""
    if not path.is_dir():
        return False
    descriptor = read_document(path / DESCRIPTOR)
    if isinstance(descriptor, Problem):
        return any(file.suffix in SUFFIXES for file in path.iterdir())
    return isinstance(descriptor.value, dict) and "bash_tools" in descriptor.value


def tool_files(path: Path) -> tuple[list[Path], list[Problem]]:
    """The tool files meant by a path: a file, a folder with a descriptor, or a folder of `*.bash` files."""
    path = Path(os.path.abspath(path))
    if not path.is_dir():
        return ([path], []) if looks_like_script(path) else ([], [no_script(path)])
    if (path / DESCRIPTOR).exists():
        return bash_files(path)
    found = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    return (found, []) if found else ([], [no_tools(path)])


def looks_like_script(file: Path) -> bool:
    """Whether a file means to be run by bash: reading a tool runs it, which no other file should suffer by mistake."""
    if file.suffix in SUFFIXES or not file.is_file():
        return True  # what is wrong with it is said when it is read
    with file.open("rb") as content:
        return re.match(rb"#!.*\b(ba)?sh\b", content.readline(200)) is not None


def no_script(file: Path) -> Problem:
    message = "this is not a bash script"
    hint = "name it *.bash, or begin it with #!/usr/bin/env bash; a manifest *.json, a module *.mjs"
    return Problem(code="tool_not_script", message=message, hint=hint, where=Position(file=file))


def no_tools(folder: Path) -> Problem:
    hint = f"start one: toolyard tool new {folder / 'my_tool'}"
    return Problem(code="tool_missing", message="no tool files here", hint=hint, where=Position(file=folder))
