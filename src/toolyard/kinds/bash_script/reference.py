"""How a configuration names bash tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.document import Place, read_document
from toolyard.core.problems import Position, Problem
from toolyard.files.inside import leads_inside
from toolyard.plugins.acquire.git_reference import git_entry
from toolyard.plugins.kind import DESCRIPTOR, Named, Reference, RepositoryFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.tool import Json
    from toolyard.files.door import Door

SUFFIXES = (".bash", ".sh")
MODES = ("flags", "positional", "json", "comments")
"""The ways in which arguments can reach a script."""


class BashFile(Reference, frozen=True, kw_only=True):
    """One bash tool file."""

    file: str
    folder: str = ""
    """The one that an entry names, if it names one: its scripts may need all that is in there."""

    @property
    def paths(self) -> Sequence[str]:
        """The file, or the folder that it belongs to."""
        return (self.folder or self.file,)

    @property
    def scripts(self) -> Sequence[str]:
        """The folder as well, with whatever the script reads there; both, since a folder may be the workspace."""
        return (self.file, *((self.folder, os.path.join(self.folder, DESCRIPTOR)) if self.folder else ()))

    def _meant(self) -> tuple[object, ...]:
        return (type(self), self.file)  # the same script, whether or not its folder is named


class BashRepository(RepositoryFolder, frozen=True, kw_only=True):
    """A git repository whose `agent_plugin.json` lists bash tool files."""


def read_path(name: str, at: Place) -> Named:
    """`bash:` takes a folder or a single file."""
    if not name:
        return Named(problems=[at.problem("plugin_spec", "'bash:' names no path", 'for example "bash:./tools"')])
    path = at.path(name)
    return read_folder(path, path, at) if os.path.isdir(path) else Named(references=[BashFile(file=path, at=at)])


def read_folder(folder: str, top: str, at: Place) -> Named:
    """The files that a folder's descriptor lists, of a tree of which all may be needed; links stay as written."""
    files, problems = bash_files(Path(folder), at.document.door)
    return Named(
        references=[BashFile(file=os.path.abspath(file), folder=top, at=at) for file in files],
        problems=problems,
        watched=[os.path.join(folder, DESCRIPTOR)],
    )


def read_repository(given: dict[str, Json], at: Place) -> Named:
    read = git_entry(given, at, keys=("git", "ref", "subdirectory"))
    if isinstance(read, Problem):
        return Named(problems=[read])
    return Named(references=[BashRepository(git=read, subdirectory=given.get("subdirectory"), at=at)])


def read_options(options: Json, at: Place) -> Named:
    """A file, or a folder and where in it the tools are."""
    from toolyard.files.inside import is_inside
    from toolyard.plugins.spellings import short, unknown_key

    place = at.below("bash_tool")
    match options:
        case {"file": str(file)} if len(options) == 1:
            return Named(references=[BashFile(file=at.path(file), at=at)])
        case {"path": str(folder), **rest} if set(rest) <= {"subdirectory"}:
            below = rest.get("subdirectory") or ""
            top = at.path(folder)
            inner = os.path.normpath(os.path.join(top, str(below)))
            if isinstance(below, str) and is_inside(inner, top):
                return read_folder(inner, top, at)
            message = f"the subdirectory {short(below)} is outside the folder"
            return Named(problems=[place.problem("plugin_outside", message, "name a folder below it", "subdirectory")])
    known = ("file", "path", "subdirectory", "git", "ref")
    if wrong := unknown_key(options, "bash_tool", known, place):
        return Named(problems=[wrong])
    message, hint = "'bash_tool' needs one of 'file', 'path' and 'git', a string", "only 'path' has a 'subdirectory'"
    if not (isinstance(options, dict) and "file" in options):
        hint = 'for example {"bash_tool": {"file": "./tools/my_tool.bash"}}'
    return Named(problems=[at.problem("plugin_spec", message, hint)])


def bash_files(folder: Path, door: Door) -> tuple[list[Path], list[Problem]]:
    """The tool files that a folder lists, each inside the folder."""
    if not folder.is_dir():
        where = Position(file=folder)
        return [], [Problem(code="plugin_missing", message="no such folder", hint="check the path", where=where)]
    descriptor = read_document(folder / DESCRIPTOR, door)
    if isinstance(descriptor, Problem):
        return [], [explain_missing(descriptor, folder)]
    listed = descriptor.value.get("bash_tools") if isinstance(descriptor.value, dict) else None
    at = Place(descriptor, ("bash_tools",))
    if not isinstance(listed, list) or not listed:
        message = "'bash_tools' must be a list with at least one entry"
        hint = 'for example {"bash_tools": [{"file": "my_tool.bash"}]}'
        return [], [at.problem("plugin_descriptor", message, hint)]
    found = [listed_file(entry, at.below(index), folder) for index, entry in enumerate(listed)]
    return [one for one in found if isinstance(one, Path)], [one for one in found if isinstance(one, Problem)]


def listed_file(entry: Json, at: Place, folder: Path) -> Path | Problem:
    name = entry.get("file") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        message = "an entry of 'bash_tools' needs 'file', a string"
        return at.problem("plugin_descriptor", message, 'for example {"file": "my_tool.bash"}')
    if leads_inside(os.path.join(folder, name), str(folder)):
        return folder / name
    hint = "a repository lists only files of its own"
    return at.problem("plugin_outside", f"'{name}' is outside the repository", hint, "file")


def explain_missing(problem: Problem, folder: Path) -> Problem:
    """A folder without a descriptor is the commonest mistake; say which line would have loaded it."""
    if problem.code != "config_unreadable":
        return problem
    scripts = sorted(path.name for path in folder.glob("*.bash"))
    hint = f'create it: {{"bash_tools": [{{"file": "{scripts[0] if scripts else "my_tool.bash"}"}}]}}'
    return Problem(
        code="plugin_descriptor", message=f"no {DESCRIPTOR} in this folder", hint=hint, where=Position(file=folder)
    )
