"""What `agent_plugin.json` says of Python plugins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.document import Document, Place, read_document
from toolyard.core.problems import Position, Problem
from toolyard.plugins.kind import DESCRIPTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


KINDS = frozenset({"tool", "provider", "feature", "application"})


class PythonDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A descriptor that was read and fits."""

    entries: Sequence[tuple[str, Place]]
    """The plugins, each with where it is named."""
    subdirectory: str | None = None
    kinds: Sequence[str] = ()
    beside: Sequence[str] = ()
    """The folders of projects that it needs, relative to the descriptor."""


def read_python_descriptor(folder: str | Path) -> PythonDescriptor | list[Problem]:
    """Read the descriptor of a folder; all that is wrong with it otherwise."""
    document = read_document(Path(folder, DESCRIPTOR))
    if isinstance(document, Problem):
        return [missing(Path(folder)) if document.code == "config_unreadable" else document]
    value = document.value
    if not isinstance(value, dict):
        return [fault("a descriptor is an object", '{"entries": ["package.module.Class"]}', (), document)]
    problems = list(faults(value, document))
    if problems:
        return problems
    return PythonDescriptor(
        entries=[(entry, Place(document, ("entries", index))) for index, entry in enumerate(value["entries"])],
        subdirectory=value.get("subdirectory"),
        kinds=value.get("kinds") or (),
        beside=[each["path"] for each in value.get("local_workspace_dependencies") or ()],
    )


def faults(value: dict[str, Json], document: Document) -> list[Problem]:
    found: list[Problem] = []
    entries = value.get("entries")
    if not isinstance(entries, list) or not entries:
        if value.get("bash_tools"):
            return [is_bash(document)]
        message, hint = "'entries' must be a list with at least one entry", '{"entries": ["package.module.Class"]}'
        return [fault(message, hint, ("entries",), document)]
    for index, entry in enumerate(entries):
        if not is_dotted(entry):
            message, hint = "an entry is the dotted name of a class, a function or a module", '"package.module.Class"'
            found.append(fault(message, hint, ("entries", index), document))
    if not isinstance(value.get("subdirectory", ""), str):
        found.append(fault("'subdirectory' must be a string", "", ("subdirectory",), document))
    return [*found, *kind_faults(value.get("kinds"), document), *beside_faults(value, document)]


def kind_faults(kinds: Json, document: Document) -> list[Problem]:
    if kinds is None:
        return []
    hint = f"among {', '.join(sorted(KINDS))}"
    if not isinstance(kinds, list):
        return [fault("'kinds' must be a list", hint, ("kinds",), document)]
    return [
        fault(f"there is no kind {kind!r}", hint, ("kinds", index), document)
        for index, kind in enumerate(kinds)
        if not isinstance(kind, str) or kind.removesuffix("s") not in KINDS
    ]


def beside_faults(value: dict[str, Json], document: Document) -> list[Problem]:
    key = "local_workspace_dependencies"
    listed = value.get(key) or []
    hint = '{"name": "my-library", "path": "../my-library"}'
    if not isinstance(listed, list):
        return [fault(f"'{key}' must be a list", hint, (key,), document)]
    return [
        fault(f"an entry of '{key}' needs 'path', a string", hint, (key, index), document)
        for index, each in enumerate(listed)
        if not isinstance(each, dict) or not isinstance(each.get("path"), str) or "\0" in each["path"]
    ]


def is_dotted(entry: Json) -> bool:
    return isinstance(entry, str) and all(part.isidentifier() for part in entry.split("."))


def missing(folder: Path) -> Problem:
    if not os.path.isdir(folder):
        message, hint = "no such folder", "check the path"
        return Problem(code="plugin_missing", message=message, hint=hint, where=Position(file=folder))
    message = f"no {DESCRIPTOR} in this folder"
    hint = 'create it: {"entries": ["package.module.Class"]}, or name one in the configuration by "entry"'
    return Problem(code="plugin_descriptor", message=message, hint=hint, where=Position(file=folder))


def is_bash(document: Document) -> Problem:
    message = "this is a repository of bash tools"
    hint = 'load it with "bash:FOLDER", "bash+git:URL#REF" or {"bash_tool": …}'
    where = document.position(("bash_tools",))
    return Problem(code="plugin_path_is_bash", message=message, hint=hint, where=where)


def fault(message: str, hint: str, pointer: Pointer, document: Document) -> Problem:
    hint = f"for example {hint}" if hint.startswith(("{", '"')) else hint
    return Problem(code="plugin_descriptor", message=message, hint=hint, where=document.position(pointer))
