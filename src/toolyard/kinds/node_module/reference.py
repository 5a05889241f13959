"""How a configuration names Node packages and modules."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.settings import MISFITS
from toolyard.core.problems import Problem
from toolyard.files.inside import stays_inside
from toolyard.plugins.acquire.git_reference import read_git_reference
from toolyard.plugins.kind import Named, Reference, RepositoryFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Place
    from toolyard.core.tool import Json

SUFFIXES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
EXAMPLE = 'for example {"node_tool": {"path": "./my-tools"}}'


class NodeFile(Reference, frozen=True, kw_only=True):
    """One JavaScript module that stands alone."""

    file: str
    id: str | None = None
    export: str | None = None

    @property
    def paths(self) -> Sequence[str]:
        return (self.file,)

    @property
    def scripts(self) -> Sequence[str]:
        return self.paths


class NodeFolder(Reference, frozen=True, kw_only=True):
    """A folder with a Node package."""

    folder: str
    id: str | None = None
    """Only this one of its tools, or the name of the one that `entry` is."""
    entry: str | None = None
    export: str | None = None

    @property
    def paths(self) -> Sequence[str]:
        return (self.folder,)

    @property
    def scripts(self) -> Sequence[str]:
        return self.paths


class NodeGit(RepositoryFolder, frozen=True, kw_only=True):
    """A repository with a Node package."""

    id: str | None = None
    entry: str | None = None
    export: str | None = None


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`node_tool`: exactly one of `path`, `file` and `git`, and what narrows it."""

    path: str | None = None
    file: str | None = None
    git: str | None = None
    ref: str | None = None
    subdirectory: str | None = None
    id: str | None = None
    entry: str | None = None
    export: str | None = None


def read_path(name: str, at: Place) -> Named:
    """`node:PATH`, a folder or a file."""
    if not name:
        return names_nothing("node:", at)
    path = at.path(name)
    return Named(references=[NodeFolder(folder=path, at=at) if os.path.isdir(path) else NodeFile(file=path, at=at)])


def names_nothing(prefix: str, at: Place) -> Named:
    return Named(problems=[at.problem("plugin_spec", f"'{prefix}' names nothing", f'for example "{prefix}./my-tools"')])


def read_options(value: Json, at: Place) -> Named:
    from toolyard.plugins.spellings import unknown_key

    place = at.below("node_tool")
    try:
        options = msgspec.convert(value, NodeOptions)
    except MISFITS as error:
        known = NodeOptions.__struct_fields__
        if wrong := unknown_key(value, "node_tool", known, place):
            return Named(problems=[wrong])
        message = f"'node_tool': {str(error).replace('`', '')}"
        return Named(problems=[place.problem("plugin_spec", message, f"it takes {', '.join(known)}")])
    if fault := combination_fault(options):
        return Named(problems=[place.problem("plugin_spec", f"'node_tool' {fault}", EXAMPLE)])
    if options.git is not None:
        return read_git(options, at)
    narrowed = {"id": options.id, "export": options.export}
    if options.file is not None:
        return Named(references=[NodeFile(file=at.path(options.file), at=at, **narrowed)])
    folder = os.path.normpath(os.path.join(at.path(options.path or ""), options.subdirectory or ""))
    return Named(references=[NodeFolder(folder=folder, entry=options.entry, at=at, **narrowed)])


def read_git(options: NodeOptions, at: Place) -> Named:
    git = read_git_reference(options.git or "", options.ref or None, at.document.folder)
    if isinstance(git, Problem):
        return Named(problems=[git.at(at.position())])
    narrowed = {"id": options.id, "entry": options.entry, "export": options.export}
    return Named(references=[NodeGit(git=git, subdirectory=options.subdirectory, at=at, **narrowed)])


def combination_fault(options: NodeOptions) -> str | None:
    if sum(each is not None for each in (options.path, options.file, options.git)) != 1:
        return "needs exactly one of 'path', 'file' and 'git', a string"
    if options.ref is not None and options.git is None:
        return "has a 'ref', which only 'git' has"
    if options.subdirectory is not None and (options.file is not None or not stays_inside(options.subdirectory)):
        return "has a 'subdirectory' that is outside, or beside 'file'"
    if options.file is not None and options.entry not in (None, os.path.basename(options.file)):
        return (
            f"has an 'entry' that is not its file: a single file is its own entry, '{os.path.basename(options.file)}'"
        )
    return None
