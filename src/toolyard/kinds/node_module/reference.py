"""The spellings of a Node package or module in a configuration."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.config.settings import MISFITS
from toolyard.plugins.spec import NodeFile, NodeFolder, NodeGit, absolute, problem
from toolyard.plugins.spelling import nearest_of

if TYPE_CHECKING:
    from toolyard.config.document import Document, Pointer
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json


ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[^/]+@[^/]+:", re.IGNORECASE)
"""What is not the path of a folder here."""
NodeSpec: TypeAlias = NodeFile | NodeFolder | NodeGit
EXAMPLE = 'for example {"node_tool": {"path": "./my-tools"}}'


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


def parse_node_word(word: str, pointer: Pointer, document: Document) -> NodeSpec | Problem:
    """`node:PATH`, a folder or a file, or `node+git:URL#REF`, where the reference is what follows the last `#`."""
    kind, _, name = word.partition(":")
    if not name:
        return problem("plugin_spec", f"'{kind}:' names nothing", f'for example "{kind}:./my-tools"', pointer, document)
    if kind == "node+git":
        git, mark, ref = name.rpartition("#")
        return NodeGit(git=address(git if mark else name, document), ref=(ref if mark else "") or None, pointer=pointer)
    path = absolute(name, document)
    return NodeFolder(folder=path, pointer=pointer) if os.path.isdir(path) else NodeFile(file=path, pointer=pointer)


def parse_node_tool(value: Json, pointer: Pointer, document: Document) -> NodeSpec | Problem:
    """The object form."""
    place = (*pointer, "node_tool")
    try:
        options = msgspec.convert(value, NodeOptions)
    except MISFITS as error:
        known = NodeOptions.__struct_fields__
        for key in value if isinstance(value, dict) else ():
            if key not in known:
                return problem(
                    "plugin_spec", f"'node_tool' has no '{key}'", nearest_of(key, known), (*place, key), document
                )
        message = f"'node_tool': {str(error).replace('`', '')}"
        return problem("plugin_spec", message, f"it takes {', '.join(known)}", place, document)
    if fault := combination_fault(options):
        return problem("plugin_spec", f"'node_tool' {fault}", EXAMPLE, place, document)
    return from_options(options, pointer, document)


def combination_fault(options: NodeOptions) -> str | None:
    """Why the options do not go together."""
    if sum(each is not None for each in (options.path, options.file, options.git)) != 1:
        return "needs exactly one of 'path', 'file' and 'git', a string"
    if options.ref is not None and options.git is None:
        return "has a 'ref', which only 'git' has"
    if options.subdirectory is not None and (options.file is not None or leaves(options.subdirectory)):
        return "has a 'subdirectory' that is outside, or beside 'file'"
    if options.file is not None and options.entry not in (None, os.path.basename(options.file)):
        return (
            f"has an 'entry' that is not its file: a single file is its own entry, '{os.path.basename(options.file)}'"
        )
    return None


def from_options(options: NodeOptions, pointer: Pointer, document: Document) -> NodeSpec:
    id, entry, export = options.id, options.entry, options.export
    if options.file is not None:
        return NodeFile(file=absolute(options.file, document), id=id, export=export, pointer=pointer)
    if options.path is not None:
        folder = os.path.join(absolute(options.path, document), options.subdirectory or "")
        return NodeFolder(folder=os.path.normpath(folder), id=id, entry=entry, export=export, pointer=pointer)
    return NodeGit(
        git=address(options.git or "", document),
        ref=options.ref,
        subdirectory=options.subdirectory,
        id=id,
        entry=entry,
        export=export,
        pointer=pointer,
    )


def address(name: str, document: Document) -> str:
    """A repository's address as it is; one that is a folder here, as the folder."""
    is_odd = name.startswith("-") or "::" in name  # never made to look like a path: fetching refuses it in words
    return name if is_odd or ADDRESS.match(name) else absolute(name, document)


def leaves(subdirectory: str) -> bool:
    normal = os.path.normpath(subdirectory)
    return os.path.isabs(normal) or normal.split(os.sep)[0] == ".."
