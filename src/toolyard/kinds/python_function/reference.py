"""How a configuration names Python plugins."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from toolyard.config.document import read_document
from toolyard.core.problems import Problem
from toolyard.plugins.acquire.git_reference import GitReference, git_entry, wrong_keys
from toolyard.plugins.kind import DESCRIPTOR, Named, Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Place
    from toolyard.core.tool import Json
    from toolyard.plugins.kind import Scope

DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
KEYS = ("path", "git", "ref", "subdirectory", "entry")
SCRIPTS = (".bash", ".sh")


class PythonReference(Reference, frozen=True, kw_only=True):
    """Python plugins run in the application itself, and are made for a configuration."""

    scope: ClassVar[Scope] = "config"

    @property
    def roots(self) -> Sequence[str]:
        """Whatever of them is on this machine is run by the application, with what it imports from beside it."""
        from toolyard.plugins.author_code.neighbours import with_neighbours

        paths = self.paths
        return [each for path in paths for each in (with_neighbours(path) if is_single(path) else (path,))]


class PythonName(PythonReference, frozen=True, kw_only=True):
    """A class, a function or a module that can be imported, by its dotted name."""

    name: str

    @property
    def paths(self) -> Sequence[str]:
        """Where Python finds it by itself, or else what is beside the configuration."""
        top = self.name.partition(".")[0]
        found = find_module(top)
        if found is not None:
            return [path for path in (found.origin, *(found.submodule_search_locations or ())) if path]
        return [path for path in self._beside() if os.path.exists(path)]

    @property
    def roots(self) -> Sequence[str]:
        """Also what would be found beside the configuration if it came to be."""
        return super().roots if find_module(self.name.partition(".")[0]) else [*super().roots, *self._beside()]

    def _beside(self) -> tuple[str, str]:
        place = os.path.join(self.at.document.folder, self.name.partition(".")[0])
        return place, f"{place}.py"


class PythonProject(PythonReference, frozen=True, kw_only=True):
    """A folder, a file or a git repository with Python plugins."""

    origin: str | GitReference
    subdirectory: str | None = None
    entry: str | None = None
    """The one plugin that is meant, instead of those that the descriptor lists."""

    @property
    def repository(self) -> GitReference | None:
        return self.origin if isinstance(self.origin, GitReference) else None

    @property
    def paths(self) -> Sequence[str]:
        """The folder with the projects that its descriptor names beside it, or the repository if that is here."""
        if isinstance(self.origin, GitReference):
            return () if self.origin.is_remote else (self.origin.url,)
        return (self.origin, *projects_beside(self.origin, self.subdirectory))


def is_single(path: str) -> bool:
    """Whether a path is a module by itself, which may import others from beside it."""
    return path.endswith(".py") and os.path.basename(path) != "__init__.py" and os.path.isfile(path)


def find_module(top: str) -> importlib.machinery.ModuleSpec | None:
    """Where Python finds a top-level module; nothing of it is run."""
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


def projects_beside(path: str, subdirectory: str | None) -> list[str]:
    """The projects that a descriptor says are needed too: they are run as well."""
    for folder in (os.path.join(path, subdirectory or ""), path):
        descriptor = read_document(Path(folder, DESCRIPTOR))
        value = None if isinstance(descriptor, Problem) else descriptor.value
        listed = value.get("local_workspace_dependencies") if isinstance(value, dict) else None
        if isinstance(listed, list):
            named = [each.get("path") for each in listed if isinstance(each, dict)]
            return [os.path.realpath(os.path.join(folder, name)) for name in named if isinstance(name, str)]
    return []


def read_project(given: dict[str, Json], at: Place) -> Named:
    """A folder, a file or a repository of Python plugins."""
    wrong = wrong_keys(given, at, KEYS)
    if wrong is None and "git" in given and "path" in given:
        wrong = at.problem("plugin_spec", "a plugin has 'path' or 'git', not both", "leave one out", "path")
    origin = wrong or (git_entry(given, at, keys=KEYS) if "git" in given else read_path(given, at))
    if isinstance(origin, Problem):
        return Named(problems=[origin])
    reference = PythonProject(origin=origin, subdirectory=given.get("subdirectory"), entry=given.get("entry"), at=at)
    return Named(references=[reference])


def read_path(given: dict[str, Json], at: Place) -> str | Problem:
    name = given["path"]
    if not name:
        return at.problem("plugin_spec", "the path is empty", 'for example "path:./plugins/mine"')
    if given.get("ref"):
        hint = 'write {"git": …, "ref": …}, or leave it out'
        return at.problem("plugin_spec", "'ref' is for a git repository", hint, "ref")
    path = at.path(name)
    if given.get("entry") is None and holds_scripts(Path(path, given.get("subdirectory") or "")):
        message = f"'{name}' is a repository of bash tools, which 'path:' does not load"
        return at.problem("plugin_path_is_bash", message, f'write "bash:{name}"')
    return path


def holds_scripts(path: Path) -> bool:
    """Whether a path holds scripts for another kind of tool, and nothing in Python."""
    descriptor = read_document(path / DESCRIPTOR)
    value = None if isinstance(descriptor, Problem) else descriptor.value
    listed = isinstance(value, dict) and "bash_tools" in value and not value.get("entries")
    return path.suffix in SCRIPTS or listed


def pip_cache(named: str | None, plugin_cache: Path) -> Path:
    """Where the installer keeps what it downloaded."""
    return Path(os.path.abspath(named)) if named else plugin_cache.parent / "pip"
