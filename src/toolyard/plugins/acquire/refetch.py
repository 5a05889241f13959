"""Fetching repositories again: a remote branch is otherwise what it was when it was first fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.core.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.config.document import Place
    from toolyard.plugins.acquire.fetch import Fetcher
    from toolyard.plugins.acquire.git_reference import GitReference
    from toolyard.plugins.kind import Reference, Source


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A git repository that a configuration names."""

    reference: GitReference
    names: tuple[str, ...]
    """What it may be called by: its own name, and the ids of its plugins."""
    at: Place

    @property
    def shown(self) -> str:
        """Its address and reference, for people."""
        return f"{self.reference.shown}#{self.reference.ref}" if self.reference.ref else self.reference.shown


class RepositoryNow(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a repository that was fetched again."""

    repository: str
    plugins: tuple[str, ...]
    state: Literal["updated", "current", "failed"]
    before: str = ""
    now: str = ""
    """The commits."""
    problem: Problem | None = None


def repositories_of(sources: Iterable[tuple[Reference, Source]]) -> list[Repository]:
    found: dict[GitReference, Repository] = {}
    for reference, source in sources:
        if (git := reference.repository) is not None:
            known = found.get(git)
            names = (*(known.names if known else (git.name,)), *(plugin.id for plugin in source.plugins()))
            found[git] = Repository(reference=git, names=tuple(dict.fromkeys(names)), at=reference.at)
    return list(found.values())


async def fetch_again(repository: Repository, fetcher: Fetcher) -> RepositoryNow:
    found = await fetcher.fetch_again(repository.reference)
    plugins = repository.names[1:]
    if isinstance(found, Problem):
        problem = found.at(repository.at.position())
        return RepositoryNow(repository=repository.shown, plugins=plugins, state="failed", problem=problem)
    return RepositoryNow(
        repository=repository.shown,
        plugins=plugins,
        state="current" if found.before == found.now else "updated",
        before=found.before,
        now=found.now,
    )
