"""All tools of an agent by name: the first registration of a name wins, the others are remembered."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolyard.config.problems import ConfigProblem, Position, sort_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.core.tool import Tool
    from toolyard.plugins.source import Source

__all__ = ["Catalog", "Shadowed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadowed:
    """A tool that lost its name to an earlier registration."""

    name: str
    winner: Position
    loser: Position


class Catalog:
    """Finds tools as they are now; a source that changed is read again when it is asked for."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = list(sources)
        self._by_name: dict[str, tuple[Source, Tool]] = {}
        self.shadowed: list[Shadowed] = []
        self._arrange()

    @property
    def problems(self) -> list[ConfigProblem]:
        """What is wrong with any source now, and which names are taken twice."""
        own = [problem for source in self._sources for problem in source.problems]
        return sort_problems([*own, *map(shadowed_problem, self.shadowed)])

    def names(self) -> Sequence[str]:
        """The names of all tools, in the order of the configuration."""
        return list(self._by_name)

    def tools(self) -> Sequence[Tool]:
        """All tools, in the order of the configuration."""
        return [tool for _, tool in self._by_name.values()]

    def sources(self) -> Sequence[Source]:
        """Where the tools come from, in the order of the configuration."""
        return self._sources

    def file_of(self, name: str) -> str:
        """Where a tool comes from."""
        return str(self._by_name[name][0].file)

    async def find(self, name: str) -> Tool | None:
        """The tool of that name as its file is now; a name that is not known may have come to exist."""
        known = self._by_name.get(name)
        if known and not await known[0].refresh():
            return known[1]
        await self.refresh()
        found = self._by_name.get(name)
        return found[1] if found else None

    async def refresh(self) -> None:
        """Look at every source again."""
        await refresh_side_by_side(self._sources)
        self._arrange()

    def _arrange(self) -> None:
        """Give every name to the first source that has it."""
        self._by_name, self.shadowed = {}, []
        for source in self._sources:
            for tool in (tool for plugin in source.plugins() for tool in plugin.tools):
                name = tool.spec.name
                if name in self._by_name:
                    winner = Position(file=self._by_name[name][0].file)
                    self.shadowed.append(Shadowed(name=name, winner=winner, loser=Position(file=source.file)))
                else:
                    self._by_name[name] = (source, tool)


async def refresh_side_by_side(sources: Sequence[Source]) -> None:
    """Read all sources: at once what is known, the rest as many at a time as the machine has use for."""
    unknown = []
    for source in sources:
        if not source.is_current() and not source.load_known():
            unknown.append(source)

    async def load_some() -> None:
        while unknown:
            await unknown.pop(0).load()

    await asyncio.gather(*(load_some() for _ in range(3 * (os.cpu_count() or 1))))


def shadowed_problem(shadowed: Shadowed) -> ConfigProblem:
    return ConfigProblem(
        code="tool_name_taken",
        message=f"a tool named '{shadowed.name}' comes from {shadowed.winner} already; this one is not used",
        hint="give one of them another name, or load only one",
        where=shadowed.loser,
        severity="warning",
    )
