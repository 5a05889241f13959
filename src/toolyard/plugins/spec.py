"""Every spelling of a plugin reference, as one union."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias, TypeVar

import msgspec

from toolyard.config.settings import MISFITS, ResourceLimits
from toolyard.core.problems import Problem
from toolyard.plugins.repository_spec import Reference, RepositorySpec, parse_repository

if TYPE_CHECKING:
    from toolyard.config.document import Document, Pointer
    from toolyard.core.tool import Json


MANIFEST = "tools.json"


class BashFile(msgspec.Struct, frozen=True, kw_only=True):
    """One bash tool file."""

    file: str
    pointer: Pointer


class BashDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """A folder whose `agent_plugin.json` lists bash tool files."""

    folder: str
    pointer: Pointer


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`shell_session`: how a live bash session treats its commands."""

    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    on_timeout: Literal["kill", "background"] = "kill"
    """Whether a command past its time is ended, or goes on as a job."""
    max_jobs: Annotated[int, msgspec.Meta(ge=1)] = 64
    tty: bool = False
    """Whether commands print to a terminal instead of a pipe."""
    limits: ResourceLimits = ResourceLimits()
    """Instead of the general ones, as far as it says something."""


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`shell_command`: how the one-shot shell treats its commands."""

    limits: ResourceLimits = ResourceLimits()
    """Instead of the general ones, as far as it says something."""


class ShellCommand(Reference, frozen=True, kw_only=True):
    """The one-shot shell: the tool `shell`."""

    word: ClassVar[str] = "shell:command"
    options: CommandOptions = CommandOptions()


class ShellSession(Reference, frozen=True, kw_only=True):
    """A live bash session: the tools `bash` and `bash_job`."""

    word: ClassVar[str] = "shell:session"
    options: SessionOptions


class ManifestFile(Reference, frozen=True, kw_only=True):
    """A `tools.json` manifest."""

    path: str


class NodeFile(Reference, frozen=True, kw_only=True):
    """One JavaScript module that stands alone."""

    file: str
    id: str | None = None
    export: str | None = None


class NodeFolder(Reference, frozen=True, kw_only=True):
    """A folder with a Node package."""

    folder: str
    id: str | None = None
    """Only this one of its tools, or the name of the one that `entry` is."""
    entry: str | None = None
    export: str | None = None


class NodeGit(Reference, frozen=True, kw_only=True):
    """A repository with a Node package."""

    git: str
    ref: str | None = None
    subdirectory: str | None = None
    id: str | None = None
    entry: str | None = None
    export: str | None = None


PluginSpec: TypeAlias = (
    BashFile
    | BashDirectory
    | ShellCommand
    | ShellSession
    | ManifestFile
    | NodeFile
    | NodeFolder
    | NodeGit
    | RepositorySpec
)

FORMS = (
    '"package.module.Class", "path:FOLDER", "git+URL#REF", {"path": FOLDER, "entry": CLASS}, '
    '"bash:PATH", {"bash_tool": {"file": PATH}}, {"bash_tool": {"path": FOLDER}}, "manifest:PATH", '
    '{"manifest": {"path": PATH}}, "node:PATH", "node+git:URL#REF", {"node_tool": {"path": FOLDER}}, '
    '"shell:session" or "shell:command"'
)


def parse_plugin(value: Json, pointer: Pointer, document: Document) -> PluginSpec | Problem:
    """One entry of `plugins`; relative paths start at the configuration file's folder."""
    if isinstance(value, dict) and len(value) > 1 and (crowded := beside_another(value, pointer, document)):
        return crowded
    if repository := parse_repository(value, pointer, document):
        return repository
    match value:
        case str() if value.startswith("bash:"):
            return bash_path(value.removeprefix("bash:"), pointer, document)
        case str() if value.startswith("manifest:"):
            return manifest_file(value.removeprefix("manifest:"), pointer, document)
        case {"manifest": {"path": str(path)}}:
            return manifest_file(path, pointer, document)
        case {"manifest": _}:
            return manifest_file("", pointer, document)
        case "shell:command":
            return ShellCommand(options=CommandOptions(), pointer=pointer)
        case "shell:session":
            return ShellSession(options=SessionOptions(), pointer=pointer)
        case {"shell_command": dict(options)}:
            read = read_options(CommandOptions, options, (*pointer, "shell_command"), document)
            return read if isinstance(read, Problem) else ShellCommand(options=read, pointer=pointer)
        case {"shell_session": dict(options)}:
            found = read_options(SessionOptions, options, (*pointer, "shell_session"), document)
            return found if isinstance(found, Problem) else ShellSession(options=found, pointer=pointer)
        case str() if value.startswith(("node:", "node+git:")):
            from toolyard.kinds.node_module.reference import parse_node_word

            return parse_node_word(value, pointer, document)
        case {"node_tool": options}:
            from toolyard.kinds.node_module.reference import parse_node_tool

            return parse_node_tool(options, pointer, document)
        case {"bash_tool": options}:
            return bash_tool(options, pointer, document)
        case str() | dict():
            from toolyard.plugins.spelling import nearest_form

            message = f"no plugin source here loads {short(value)}"
            return problem("plugin_unsupported", message, nearest_form(value) or FORMS, pointer, document)
    return problem("plugin_spec", f"a plugin is a string or an object, not {short(value)}", FORMS, pointer, document)


