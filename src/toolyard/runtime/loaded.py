"""What is in use until the next reload: a configuration, its sources, each agent's catalogue and call path."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.errors import UnknownAgent
from toolyard.files.accepted import accepted_file
from toolyard.files.door import stamp_of
from toolyard.files.working_folder import working_folder
from toolyard.plugins.catalog import Catalog, Changes
from toolyard.plugins.enablement import decide, read_circumstances, read_rules, unknown_ids, unknown_providers
from toolyard.plugins.kind import EndsSessions
from toolyard.plugins.loader import Loader, close_all, shown
from toolyard.plugins.tool_names import ToolNames
from toolyard.runtime.call_path import CallsUnderWay

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.enablement import Circumstances, Enablement
    from toolyard.plugins.entries import Entries
    from toolyard.plugins.host import Host
    from toolyard.plugins.kind import Kind, Source
    from toolyard.plugins.loader import NamedSource
    from toolyard.plugins.plugin import Plugin
    from toolyard.runtime.call_path import CallPath
    from toolyard.runtime.call_steps.conditions import CallSettings
    from toolyard.runtime.options import MoreTools


class AgentTools:
    """One agent: its catalogue and the path of its calls."""

    def __init__(self, catalog: Catalog, calls: CallPath) -> None:
        self.catalog = catalog
        self.calls = calls
        self.settings: dict[tuple[str, str, bool], CallSettings] = {}
        """The settings of its calls, by the working directory and the session, and whether those are of a turn."""


class Loaded:
    """A configuration with everything that came of it; agents that name the same thing share its source."""

    def __init__(
        self,
        entries: Entries,
        host: Host,
        make_path: Callable[[Catalog, CallsUnderWay], CallPath],
        *,
        kept: Mapping[Hashable, NamedSource] | None = None,
        session: str = "",
        metadata: JsonObject | None = None,
        only_some: bool = False,
        more_tools: MoreTools | None = None,
    ) -> None:
        self.entries = entries
        self.host = host
        self._make_path = make_path
        self.calls_under_way = CallsUnderWay()
        self._metadata = metadata or {}
        self._session = session
        self._more_tools = more_tools
        self._only_some = only_some
        """Whether this is only a part of the configuration, of which all plugins are on."""
        self.cwd = working_folder()
        """Where it was used last; in a sandbox, the folder that this was built for."""
        self._changes = Changes()
        self._names = host.caches.shared(ToolNames)
        self._broken_edit: tuple[Problem, ...] = ()
        self._agents: dict[tuple[str, tuple[str, ...] | None], AgentTools] = {}
        self._circumstances: dict[str, Circumstances] = {}
        self._loader = Loader(host, kept or {})
        self._by_agent = {
            agent: self._loader.load(named, agent, self.configuration.for_agent(agent))
            for agent, named in entries.by_agent.items()
        }
        self._stamps = {path: stamp_of(path) for path in (str(accepted_file()), *entries.watched)}
        if not self.configuration.in_memory:
            read = self.configuration.written or self.configuration.document
            self._stamps[str(read.path)] = read.stamp or stamp_of(read.path)

    @property
    def configuration(self) -> Configuration:
        return self.host.configuration

    def agent(self, name: str | None = None, chosen: tuple[str, ...] | None = None) -> AgentTools:
        """An agent's tools; without a name those of the agent called `default`, else of the first.

        A conversation may have chosen its plugins itself.
        """
        name = name or self.default_agent()
        if (known := self._agents.get((name, chosen))) is not None:
            return known
        if name not in self._by_agent:
            raise UnknownAgent(f"there is no agent '{name}'; known: {', '.join(self._by_agent)}")
        listed = self._by_agent[name]
        catalog = Catalog(
            [one.source for one in listed],
            pointers=[one.pointer for one in listed],
            decide=self._decide_for(name, chosen),
            changes=self._changes,
            more=partial(self._more_tools, self.configuration, name) if self._more_tools else None,
            holders=None if self._only_some else self._names.holders(self.configuration.document.path, name),
        )
        made = self._agents[name, chosen] = AgentTools(catalog, self._make_path(catalog, self.calls_under_way))
        return made

    def default_agent(self) -> str:
        """The agent that is meant when none is named."""
        return "default" if "default" in self._by_agent else next(iter(self._by_agent))

    def sources(self) -> Sequence[NamedSource]:
        """Those of all agents, each once."""
        return list(self._loader.sources.values())

    def sources_by_kind(self) -> Iterator[tuple[Kind, Source]]:
        """The same, each with the kind that made it."""
        kinds = {entry.reference: entry.kind for named in self.entries.by_agent.values() for entry in named}
        return ((kinds[one.reference], one.source) for one in self.sources())

    def kept(self) -> Mapping[Hashable, NamedSource]:
        """The same by what they are known by after a reload."""
        return self._loader.sources

    async def refresh(self) -> None:
        await self._changes.load([one.source for one in self.sources()])

    def loading_problems(self) -> list[Problem]:
        """What is wrong with the configuration, and what of it cannot be loaded."""
        return [*self.configuration.problems, *self.entries.problems, *self._loader.problems]

    def faults(self) -> list[Problem]:
        """The same, and what is wrong with the plugins that were loaded; nothing that takes long to find."""
        return [*self.loading_problems(), *self._source_problems()]

    def problems(self) -> list[Problem]:
        """What is wrong with the configuration and with what it names."""
        asked = {key for one in self.sources() for plugin in one.source.plugins() for key in plugin.config_keys}
        unknown = [found.problem for found in self.configuration.unknown if found.key not in asked]
        catalogs = {agent: self.agent(agent).catalog for agent in self._by_agent}
        loading = [*self.entries.problems, *self._loader.problems, *self._source_problems()]
        problems = [*self.configuration.problems, *unknown, *loading]
        if not self._only_some:  # what is ours alone has no rivals
            problems += [problem for catalog in catalogs.values() for problem in catalog.rivalries()]
        if not self._only_some and not loading:  # an id may well be that of a plugin that could not be loaded
            plugins = {
                agent: {id: found.plugin for id, found in catalog.plugins.items()}
                for agent, catalog in catalogs.items()
            }
            problems += [*unknown_ids(self.configuration, plugins), *unknown_providers(self.configuration, plugins)]
        places = {problem.where for problem in problems}  # a file that stands for a configuration tells it, too
        return [*problems, *(problem for problem in self._broken_edit if problem.where not in places)]

    def _source_problems(self) -> Iterator[Problem]:
        first = {id(one.source): one for listed in self._by_agent.values() for one in reversed(listed)}
        for one in self.sources():
            reference = first.get(id(one.source), one).reference
            yield from (shown(problem, reference) for problem in self._changes.problems_of(one.source))

    def state(self) -> object:
        """Something that is equal as long as nothing changed for anybody."""
        tools = [tool for one in self.sources() for plugin in one.source.plugins() for tool in plugin.tools]
        return (self.configuration.value, tools, [*self.problems()])

    def is_stale(self) -> bool:
        """Whether the configuration or a descriptor was written since, or the sandbox does not fit any more."""
        for path, stamp in self._stamps.items():
            # To ask whether there is one by now costs a fraction of being told that there is not.
            if os.access(path, os.F_OK) if stamp is None else stamp_of(path) != stamp:
                return True
        before, self.cwd = self.cwd, working_folder()
        if self.host.children("work").sandbox is None:
            return False
        if before != self.cwd:
            self.cwd = before
            return True
        for one in self.host.processes.children.values():  # noqa: SIM110 - at every call, and a generator costs more
            if one.is_stale():
                return True
        return False

    def keep_despite(self, broken: Loaded) -> None:
        """An edit broke the configuration: go on with this one, and say so, until the next edit."""
        self._stamps |= broken._stamps
        self._broken_edit = tuple(
            replace(problem, message=f"{problem.message}; the last good configuration stays in use")
            for problem in broken.configuration.problems
        )

    async def end_session(self, session: str) -> None:
        """A conversation is over: end what sources keep for it."""
        for tools in self._agents.values():
            tools.settings = {key: made for key, made in tools.settings.items() if key[1] != session}
        for one in self.sources():
            if isinstance(one.source, EndsSessions):
                await one.source.end_session(session)

    async def aclose(self, *, except_for: Loaded | None = None) -> None:
        """Close the sources that nobody uses any more."""
        await close_all(self.without(except_for))

    def without(self, other: Loaded | None) -> list[Source]:
        """The sources that another does not share."""
        kept = {id(one.source) for one in other.sources()} if other else set()
        return [one.source for one in self.sources() if id(one.source) not in kept]

    def circumstances(self, agent: str) -> Circumstances:
        """What an agent's configuration tells its plugins."""
        if agent not in self._circumstances:
            context = {"agent": agent, "session": self._session, "metadata": self._metadata}
            layers, config = self.configuration.layers(agent), self.configuration.for_agent(agent)
            self._circumstances[agent] = read_circumstances(layers, config, context)
        return self._circumstances[agent]

    def _decide_for(
        self, agent: str, chosen: tuple[str, ...] | None
    ) -> Callable[[Sequence[Plugin]], Mapping[str, Enablement]]:
        if self._only_some:
            return decide
        named = self._metadata.get("plugins") if chosen is None else chosen
        rules = read_rules(self.configuration.layers(agent), named)
        return partial(decide, rules=rules, circumstances=self.circumstances(agent))
