"""Fetching repositories again: a remote branch is otherwise what it was when it was first fetched."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolyard.core.problems import Problem
from toolyard.plugins.acquire.git_reference import GitReference, read_git_reference
from toolyard.plugins.repository_spec import BashRepository, PythonRepository
from toolyard.plugins.spec import NodeGit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from toolyard.config.document import Document
    from toolyard.plugins.acquire.acquirer import Acquirer
    from toolyard.plugins.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository that a configuration names."""

    reference: GitReference
    names: tuple[str, ...]
    """What it may be called by: its own name, and the ids of its plugins."""
    pointer: tuple[str | int, ...]

    @property
    def shown(self) -> str:
        """Its address and reference, for people."""
        return f"{self.reference.shown}#{self.reference.ref}" if self.reference.ref else self.reference.shown


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryNow:
    """What became of a repository that was fetched again."""

    repository: str
    plugins: tuple[str, ...]
    state: Literal["updated", "current", "failed"]
    before: str = ""
    now: str = ""
    """The commits."""
    problem: Problem | None = None


def repositories_of(sources: Iterable[Source], document: Document) -> list[Repository]:
    """The repositories of sources, each once."""
    found: dict[GitReference, Repository] = {}
    for source in sources:
        key = getattr(source, "key", None)
        reference = reference_of(key, document)
        if reference is not None:
            known = found.get(reference)
            own = os.path.basename(reference.shown.rstrip("/")).removesuffix(".git")
            names = (*(known.names if known else (own,)), *(plugin.id for plugin in source.plugins()))
            pointer = getattr(key, "pointer", ())
            found[reference] = Repository(reference=reference, names=tuple(dict.fromkeys(names)), pointer=pointer)
    return list(found.values())


def reference_of(key: object, document: Document) -> GitReference | None:
    match key:
        case PythonRepository(origin=GitReference() as reference) | BashRepository(git=reference):
            return reference
        case NodeGit(git=git, ref=ref):
            read = read_git_reference(git, ref, document.folder)
            return read if isinstance(read, GitReference) else None
    return None


async def fetch_again(
    repositories: Collection[Repository], acquirer: Acquirer, document: Document
) -> list[RepositoryNow]:
    """Fetch repositories one after the other."""
    return [await fetch_one_again(repository, acquirer, document) for repository in repositories]


async def fetch_one_again(repository: Repository, acquirer: Acquirer, document: Document) -> RepositoryNow:
    found = await acquirer.fetch_again(repository.reference)
    plugins = repository.names[1:]
    if isinstance(found, Problem):
        problem = found.at(document.position(repository.pointer))
        return RepositoryNow(repository=repository.shown, plugins=plugins, state="failed", problem=problem)
    return RepositoryNow(
        repository=repository.shown,
        plugins=plugins,
        state="current" if found.before == found.now else "updated",
        before=found.before,
        now=found.now,
    )
