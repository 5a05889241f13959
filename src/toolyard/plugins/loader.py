"""From references to sources: one for each thing that is referred to, kept over a reload if nothing changed."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.core.problems import Position, Problem

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence
    from logging import Logger

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.acquire.git_reference import GitReference
    from toolyard.plugins.entries import Entry
    from toolyard.plugins.host import Host
    from toolyard.plugins.kind import Reference, Source


class NamedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source, and the reference that it follows."""

    source: Source
    reference: Reference

    @property
    def pointer(self) -> Pointer:
        """The entry of the configuration that names it."""
        return self.reference.at.pointer


class Loader:
    """Makes sources, and shares them as their scope says."""

    def __init__(self, host: Host, kept: Mapping[Hashable, NamedSource]) -> None:
        self._host = host
        self._kept = kept
        self._configs: list[tuple[str, JsonObject]] = []
        self._refused: dict[Pointer, Problem | None] = {}
        self.sources: dict[Hashable, NamedSource] = {}
        """All that were made so far, by what they are known by after a reload."""

    @property
    def problems(self) -> list[Problem]:
        """Why some of what is referred to is not loaded."""
        return [problem for problem in self._refused.values() if problem]

    def load(self, entries: Iterable[Entry], agent: str, config: JsonObject) -> list[NamedSource]:
        """The sources of an agent, in order, each once."""
        found: dict[int, NamedSource] = {}
        for entry in entries:
            if not self._refusal(entry):
                listed = self._source(entry, agent, config)
                found.setdefault(id(listed.source), replace(listed, reference=entry.reference))
        return list(found.values())

    def _refusal(self, entry: Entry) -> bool:
        """Whether policy, or the machine, is against it; asked once for each entry of the configuration."""
        pointer = entry.reference.at.pointer
        if pointer not in self._refused:
            self._refused[pointer] = entry.kind.refusal(entry.reference, self._host)
        return self._refused[pointer] is not None

    def _source(self, entry: Entry, agent: str, config: JsonObject) -> NamedSource:
        """The source of a thing: the one other agents have, the one from before a reload, or a new one."""
        reference = entry.reference
        made_for = reference.scope == "config"
        key: Hashable = (reference, self._first_with(agent, config)) if made_for else reference
        if (found := self.sources.get(key)) is None:
            host = self._host.for_agent(config) if made_for else self._host
            # Made first, to compare: a source that holds nothing yet knows under which conditions its tools would run.
            made = entry.kind.source(reference, host)
            old = self._kept.get(key)
            if old is not None and old.source.conditions == made.conditions:
                old.source.adopt(made)
                made = old.source
            found = self.sources[key] = NamedSource(source=made, reference=reference)
        return found

    def _first_with(self, agent: str, config: JsonObject) -> str:
        """The first agent that has the same configuration."""
        for name, other in self._configs:
            if other == config:
                return name
        self._configs.append((agent, config))
        return agent


async def load_all(sources: Sequence[Source]) -> dict[int, Problem]:
    """Read what has changed: at once what needs nothing to be run, the rest as many at a time as the machine takes.

    A source that breaks is a problem, by its identity, and does not stop the others.
    """
    failures: dict[int, Problem] = {}
    unknown = [source for source in sources if not await is_loaded(source, failures, without_running=True)]

    async def load_some() -> None:
        while unknown:
            await is_loaded(unknown.pop(0), failures)

    await asyncio.gather(*(load_some() for _ in range(min(len(unknown), 3 * (os.cpu_count() or 1)))))
    return failures


async def close_all(sources: Iterable[Source]) -> None:
    """Let sources release what they hold, one after the other."""
    for source in sources:
        await source.aclose()


async def is_loaded(source: Source, failures: dict[int, Problem], *, without_running: bool = False) -> bool:
    """Load a source unless nothing changed; one that breaks has nothing more to load."""
    try:
        return source.is_current() or await source.load(without_running=without_running)
    except Exception as error:  # whatever broke, the other plugins must load
        log().exception("%s broke while it was loaded", source.file)
        failures[id(source)] = Problem(
            code="plugin_crashed",
            message=f"it cannot be loaded: {type(error).__name__}: {error}",
            hint="this is a bug in toolyard; please report it with what the log says",
            where=Position(file=source.file),
        )
        return True


def shown(problem: Problem, reference: Reference) -> Problem:
    """A problem of a file that is not there, or lies in our cache, at the entry of the configuration that names it."""
    where, at = problem.where, reference.at
    if where is None or where.file == at.document.path:
        return problem
    if git := reference.repository:
        message = f"{in_repository(where, git)}: {problem.message}"
    elif where.line is None and not os.path.lexists(where.file):
        message = f"{where.file}: {problem.message}"
    else:
        return problem
    return replace(problem, message=message, where=at.position())


def in_repository(where: Position, git: GitReference) -> str:
    """A place in a copy of a repository, as the repository has it."""
    path = os.fspath(where.file).rpartition(f"{os.sep}tree{os.sep}")[2]
    name = path if path != os.fspath(where.file) else where.file.name
    place = "the top folder" if name == "tree" else str(replace(where, file=type(where.file)(name)))
    return f"{place} of {git.shown}"


def log() -> Logger:
    """Imported when there is something to tell: every start would wait for it."""
    import logging

    return logging.getLogger("toolyard.plugins")
