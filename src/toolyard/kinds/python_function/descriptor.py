"""What `agent_plugin.json` says of Python plugins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.document import Place
from toolyard.core.problems import Position, Problem
from toolyard.plugins.kind import DESCRIPTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.tool import Json
    from toolyard.kinds.python_function.reference import Descriptors


KINDS = frozenset({"tool", "provider", "feature", "application"})


class PythonDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A descriptor that was read and fits."""

    entries: Sequence[tuple[str, Place]]
    """The plugins, each with where it is named."""
    subdirectory: str | None = None
    kinds: Sequence[str] = ()
    beside: Sequence[str] = ()
    """The folders of projects that it needs, relative to the descriptor."""


def read_python_descriptor(folder: str, descriptors: Descriptors) -> PythonDescriptor | list[Problem]:
    """Read the descriptor of a folder; all that is wrong with it otherwise."""
    document = descriptors.of(folder)
    if isinstance(document, Problem):
        return [missing(Path(folder)) if document.code == "config_unreadable" else document]
    value, top = document.value, Place(document, ())
    if not isinstance(value, dict):
        return [fault(top, "a descriptor is an object", '{"entries": ["package.module.Class"]}')]
    if problems := faults(value, top):
        return problems
    return PythonDescriptor(
        entries=[(entry, top.below("entries", index)) for index, entry in enumerate(value["entries"])],
        subdirectory=value.get("subdirectory"),
        kinds=value.get("kinds") or (),
        beside=[each["path"] for each in value.get("local_workspace_dependencies") or ()],
    )


def faults(value: dict[str, Json], top: Place) -> list[Problem]:
    entries, example = value.get("entries"), '{"entries": ["package.module.Class"]}'
    if value.get("bash_tools") and not (isinstance(entries, list) and entries):
        hint = 'load it with "bash:FOLDER", "bash+git:URL#REF" or {"bash_tool": …}'
        return [top.problem("plugin_path_is_bash", "this is a repository of bash tools", hint, "bash_tools")]
    if not isinstance(entries, list) or not entries:
        return [fault(top, "'entries' must be a list with at least one entry", example, "entries")]
    message = "an entry is the dotted name of a class, a function or a module"
    found = [
        fault(top, message, '"package.module.Class"', "entries", index)
        for index, entry in enumerate(entries)
        if not is_dotted(entry)
    ]
    if not isinstance(value.get("subdirectory", ""), str):
        found.append(fault(top, "'subdirectory' must be a string", "", "subdirectory"))
    return [*found, *kind_faults(value.get("kinds"), top), *beside_faults(value, top)]


def kind_faults(kinds: Json, top: Place) -> list[Problem]:
    if kinds is None:
        return []
    hint = f"among {', '.join(sorted(KINDS))}"
    if not isinstance(kinds, list):
        return [fault(top, "'kinds' must be a list", hint, "kinds")]
    return [
        fault(top, f"there is no kind {kind!r}", hint, "kinds", index)
        for index, kind in enumerate(kinds)
        if not isinstance(kind, str) or kind.removesuffix("s") not in KINDS
    ]


def beside_faults(value: dict[str, Json], top: Place) -> list[Problem]:
    key = "local_workspace_dependencies"
    listed = value.get(key) or []
    hint = '{"name": "my-library", "path": "../my-library"}'
    if not isinstance(listed, list):
        return [fault(top, f"'{key}' must be a list", hint, key)]
    return [
        fault(top, f"an entry of '{key}' needs 'path', a string", hint, key, index)
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


def fault(top: Place, message: str, hint: str, *below: str | int) -> Problem:
    hint = f"for example {hint}" if hint.startswith(("{", '"')) else hint
    return top.problem("plugin_descriptor", message, hint, *below)
