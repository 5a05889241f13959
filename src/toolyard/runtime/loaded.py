"""A configuration with everything that came of it: sources that agents share, and for each agent its own catalogue."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.errors import UnknownAgent
from toolyard.kinds.bash_script.source import stamp_of
from toolyard.plugins.catalog import Catalog, Changes, refresh_side_by_side
from toolyard.plugins.enablement import decide, read_circumstances, read_rules, unknown_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.plugins.enablement import Decision
    from toolyard.plugins.loader import Listed, Loader
    from toolyard.plugins.source import Plugin, Source
    from toolyard.plugins.workshops import Crews
    from toolyard.runtime.invoke import Invoker
    from toolyard.runtime.passage import CallSettings
    from toolyard.runtime.redaction import Redactor


class AgentTools:
    """One agent: its catalogue and the path of its calls."""

    def __init__(self, catalog: Catalog, invoker: Invoker) -> None:
        self.catalog = catalog
        self.invoker = invoker
        self.settings: tuple[str, CallSettings] | None = None
        """The settings of its calls, with the working directory they were made for."""


class Loaded:
    """What is in use until the next reload."""

    def __init__(
        self,
        configuration: Configuration,
        loader: Loader,
        make_invoker: Callable[[Catalog], Invoker],
        *,
        crews: Crews,
        redactor: Redactor,
        metadata: JsonObject,
        session: str,
        only: Sequence[Json] | None = None,
    ) -> None:
        self.configuration = configuration
        self.crews = crews
        self.redactor = redactor
        self._cwd = os.getcwd()
        self._loader = loader
        self._make_invoker = make_invoker
        self._metadata = metadata
        self._session = session
        self._changes = Changes()
        self._broken_edit: tuple[Problem, ...] = ()
        self._agents: dict[str, AgentTools] = {}
        self._listed = {agent: self._read_plugins(agent, only) for agent in configuration.agents()}
        self._is_whole = only is None
        config = str(configuration.document.path)
        self._stamps = {config: stamp_of(config), **loader.watched}

    def agent(self, name: str | None = None) -> AgentTools:
        """An agent's tools; without a name those of the agent called `default`, else of the first."""
        name = name or self.default_agent()
        if (known := self._agents.get(name)) is not None:
            return known
        if name not in self._listed:
            raise UnknownAgent(f"there is no agent '{name}'; known: {', '.join(self._listed)}")
        listed = self._listed[name]
        catalog = Catalog(
            [one.source for one in listed],
            pointers=[one.pointer for one in listed],
            decide=self._decide_for(name),
            changes=self._changes,
        )
        made = self._agents[name] = AgentTools(catalog, self._make_invoker(catalog))
        return made

    def default_agent(self) -> str:
        """The agent that is meant when none is named."""
        return "default" if "default" in self._listed else next(iter(self._listed))

    def sources(self) -> Iterable[Source]:
        """The sources of all agents, each once."""
        return self._loader.sources.values()

    def kept(self) -> Mapping[Hashable, Source]:
        """The same by what they are known by after a reload."""
        return self._loader.sources

    async def refresh(self) -> None:
        """Look at every source again."""
        await refresh_side_by_side(list(self.sources()))
        self._changes.count += 1

    def problems(self) -> list[Problem]:
        """What is wrong with the configuration and with what it names."""
        asked = {key for source in self.sources() for plugin in source.plugins() for key in plugin.config_keys}
        unknown = [found.problem for found in self.configuration.unknown if found.key not in asked]
        catalogs = {agent: self.agent(agent).catalog for agent in self._listed}
        loading = [*self._loader.problems, *self._source_problems()]
        ids = unknown_ids(self.configuration, catalogs) if self._is_whole and not loading else ()
        told = [
            *self.configuration.problems,
            *unknown,
            *loading,
            *(problem for catalog in catalogs.values() for problem in catalog.rivalries()),
            *ids,
        ]
        places = {problem.where for problem in told}  # a manifest that is the configuration itself tells it, too
        return [*told, *(problem for problem in self._broken_edit if problem.where not in places)]

    def _source_problems(self) -> Iterator[Problem]:
        """What sources say, each problem where a user can do something about it."""
        pointers = {id(one.source): one.pointer for listed in self._listed.values() for one in reversed(listed)}
        for source in self.sources():
            for problem in source.problems:
                from toolyard.plugins.placing import placed

                yield placed(problem, source, pointers.get(id(source), ()), self.configuration.document)

    def state(self) -> object:
        """Something that is equal as long as nothing changed for anybody."""
        tools = [tool for source in self.sources() for plugin in source.plugins() for tool in plugin.tools]
        return (self.configuration.value, tools, [*self.problems()])

    def is_stale(self) -> bool:
        """Whether the configuration or a descriptor was written since, or the sandbox does not fit any more."""
        for path, stamp in self._stamps.items():
            if stamp_of(path) != stamp:
                return True
        tools = self.crews.tools
        return tools.sandbox is not None and (tools.is_stale() or os.getcwd() != self._cwd)

    def keep_despite(self, broken: Loaded) -> None:
        """An edit broke the configuration: go on with this one, and say so, until the next edit."""
        self._stamps |= broken._stamps
        self._broken_edit = tuple(
            replace(problem, message=f"{problem.message}; the last good configuration stays in use")
            for problem in broken.configuration.problems
        )

    async def aclose(self, *, except_for: Loaded | None = None) -> None:
        """Close the sources that nobody uses any more."""
        kept = {id(source) for source in except_for.sources()} if except_for else set()
        for source in self.sources():
            if id(source) not in kept:
                await source.aclose()

    def _read_plugins(self, agent: str, only: Sequence[Json] | None) -> list[Listed]:
        """The sources of an agent: those of the top level, then of its provider, then its own, each once."""
        configuration = self.configuration
        read = partial(
            self._loader.read, document=configuration.document, agent=agent, config=configuration.for_agent(agent)
        )
        if only is not None:
            return read(only, ("plugins",))
        found: dict[int, Listed] = {}
        for layer in configuration.layers(agent):
            for listed in read(layer.value.get("plugins"), (*layer.pointer, "plugins")):
                found.setdefault(id(listed.source), listed)
        return list(found.values())

    def _decide_for(self, agent: str) -> Callable[[Sequence[Plugin]], Mapping[str, Decision]]:
        if not self._is_whole:
            return decide
        layers = self.configuration.layers(agent)
        context = {"agent": agent, "session": self._session, "metadata": self._metadata}
        return partial(
            decide,
            rules=read_rules(layers, self._metadata.get("plugins")),
            circumstances=read_circumstances(layers, self.configuration.for_agent(agent), context),
        )
