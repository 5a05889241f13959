"""The plugins of an agent and their tools by name: the first registration wins, the others are remembered."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.core.own_names import OWN_NAMES
from toolyard.core.problems import Position, Problem
from toolyard.files.door import LARGEST_SCRIPT, Door
from toolyard.plugins.enablement import asks_each_time, decide
from toolyard.plugins.loader import load_all
from toolyard.plugins.tool_names import holder_of, is_same, takeover
from toolyard.plugins.tool_problems import tool_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Tool
    from toolyard.plugins.enablement import Enablement
    from toolyard.plugins.kind import Source
    from toolyard.plugins.offers import PluginOffers
    from toolyard.plugins.plugin import Plugin
    from toolyard.plugins.tool_names import NameHolders


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin, the source it comes from, and the entry of the configuration that named that."""

    plugin: Plugin
    source: Source
    pointer: Pointer | None


class Shadowed(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that lost its id, or a tool that lost its name, to an earlier registration."""

    what: Literal["plugin", "tool"]
    name: str
    winner: Registration
    loser: Registration


class Claim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A tool that is to have a name."""

    tool: Tool
    found: Registration
    place: int
    other: Tool | None
    """The same tool under another name, where it can have one."""
    rank: int
    """Who comes first: tools whose names are the owner's affair, those with their plugin's name, those that had a name
    before, and all others.
    """


class Takeover(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A tool whose name was that of another's until now."""

    tool: Tool
    before: str
    now: str


class Changes:
    """How often anything changed that agents share; each catalogue looks again when this has grown."""

    def __init__(self) -> None:
        self.count = 0
        self._failures: dict[int, Problem] = {}

    async def load(self, sources: Sequence[Source]) -> None:
        """Read what has changed of the sources."""
        failures = await load_all(sources)
        tried = set(map(id, sources))
        self._failures = {key: one for key, one in self._failures.items() if key not in tried} | failures
        self.count += 1

    def problems_of(self, source: Source) -> Iterator[Problem]:
        """What is wrong with a source, also that it broke when it was last loaded."""
        yield from source.problems
        if failure := self._failures.get(id(source)):
            yield failure


class OwnSource:
    """Where the application's own tools come from; it never changes."""

    conditions: object = None
    file = Path("toolyard")
    problems: Sequence[Problem] = ()

    def plugins(self) -> Sequence[Plugin]:
        return ()

    def is_current(self) -> bool:
        return True

    async def load(self, *, without_running: bool = False) -> bool:  # noqa: ARG002 - the interface
        return True

    def adopt(self, newer: OwnSource) -> None:
        """There is nothing to take over."""

    async def aclose(self) -> None:
        """It holds nothing."""


OWN = OwnSource()


class Catalog:
    """Finds tools as they are now; a source that changed is read again when it is asked for."""

    def __init__(
        self,
        sources: Iterable[Source],
        *,
        pointers: Sequence[Pointer] = (),
        decide: Callable[[Sequence[Plugin]], Mapping[str, Enablement]] = decide,
        changes: Changes | None = None,
        more: Callable[[Sequence[Tool]], Sequence[Tool]] | None = None,
        holders: NameHolders | None = None,
    ) -> None:
        """`more` are tools of the application itself, by what others there are; `holders` had the names until now."""
        self._more = more
        self._holders = holders
        self._sources = list(sources)
        self._pointers = pointers
        self._decide = decide
        self._changes = changes or Changes()
        self._arranged_at = -1
        self._asks = False
        """Whether a plugin has to be asked each time whether it is on."""
        self._plugins: dict[str, Registration] = {}
        self._shadowed: list[Shadowed] = []
        self._decisions: Mapping[str, Enablement] = {}
        self._by_name: dict[str, tuple[Source, Tool]] = {}
        self._services: dict[str, tuple[Source, Tool]] = {}
        self._taken: list[Shadowed] = []
        self._renamed: dict[tuple[int, str], Tool] = {}
        """Tools under other names than their own, by their registration and that."""
        self._takeovers: dict[str, Takeover] = {}

    def rivalries(self) -> list[Problem]:
        """What is wrong among the plugins and their tools, though each may be sound by itself."""
        self._settle()
        tools = {name: (source.file, tool) for name, (source, tool) in self._by_name.items()}
        return [*map(shadowed_problem, self.shadowed), *self._faulty(), *tool_problems(tools)]

    @property
    def shadowed(self) -> Sequence[Shadowed]:
        """The plugins and tools that an earlier one hides."""
        self._settle()
        return [*self._shadowed, *self._taken]

    @property
    def plugins(self) -> Mapping[str, Registration]:
        """Every plugin by its id, on or off, in the order of the configuration."""
        self._settle()
        return self._plugins

    @property
    def decisions(self) -> Mapping[str, Enablement]:
        """For each plugin whether it is on, and why."""
        self._settle()
        return self._decisions

    def tools_of(self, found: Registration) -> Sequence[Tool]:
        """The tools of a plugin, by the names that they have here."""
        self._settle()
        return [self._renamed.get((id(found), tool.spec.name), tool) for tool in found.plugin.tools]

    def names(self) -> Sequence[str]:
        """The names of all tools, in the order of the configuration."""
        self._settle()
        return list(self._by_name)

    def tools(self) -> Sequence[Tool]:
        """All tools, in the order of the configuration."""
        self._settle()
        return [tool for _, tool in self._by_name.values()]

    def offers(self) -> list[tuple[str, PluginOffers]]:
        """What the plugins that are on have beside tools, by their ids."""
        self._settle()
        found = [(id, one.plugin.offers) for id, one in self._plugins.items() if self._decisions[id].on]
        return [(id, offers) for id, offers in found if offers]

    def file_of(self, name: str) -> str:
        self._settle()
        return str(self._by_name[name][0].file)

    async def find(self, name: str) -> Tool | None:
        """The tool of that name as its file is now; a name that is not known may have come to exist."""
        self._settle()
        known = self._by_name.get(name) or self._services.get(name)
        if known and known[0].is_current():
            return known[1]
        await self.refresh()
        found = self._by_name.get(name) or self._services.get(name)
        return found[1] if found else None

    def doubt(self, tool: Tool) -> str:
        """Why a person has to be asked about a tool, whatever it is: its name was another's until now."""
        found = self._takeovers.get(tool.spec.name)
        if found is None or found.tool is not tool:
            return ""
        return takeover(tool.spec.name, found.before, found.now, tool.spec.description)

    def let_run(self, tool: Tool) -> None:
        """A person let a tool run that there was a doubt about: from now on the name is its own."""
        found = self._takeovers.get(tool.spec.name)
        if found is not None and found.tool is tool and self._holders:
            self._holders.note({tool.spec.name: found.now})
            del self._takeovers[tool.spec.name]

    def failure(self, name: str) -> Problem | None:
        """Why there is no tool of that name, if it is one that could not be loaded."""
        for source in self._sources:
            found = [problem for problem in self._changes.problems_of(source) if problem.severity == "error"]
            if found and names_tool(source, found, name):
                named = re.compile(rf"['.]{re.escape(name)}'")  # by itself, or as that of its module
                return next((problem for problem in found if named.search(problem.message)), found[0])
        return None

    async def refresh(self) -> None:
        await self._changes.load(self._sources)
        self._settle()

    def _settle(self) -> None:
        """Be up to date with the sources, and with what plugins say of themselves."""
        if self._arranged_at != self._changes.count:
            self._arranged_at = self._changes.count
            self._arrange()
            self._asks = any(asks_each_time(found.plugin) for found in self._plugins.values())
        elif not self._asks:
            return
        self._decisions = self._decide([found.plugin for found in self._plugins.values()])
        self._name_tools([found for id, found in self._plugins.items() if self._decisions[id].on])

    def _arrange(self) -> None:
        """Give every id to the first plugin that has it."""
        self._plugins, self._shadowed = {}, []
        for index, source in enumerate(self._sources):
            pointer = self._pointers[index] if self._pointers else None
            for plugin in source.plugins():
                found = Registration(plugin=plugin, source=source, pointer=pointer)
                first = self._plugins.setdefault(plugin.id, found)
                if first is not found:
                    self._shadowed.append(Shadowed(what="plugin", name=plugin.id, winner=first, loser=found))

    def _name_tools(self, plugins: Sequence[Registration]) -> None:
        """Give every name to the first tool that has it, of the plugins that are on.

        A plugin whose tools can have other names comes after those whose tools cannot, wherever it stands: what
        others call their tools takes no name from the owner's. Among such plugins, a name stays with the one that
        had it last.
        """
        self._by_name, self._taken, self._renamed, self._services = {}, [], {}, {}
        for found in plugins:
            for service in found.plugin.services:
                self._services.setdefault(service.spec.name, (found.source, service))
        listed = [(tool, found) for found in plugins for tool in found.plugin.tools]
        claims = [self._claim(place, tool, found) for place, (tool, found) in enumerate(listed)]
        kept_free = contested_names(claims)
        owners: dict[str, Claim] = {}
        for claim in sorted(claims, key=lambda one: one.rank):
            self._give_name(claim, owners, kept_free)
        self._by_name = dict(sorted(self._by_name.items(), key=lambda item: owners[item[0]].place))
        self._note_names(owners)
        for tool in self._more([tool for _, tool in self._by_name.values()]) if self._more else ():
            self._by_name.setdefault(tool.spec.name, (OWN, tool))

    def _claim(self, place: int, tool: Tool, found: Registration) -> Claim:
        other_name = found.plugin.other_name
        if other_name is None:
            return Claim(tool=tool, found=found, place=place, other=None, rank=0)
        other = other_name(tool)
        had = self._had(found.plugin, tool) or self._had(found.plugin, other)
        return Claim(tool=tool, found=found, place=place, other=other, rank=1 if other is tool else 2 if had else 3)

    def _had(self, plugin: Plugin, tool: Tool) -> bool:
        """Whether the name of a tool was that of one of this plugin's."""
        before = self._holders.of(tool.spec.name) if self._holders else None
        return before is not None and is_same(before, holder_of(plugin))

    def _give_name(self, claim: Claim, owners: dict[str, Claim], kept_free: Mapping[str, str]) -> None:
        tool, found, name = claim.tool, claim.found, claim.tool.spec.name
        if claim.other and not self._is_free_for(claim, owners, kept_free):
            tool = self._renamed[id(found), name] = claim.other
            name = tool.spec.name
        if name in owners:
            self._taken.append(Shadowed(what="tool", name=name, winner=owners[name].found, loser=found))
        else:
            owners[name] = claim
            self._by_name[name] = (found.source, tool)

    def _is_free_for(self, claim: Claim, owners: Mapping[str, Claim], kept_free: Mapping[str, str]) -> bool:
        """Whether a tool can have the name that its plugin gave it."""
        name, id = claim.tool.spec.name, claim.found.plugin.id
        if claim.rank == 1:  # it has its plugin's name before its own
            return True
        if name in owners or name in OWN_NAMES or name in self._services:
            return False
        return self._had(claim.found.plugin, claim.tool) if claim.rank == 2 else kept_free.get(name, id) == id

    def _note_names(self, owners: Mapping[str, Claim]) -> None:
        """Keep whose each name is; what was another's stays so until somebody lets the tool run that has it now."""
        self._takeovers = {}
        if self._holders is None or not any(claim.other for claim in owners.values()):
            return
        given = {name: holder_of(claim.found.plugin) for name, claim in owners.items()}
        before = {name: self._holders.of(name) for name in given}
        self._takeovers = {
            name: Takeover(tool=self._by_name[name][1], before=was, now=given[name])
            for name, was in before.items()
            if was is not None and not is_same(was, given[name])
        }
        self._holders.note({name: holder for name, holder in given.items() if name not in self._takeovers})

    def _faulty(self) -> Iterable[Problem]:
        for id, decision in self.decisions.items():
            if decision.faulty:
                yield Problem(
                    code="plugin_enablement",
                    message=f"plugin '{id}' is off: {decision.reason}",
                    hint="mend the plugin, or list it in force_enabled_plugins",
                    where=Position(file=self._plugins[id].source.file),
                )


def contested_names(claims: Sequence[Claim]) -> dict[str, str]:
    """Other names of tools whose own are wanted by several, each with the plugin that it is kept free for."""
    wanted = Counter(claim.tool.spec.name for claim in claims)
    found: dict[str, str] = {}
    for claim in claims:
        name = claim.tool.spec.name
        if claim.other and (wanted[name] > 1 or name in OWN_NAMES):
            found.setdefault(claim.other.spec.name, claim.found.plugin.id)
    return found


def names_tool(source: Source, problems: Sequence[Problem], name: str) -> bool:
    """Whether a source has, or would have, a tool of that name: its file is called so, or speaks of it."""
    files = {source.file, *(problem.where.file for problem in problems if problem.where)}
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(file.stem.replace("-", "_") == name or word.search(text_of(file)) for file in files)


def text_of(file: Path) -> str:
    try:
        return Door.here().read(file, largest=LARGEST_SCRIPT).data.decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def shadowed_problem(shadowed: Shadowed) -> Problem:
    winner = shadowed.winner.source.file
    thing = f"tool named '{shadowed.name}'" if shadowed.what == "tool" else f"plugin with the id '{shadowed.name}'"
    return Problem(
        code="tool_name_taken" if shadowed.what == "tool" else "plugin_id_taken",
        message=f"a {thing} comes from {winner} already; this one is not used",
        hint="give one of them another name, or load only one",
        where=Position(file=shadowed.loser.source.file),
        severity="warning",
    )