Options = TypeVar("Options", bound=msgspec.Struct)


def read_options(
    kind: type[Options], options: dict[str, Json], pointer: Pointer, document: Document
) -> Options | Problem:
    """The options that an entry has of its own."""
    try:
        return msgspec.convert(options, kind)
    except MISFITS as error:
        message = f"'{pointer[-1]}': {str(error).replace('`', '')}"
        known = ", ".join(kind.__struct_fields__)
        return problem("config_type", message, f"it takes {known}", pointer, document)


def beside_another(value: dict[str, Json], pointer: Pointer, document: Document) -> Problem | None:
    """An object that is everything about a plugin has nothing beside it."""
    from toolyard.plugins.spelling import OBJECTS

    form = next((key for key in value if key in OBJECTS), None)
    if form is None:
        return None
    other = next(key for key in value if key != form)
    hint = "all about it goes into that object; another plugin is another entry"
    return problem("plugin_spec", f"'{other}' means nothing beside '{form}'", hint, (*pointer, other), document)


def bash_tool(options: Json, pointer: Pointer, document: Document) -> PluginSpec | Problem:
    """A file, or a folder and where in it the tools are."""
    from toolyard.plugins.spelling import nearest_of

    place = (*pointer, "bash_tool")
    match options:
        case {"file": str(file)} if len(options) == 1:
            return BashFile(file=absolute(file, document), pointer=pointer)
        case {"path": str(folder), **rest} if set(rest) <= {"subdirectory"}:
            below = rest.get("subdirectory") or ""
            top = absolute(folder, document)
            inner = os.path.normpath(os.path.join(top, str(below)))
            if not isinstance(below, str) or os.path.commonpath([top, inner]) != top:
                message = f"the subdirectory {short(below)} is outside the folder"
                return problem("plugin_outside", message, "name a folder below it", (*place, "subdirectory"), document)
            return BashDirectory(folder=inner, pointer=pointer)
    known = ("file", "path", "subdirectory", "git", "ref")
    for key in options if isinstance(options, dict) else ():
        if key not in known:
            return problem(
                "plugin_spec", f"'bash_tool' has no '{key}'", nearest_of(key, known), (*place, key), document
            )
    message, hint = "'bash_tool' needs one of 'file', 'path' and 'git', a string", "only 'path' has a 'subdirectory'"
    example = 'for example {"bash_tool": {"file": "./tools/my_tool.bash"}}'
    has_file = isinstance(options, dict) and "file" in options
    return problem("plugin_spec", message, hint if has_file else example, pointer, document)


def manifest_file(name: str, pointer: Pointer, document: Document) -> ManifestFile | Problem:
    """A manifest, or the folder that it is in."""
    if not name:
        hint = f'for example "manifest:./{MANIFEST}" or {{"manifest": {{"path": "./{MANIFEST}"}}}}'
        return problem("plugin_spec", "'manifest' names no path", hint, pointer, document)
    path = absolute(name, document)
    return ManifestFile(path=os.path.join(path, MANIFEST) if os.path.isdir(path) else path, pointer=pointer)


def bash_path(name: str, pointer: Pointer, document: Document) -> PluginSpec | Problem:
    """`bash:` takes a folder or a single file."""
    if not name:
        return problem("plugin_spec", "'bash:' names no path", 'for example "bash:./tools"', pointer, document)
    path = absolute(name, document)
    return BashDirectory(folder=path, pointer=pointer) if os.path.isdir(path) else BashFile(file=path, pointer=pointer)


def absolute(name: str, document: Document) -> str:
    """A path as written, made absolute without following links, so that messages show what the user wrote."""
    return os.path.abspath(os.path.join(document.folder, os.path.expanduser(name)))


def problem(code: str, message: str, hint: str, pointer: Pointer, document: Document) -> Problem:
    return Problem(code=code, message=message, hint=hint, where=document.position(pointer))


def short(value: Json) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
