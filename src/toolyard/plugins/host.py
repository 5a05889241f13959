"""What every source gets to do its work with: made once for a configuration, and never copied field by field."""

from __future__ import annotations

import asyncio
import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import structs

from toolyard.files.content_cache import ContentCache
from toolyard.process.interpreter import find_interpreter
from toolyard.process.limits import Limits
from toolyard.process.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.config.settings import PluginPolicy
    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.acquire.build import BuildRunner
    from toolyard.plugins.acquire.cache import PluginCache
    from toolyard.plugins.acquire.fetch import Fetcher
    from toolyard.plugins.author_code.module_cache import ModuleCache
    from toolyard.process.child import Children
    from toolyard.process.interpreter import Interpreter

BUNDLED = Path(__file__).resolve().parents[1] / "builtin_plugins"
Part = TypeVar("Part", bound=msgspec.Struct)
Known = TypeVar("Known", bound=msgspec.Struct)
Shared = TypeVar("Shared")


class Processes(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs processes for a configuration: an owner of children for each reach, and one for builds."""

    children: Mapping[Reach, Children]
    """`look` is for calls that may change nothing, and for all that comes before a verdict; `outside` also for programs
    that we know by name and that need the owner's keys: git."""
    build: BuildRunner
    """For what plugins do while they are installed and built."""


class Caches:
    """What outlives a configuration that is read again: files in the user's cache folder, imported modules, and what
    sources of one kind know together.
    """

    def __init__(self, folder: Path, *, kept: bool = True) -> None:
        self.folder = folder
        self._kept = kept
        self._by_name: dict[str, ContentCache[msgspec.Struct]] = {}
        self._shared: dict[type[Any], Any] = {}

    @cached_property
    def modules(self) -> ModuleCache:
        from toolyard.plugins.author_code.module_cache import ModuleCache

        return ModuleCache()

    def get(self, name: str, kind: type[Known]) -> ContentCache[Known]:
        """What was learnt of contents, in a file of that name."""
        if name not in self._by_name:
            self._by_name[name] = ContentCache(self.folder / f"{name}.json" if self._kept else None, kind)
        return self._by_name[name]  # type: ignore[return-value]  # as above

    def shared(self, kind: type[Shared]) -> Shared:
        """The one of its kind that the sources of an application share; made when it is first asked for."""
        if kind not in self._shared:
            self._shared[kind] = kind()
        made: Shared = self._shared[kind]
        return made

    def save(self) -> None:
        for cache in self._by_name.values():
            cache.save()


class Host:
    """The surroundings of sources: children by reach, builds, fetching, caches, limits and settings."""

    def __init__(
        self,
        configuration: Configuration,
        processes: Processes,
        caches: Caches,
        *,
        in_place: Sequence[Path] = (),
        kinds: Sequence[Any] = (),
    ) -> None:
        self.configuration = configuration
        self.processes = processes
        self.caches = caches
        self.in_place = (BUNDLED, *in_place)
        """Folders whose plugins are used where they are, and never installed."""
        self.kinds = kinds
        """All kinds of tools, for plugins that build on tools of others. Kinds know hosts, so no type is named."""
        self.news = asyncio.Event()
        """Set by a source that learned by itself that it changed, for whoever looks for changes."""
        self.config: JsonObject = {}
        """The values of the agent that a source is made for; none for a source that all agents share."""
        limits = Limits(**structs.asdict(configuration.limits))
        self.runner = Runner(processes.children, limits, configuration.policy.pass_env)
        """What the children of tools have in common."""
        self._interpreters: dict[str, Interpreter | None] = {}
        self._settings: dict[type[msgspec.Struct], msgspec.Struct] = {}

    @property
    def policy(self) -> PluginPolicy:
        """What plugins of all kinds may do."""
        return self.configuration.policy

    @cached_property
    def plugin_cache(self) -> PluginCache:
        """Where plugins are fetched, installed and built to."""
        from toolyard.plugins.acquire.cache import PluginCache

        return PluginCache(self.configuration.plugin_cache(self.caches.folder))

    @cached_property
    def fetcher(self) -> Fetcher:
        """Who gets repositories; most configurations need nobody for that."""
        from toolyard.plugins.acquire.fetch import Fetcher

        return Fetcher(self.plugin_cache, self.policy, self.children("outside"), self.configuration.door)

    def children(self, reach: Reach) -> Children:
        """Who runs processes of that reach."""
        return self.processes.children[reach]

    def settings(self, part: type[Part]) -> Part:
        """A kind's own part of `plugin_policy`; asked for by every tool, so it is made once."""
        if part not in self._settings:
            self._settings[part] = part(**{name: getattr(self.policy, name) for name in part.__struct_fields__})
        return self._settings[part]  # type: ignore[return-value]  # each part under its own type

    def interpreter(self, name: str) -> Interpreter | None:
        """A program on PATH that runs others' text."""
        if name not in self._interpreters:
            self._interpreters[name] = find_interpreter(name, self.configuration.door)
        return self._interpreters[name]

    def required(self, name: str) -> Interpreter:
        """The same where it is there, since nothing is loaded without it."""
        found = self.interpreter(name)
        if found is None:
            raise RuntimeError(f"something was loaded although there is no {name}")
        return found

    def for_agent(self, config: JsonObject) -> Host:
        """The same host for the sources of an agent."""
        host = copy.copy(self)
        host.config = config
        return host
