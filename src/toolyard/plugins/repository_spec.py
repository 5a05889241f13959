"""References to Python plugins, and to repositories that have to be fetched first."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.config.document import read_document
from toolyard.core.problems import Problem
from toolyard.plugins.acquire.git_reference import GitReference, read_git_reference, split_reference

if TYPE_CHECKING:
    from toolyard.config.document import Document, Pointer
    from toolyard.core.tool import Json


DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
KEYS = ("path", "git", "ref", "subdirectory", "entry")


class Reference(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Something that an entry of `plugins` refers to; equal if it is the same, wherever it is written."""

    pointer: Pointer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._meant() == other._meant()

    def __hash__(self) -> int:
        return hash(self._meant())

    def _meant(self) -> tuple[object, ...]:
        return (type(self), *(getattr(self, name) for name in self.__struct_fields__ if name != "pointer"))


class PythonClass(Reference, frozen=True, kw_only=True):
    """A class or function that can be imported, by its dotted name."""

    name: str


class PythonRepository(Reference, frozen=True, kw_only=True):
    """A folder, a file or a git repository with Python plugins."""

    origin: str | GitReference
    subdirectory: str | None = None
    entry: str | None = None
    """The one plugin that is meant, instead of those that the descriptor lists."""


class BashRepository(Reference, frozen=True, kw_only=True):
    """A git repository whose `agent_plugin.json` lists bash tool files."""

    git: GitReference
    subdirectory: str | None = None


RepositorySpec: TypeAlias = PythonClass | PythonRepository | BashRepository


def parse_repository(value: Json, pointer: Pointer, document: Document) -> RepositorySpec | Problem | None:
    """An entry of `plugins`, if it is one of these; relative paths start at the configuration file's folder."""
    reader = Reader(pointer, document)
    match value:
        case str() if value.startswith("path:"):
            return reader.python({"path": value.removeprefix("path:")})
        case str() if value.startswith("git+"):
            url, ref = split_reference(value.removeprefix("git+"))
            return reader.python({"git": url, "ref": ref})
        case str() if value.startswith("bash+git:"):
            url, ref = split_reference(value.removeprefix("bash+git:"))
            return reader.bash({"git": url, "ref": ref})
        case str() if DOTTED.fullmatch(value):
            return PythonClass(name=value, pointer=pointer)
        case {"bash_tool": {"git": _} as given}:
            return reader.bash(given)
        case {"path": _} | {"git": _}:
            return reader.python(value)
    return None


class Reader:
    """Reads one entry."""

    def __init__(self, pointer: Pointer, document: Document) -> None:
        self._pointer = pointer
        self._document = document

    def python(self, given: dict[str, Json]) -> PythonRepository | Problem:
        """A folder or a repository of Python plugins."""
        origin = self._wrong_keys(given) or (self._git(given) if "git" in given else self._path(given))
        if isinstance(origin, Problem):
            return origin
        return PythonRepository(
            origin=origin,
            subdirectory=given.get("subdirectory"),
            entry=given.get("entry"),
            pointer=self._pointer,
        )

    def bash(self, given: dict[str, Json]) -> BashRepository | Problem:
        """A repository of bash tools."""
        git = self._wrong_keys(given) or self._git(given)
        if isinstance(git, Problem):
            return git
        return BashRepository(git=git, subdirectory=given.get("subdirectory"), pointer=self._pointer)

    def _git(self, given: dict[str, Json]) -> GitReference | Problem:
        if "path" in given:
            return self._problem("a plugin has 'path' or 'git', not both", "leave one out", "path")
        reference = read_git_reference(given["git"], given.get("ref") or None, self._document.folder)
        place = self._document.position(self._pointer)
        return reference.at(place) if isinstance(reference, Problem) else reference

    def _path(self, given: dict[str, Json]) -> str | Problem:
        """A path as written, made absolute without following links, so that messages show what the user wrote."""
        name = given["path"]
        if not name:
            return self._problem("the path is empty", 'for example "path:./plugins/mine"')
        if given.get("ref"):
            return self._problem("'ref' is for a git repository", 'write {"git": …, "ref": …}, or leave it out', "ref")
        path = os.path.abspath(os.path.join(self._document.folder, os.path.expanduser(name)))
        if given.get("entry") is None and is_bash_repository(Path(path, given.get("subdirectory") or "")):
            return Problem(
                code="plugin_path_is_bash",
                message=f"'{name}' is a repository of bash tools, which 'path:' does not load",
                hint=f'write "bash:{name}"',
                where=self._document.position(self._pointer),
            )
        return path

    def _wrong_keys(self, given: dict[str, Json]) -> Problem | None:
        """Every key must be known, and text."""
        hint = f"it takes {', '.join(KEYS)}, each a string"
        for key, value in given.items():
            if key not in KEYS:
                return self._problem(f"a plugin has no '{key}'", hint, key)
            if (value is None and key in ("path", "git")) or not isinstance(value, str | None) or "\0" in (value or ""):
                return self._problem(f"'{key}' must be a string", hint, key)
        return None

    def _problem(self, message: str, hint: str, *below: str) -> Problem:
        where = self._document.position((*self._pointer, *below))
        return Problem(code="plugin_spec", message=message, hint=hint, where=where)


def is_bash_repository(path: Path) -> bool:
    """Whether a path holds bash tools and no Python ones."""
    descriptor = read_document(path / "agent_plugin.json")
    value = None if isinstance(descriptor, Problem) else descriptor.value
    listed = isinstance(value, dict) and "bash_tools" in value and not value.get("entries")
    return path.suffix in (".bash", ".sh") or listed
