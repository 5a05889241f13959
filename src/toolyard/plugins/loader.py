"""From the entries of `plugins` to sources of tools."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from toolyard.core.problems import Problem
from toolyard.kinds.bash_script.source import BashToolSource, Stamp, stamp_of
from toolyard.kinds.manifest.source import ManifestSource
from toolyard.plugins.descriptors import DESCRIPTOR, bash_files
from toolyard.plugins.repository_spec import BashRepository, PythonClass, PythonRepository
from toolyard.plugins.spec import (
    BashDirectory,
    BashFile,
    ManifestFile,
    NodeFile,
    NodeFolder,
    NodeGit,
    ShellCommand,
    ShellSession,
    parse_plugin,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from toolyard.config.document import Document, Pointer
    from toolyard.config.settings import PluginPolicy
    from toolyard.core.tool import Json, JsonObject
    from toolyard.plugins.repository_spec import RepositorySpec
    from toolyard.plugins.source import Source
    from toolyard.plugins.spec import PluginSpec
    from toolyard.plugins.workshops import Workshops


PLUGIN_ID = re.compile(r"[A-Za-z_][\w-]*")


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A source, and the entry of the configuration that named it."""

    source: Source
    pointer: Pointer


SourceKey: TypeAlias = (
    "str | ShellCommand | ShellSession | ManifestFile | NodeFile | NodeFolder | NodeGit | RepositorySpec"
)
"""What a source is known by after a reload; a bash tool file by its path."""

Shop = TypeVar("Shop")


