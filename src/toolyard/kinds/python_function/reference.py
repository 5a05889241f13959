"""How a configuration names Python plugins."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from toolyard.config.document import Document, read_document
from toolyard.core.problems import Problem
from toolyard.core.regexes import late_pattern
from toolyard.plugins.acquire.git_reference import GitReference, git_entry, wrong_keys
from toolyard.plugins.kind import DESCRIPTOR, Named, Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Place
    from toolyard.core.tool import Json
    from toolyard.files.door import Door
    from toolyard.plugins.kind import Scope

DOTTED = late_pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
KEYS = ("path", "git", "ref", "subdirectory", "entry")
SCRIPTS = (".bash", ".sh")


class Descriptors:
    """The descriptors of folders, each read once: the sandbox is laid out by the same bytes that are loaded."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._known: dict[str, Document | Problem] = {}

    def of(self, folder: str) -> Document | Problem:
        """The descriptor of a folder as it was when it was first asked for."""
        if folder not in self._known:
            self._known[folder] = read_document(Path(folder, DESCRIPTOR), self._door)
        return self._known[folder]

    def value_of(self, folder: str) -> dict[str, Json]:
        """What it says; nothing when that is not to be had."""
        document = self.of(folder)
        return document.value if isinstance(document, Document) and isinstance(document.value, dict) else {}


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
            return places_of(found)
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
    descriptors: Descriptors

    @property
    def repository(self) -> GitReference | None:
        return self.origin if isinstance(self.origin, GitReference) else None

    @property
    def paths(self) -> Sequence[str]:
        """The folder with the projects that its descriptor names beside it, or the repository if that is here.

        A commit that is named by its whole number is the same whatever becomes of its repository.
        """
        if isinstance(self.origin, GitReference):
            return () if self.origin.is_remote or self.origin.is_whole_commit else (self.origin.url,)
        return (self.origin, *projects_beside(self.origin, self.subdirectory, self.descriptors))

    def _meant(self) -> tuple[object, ...]:
        return (type(self), self.origin, self.subdirectory, self.entry)


def is_single(path: str) -> bool:
    """Whether a path is a module by itself, which may import others from beside it."""
    return path.endswith(".py") and os.path.basename(path) != "__init__.py" and os.path.isfile(path)


def find_module(top: str) -> importlib.machinery.ModuleSpec | None:
    """Where Python finds a top-level module; nothing of it is run."""
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


def places_of(found: importlib.machinery.ModuleSpec) -> list[str]:
    """The file and the folders of a module."""
    return [path for path in (found.origin, *(found.submodule_search_locations or ())) if path and os.path.isabs(path)]


def projects_beside(path: str, subdirectory: str | None, descriptors: Descriptors) -> list[str]:
    """The projects that a descriptor says are needed too: they are run as well."""
    for folder in possible_places(path, subdirectory):
        listed = descriptors.value_of(folder).get("local_workspace_dependencies")
        if isinstance(listed, list):
            named = [each.get("path") for each in listed if isinstance(each, dict)]
            return [os.path.realpath(os.path.join(folder, name)) for name in named if isinstance(name, str)]
    return []


def possible_places(path: str, subdirectory: str | None) -> list[str]:
    """The folders whose descriptor may be meant, as loading will look for them."""
    inner = os.path.normpath(os.path.join(path, subdirectory)) if subdirectory and "\0" not in subdirectory else ""
    return [place for place in (inner, os.path.normpath(path)) if place]


def read_project(given: dict[str, Json], at: Place) -> Named:
    """A folder, a file or a repository of Python plugins."""
    wrong = wrong_keys(given, at, KEYS)
    if wrong is None and "git" in given and "path" in given:
        wrong = at.problem("plugin_spec", "a plugin has 'path' or 'git', not both", "leave one out", "path")
    descriptors = Descriptors(at.document.door)
    origin = wrong or (git_entry(given, at, keys=KEYS) if "git" in given else read_path(given, at, descriptors))
    if isinstance(origin, Problem):
        return Named(problems=[origin])
    subdirectory, entry = given.get("subdirectory"), given.get("entry")
    reference = PythonProject(origin=origin, subdirectory=subdirectory, entry=entry, descriptors=descriptors, at=at)
    here = possible_places(origin, subdirectory) if isinstance(origin, str) and not origin.endswith(".py") else []
    return Named(references=[reference], watched=[os.path.join(folder, DESCRIPTOR) for folder in here])


def read_path(given: dict[str, Json], at: Place, descriptors: Descriptors) -> str | Problem:
    name = given["path"]
    if not name:
        return at.problem("plugin_spec", "the path is empty", 'for example "path:./plugins/mine"')
    if given.get("ref"):
        hint = 'write {"git": …, "ref": …}, or leave it out'
        return at.problem("plugin_spec", "'ref' is for a git repository", hint, "ref")
    path = at.path(name)
    if given.get("entry") is None and holds_scripts(path, given.get("subdirectory"), descriptors):
        message = f"'{name}' is a repository of bash tools, which 'path:' does not load"
        return at.problem("plugin_path_is_bash", message, f'write "bash:{name}"')
    return path


def holds_scripts(path: str, subdirectory: str | None, descriptors: Descriptors) -> bool:
    """Whether a path holds scripts for another kind of tool, and nothing in Python."""
    value = descriptors.value_of(possible_places(path, subdirectory)[0])
    return path.endswith(SCRIPTS) or ("bash_tools" in value and not value.get("entries"))


def pip_cache(named: str | None, plugin_cache: Path, folder: str) -> Path:
    """Where the installer keeps what it downloaded; a relative path starts at the configuration's folder."""
    if not named:
        return plugin_cache.parent / "pip"
    return Path(os.path.normpath(os.path.join(folder, os.path.expanduser(named))))
