"""How a configuration names bash tools, and the kind behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.core.problems import Problem
from toolyard.kinds.bash_script.settings import BashSettings
from toolyard.plugins.acquire.git_reference import GitReference, git_entry, split_reference
from toolyard.plugins.kind import DESCRIPTOR, Named, Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Place
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.bash_script.author import BashAuthoring
    from toolyard.plugins.host import Host
    from toolyard.plugins.kind import Source

SUFFIXES = (".bash", ".sh")


class BashFile(Reference, frozen=True, kw_only=True):
    """One bash tool file."""

    file: str

    @property
    def paths(self) -> Sequence[str]:
        """The file."""
        return (self.file,)


class BashRepository(Reference, frozen=True, kw_only=True):
    """A git repository whose `agent_plugin.json` lists bash tool files."""

    git: GitReference
    subdirectory: str | None = None

    @property
    def repository(self) -> GitReference:
        """The repository."""
        return self.git

    @property
    def paths(self) -> Sequence[str]:
        """The repository, if it is on this machine."""
        return () if self.git.is_remote else (self.git.url,)


class BashScripts:
    """Bash files as tools."""

    name = "bash"
    spellings = (
        "bash:PATH",
        "bash+git:URL#REF",
        '{"bash_tool": {"file": PATH}}',
        '{"bash_tool": {"path": FOLDER}}',
        '{"bash_tool": {"git": URL}}',
    )
    suffixes = SUFFIXES
    settings = BashSettings

    def read(self, entry: Json, at: Place) -> Named | None:
        """A file, a folder whose descriptor lists files, or a repository with such a folder."""
        match entry:
            case str() if entry.startswith("bash:"):
                return read_path(entry.removeprefix("bash:"), at)
            case str() if entry.startswith("bash+git:"):
                url, ref = split_reference(entry.removeprefix("bash+git:"))
                return read_repository({"git": url, "ref": ref}, at)
            case {"bash_tool": {"git": _} as given}:
                return read_repository(given, at)
            case {"bash_tool": options}:
                return read_options(options, at)
        return None

    def whole_file(self, value: JsonObject, path: Path) -> None:
        """No file stands for bash tools."""

    def stores(self, policy: Any, plugin_cache: Path) -> Sequence[str]:  # noqa: ARG002 - the protocol's
        """None beside the plugin cache."""
        return ()

    def refusal(self, reference: BashFile | BashRepository, host: Host) -> Problem | None:
        """Nothing of a bash tool runs unless the configuration says so."""
        if not host.settings(BashSettings).allow_bash_tools:
            message = "bash tools are not allowed by this configuration"
            hint = 'set "plugin_policy": {"allow_bash_tools": true}'
            return reference.at.problem("bash_tools_not_allowed", message, hint)
        if host.interpreter("bash") is None:
            hint = "install bash 4.4 or newer and put it on PATH"
            return reference.at.problem("bash_missing", "there is no bash on PATH", hint)
        return None

    def source(self, reference: BashFile | BashRepository, host: Host) -> Source:
        """The file, or all files of the repository."""
        if isinstance(reference, BashFile):
            from toolyard.kinds.bash_script.source import BashFileSource

            return BashFileSource(reference.file, host)
        from toolyard.kinds.bash_script.repository import BashRepositorySource

        return BashRepositorySource(reference, host)

    @property
    def author(self) -> BashAuthoring:
        """For those who write bash tools."""
        from toolyard.kinds.bash_script.author import BashAuthoring

        return BashAuthoring()


def read_path(name: str, at: Place) -> Named:
    """`bash:` takes a folder or a single file."""
    if not name:
        return Named(problems=[at.problem("plugin_spec", "'bash:' names no path", 'for example "bash:./tools"')])
    path = at.path(name)
    return read_folder(path, at) if os.path.isdir(path) else Named(references=[BashFile(file=path, at=at)])


def read_folder(folder: str, at: Place) -> Named:
    """The files that a folder's descriptor lists; links stay as written."""
    from toolyard.kinds.bash_script.descriptor import bash_files

    files, problems = bash_files(Path(folder))
    return Named(
        references=[BashFile(file=os.path.abspath(file), at=at) for file in files],
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
    from toolyard.plugins.spellings import nearest_of, short

    place = at.below("bash_tool")
    match options:
        case {"file": str(file)} if len(options) == 1:
            return Named(references=[BashFile(file=at.path(file), at=at)])
        case {"path": str(folder), **rest} if set(rest) <= {"subdirectory"}:
            below = rest.get("subdirectory") or ""
            top = at.path(folder)
            inner = os.path.normpath(os.path.join(top, str(below)))
            if isinstance(below, str) and is_inside(inner, top):
                return read_folder(inner, at)
            message = f"the subdirectory {short(below)} is outside the folder"
            return Named(problems=[place.problem("plugin_outside", message, "name a folder below it", "subdirectory")])
    known = ("file", "path", "subdirectory", "git", "ref")
    for key in options if isinstance(options, dict) else ():
        if key not in known:
            problem = place.problem("plugin_spec", f"'bash_tool' has no '{key}'", nearest_of(key, known), key)
            return Named(problems=[problem])
    message, hint = "'bash_tool' needs one of 'file', 'path' and 'git', a string", "only 'path' has a 'subdirectory'"
    if not (isinstance(options, dict) and "file" in options):
        hint = 'for example {"bash_tool": {"file": "./tools/my_tool.bash"}}'
    return Named(problems=[at.problem("plugin_spec", message, hint)])