class Loader:
    """Turns plugin references into sources: one for each thing referred to, kept over a reload if nothing changed."""

    def __init__(self, policy: PluginPolicy, workshops: Workshops, kept: Mapping[Hashable, Source]) -> None:
        self._policy = policy
        self._workshops = workshops
        self._kept = kept
        self._lists: dict[Pointer, list[tuple[SourceKey, Pointer]]] = {}
        self._configs: list[tuple[str, JsonObject]] = []
        self.sources: dict[Hashable, Source] = {}
        """All that came of the lists so far."""
        self.problems: list[Problem] = []
        self.watched: dict[str, Stamp | None] = {}
        """Files besides the tools themselves whose change changes what is loaded."""

    def read(
        self, entries: Json, pointer: Pointer, document: Document, *, agent: str, config: JsonObject
    ) -> list[Listed]:
        """The sources of one list of plugins for an agent, in order; a list that many agents share is read once.

        What several agents refer to is one source. Not so the live shell, whose state is the agent's own affair, and
        Python plugins, which are made for a configuration: agents share them only if theirs are equal.
        """
        if pointer not in self._lists:
            self._lists[pointer] = list(self._keys(entries, pointer, document))
        return [Listed(source=self._source(key, agent, config), pointer=place) for key, place in self._lists[pointer]]

    def _source(self, key: SourceKey, agent: str, config: JsonObject) -> Source:
        """The source of a thing: the one other agents have, the one from before a reload, or a new one."""
        known: Hashable = key
        if isinstance(key, PythonClass | PythonRepository):
            known = (key, self._first_with(agent, config))
        elif isinstance(key, ShellSession):
            known = (key, agent)
        if (found := self.sources.get(known)) is None:
            made = self._make_source(key, config)
            old = self._kept.get(known)
            found = renewed(old, made) if old is not None and old.conditions == made.conditions else made
            self.sources[known] = found
        return found

    def _first_with(self, agent: str, config: JsonObject) -> str:
        """The first agent that has the same configuration."""
        for name, other in self._configs:
            if other == config:
                return name
        self._configs.append((agent, config))
        return agent

    def _keys(self, entries: Json, pointer: Pointer, document: Document) -> Iterable[tuple[SourceKey, Pointer]]:
        ids = plugin_ids(entries) if pointer[0] == "agents" else []
        if ids:
            self.problems.append(ids_problem(ids, pointer, document))
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, str | dict) or any(place == index for place, _ in ids):
                continue  # said already
            spec = parse_plugin(entry, (*pointer, index), document)
            if isinstance(spec, Problem):
                self.problems.append(spec)
            elif not self._may_load(spec, document):
                continue
            elif isinstance(spec, BashFile | BashDirectory):
                for file in self._bash_files(spec):
                    yield file, spec.pointer
            else:
                yield spec, spec.pointer

    def _may_load(self, spec: PluginSpec, document: Document) -> bool:
        """Nothing of a bash tool runs unless the configuration says so."""
        if isinstance(spec, PythonClass | PythonRepository):
            return True
        if not self._policy.allow_bash_tools and isinstance(spec, BashFile | BashDirectory | BashRepository):
            self._add(
                "bash_tools_not_allowed",
                "bash tools are not allowed by this configuration",
                'set "plugin_policy": {"allow_bash_tools": true}',
                document,
                spec.pointer,
            )
            return False
        if isinstance(spec, NodeFile | NodeFolder | NodeGit):
            return self._may_load_node(spec, document)
        if self._workshops.bash is None and not isinstance(spec, ManifestFile):
            hint = "install bash 4.4 or newer and put it on PATH"
            self._add("bash_missing", "there is no bash on PATH", hint, document, spec.pointer)
            return False
        return True

    def _may_load_node(self, spec: NodeFile | NodeFolder | NodeGit, document: Document) -> bool:
        if self._workshops.node is None:
            hint = "install Node 20 or newer and put it on PATH"
            self._add("node_missing", "there is no Node on PATH", hint, document, spec.pointer)
            return False
        return True

    def _bash_files(self, spec: BashFile | BashDirectory) -> Iterable[str]:
        match spec:
            case BashFile(file=file):
                return [file]
            case BashDirectory(folder=folder):
                descriptor = os.path.join(folder, DESCRIPTOR)
                self.watched[descriptor] = stamp_of(descriptor)
                files, problems = bash_files(Path(folder))
                self.problems += problems
                return [os.path.abspath(file) for file in files]  # links stay as written

    def _make_source(self, key: SourceKey, config: JsonObject) -> Source:
        shops = self._workshops
        match key:
            case ManifestFile():
                return ManifestSource(key, shops.commands)
            case NodeFile() | NodeFolder() | NodeGit():
                from toolyard.kinds.node_module.source import NodeSource

                return NodeSource(key, checked(shops.node), shops.fetch_for(key.pointer))
            case PythonClass() | PythonRepository():
                from toolyard.kinds.python_function.source import PythonSource

                return PythonSource(key, shops.python_for(config))
            case BashRepository():
                from toolyard.kinds.bash_script.repository import FetchedBashSource

                return FetchedBashSource(key, checked(shops.bash), shops.python_for(config))
            case str():
                return BashToolSource(key, checked(shops.bash))
        from toolyard.kinds.shell.source import ShellSource

        return ShellSource(key, checked(shops.bash))

    def _add(self, code: str, message: str, hint: str, document: Document, pointer: tuple[str | int, ...]) -> None:
        self.problems.append(Problem(code=code, message=message, hint=hint, where=document.position(pointer)))


def renewed(old: Any, made: Source) -> Source:
    """The source from before a reload, told of the new configuration if it cares."""
    kept: Source = old.again(made) if hasattr(old, "again") else old
    return kept


def checked(shop: Shop | None) -> Shop:
    """What is there, since nothing is loaded otherwise."""
    if shop is None:
        raise RuntimeError("a plugin was let in whose program is missing")
    return shop


def plugin_ids(entries: Json) -> list[tuple[int, str]]:
    """The entries that can only be ids of plugins: what names a package has a dot, a colon or a slash."""
    listed = entries if isinstance(entries, list) else ()
    return [(place, id) for place, id in enumerate(listed) if isinstance(id, str) and PLUGIN_ID.fullmatch(id)]


def ids_problem(ids: list[tuple[int, str]], pointer: Pointer, document: Document) -> Problem:
    """Configurations of old listed the ids of an agent's plugins where packages are listed now."""
    named = ", ".join(f"'{id}'" for _, id in ids)
    return Problem(
        code="plugins_are_ids",
        message=f"{named}: an agent's 'plugins' says where plugins come from and no longer which ids are on",
        hint="turn plugins off with 'disabled_plugins' and on with 'enabled_plugins'; choose the ids for one session "
        "with 'plugins' in its metadata",
        where=document.position((*pointer, ids[0][0])),
    )
