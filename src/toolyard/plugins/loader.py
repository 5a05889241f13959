"""From the entries of `plugins` to sources of tools."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from toolyard.config.problems import ConfigProblem
from toolyard.plugins.bash_source import BashToolSource, Stamp, stamp_of
from toolyard.plugins.descriptors import DESCRIPTOR, bash_files
from toolyard.plugins.shell_source import ShellSource
from toolyard.plugins.spec import (
    BashDirectory,
    BashFile,
    NodeFile,
    NodeFolder,
    NodeGit,
    ShellCommand,
    ShellSession,
    parse_plugin,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from toolyard.config.document import Document
    from toolyard.config.settings import PluginPolicy
    from toolyard.core.tool import Json
    from toolyard.kinds.bash_workshop import BashWorkshop
    from toolyard.plugins.node_source import Fetch, NodeShop
    from toolyard.plugins.source import Source
    from toolyard.plugins.spec import PluginSpec

__all__ = ["Loader"]

Shop = TypeVar("Shop")
Key: TypeAlias = str | ShellCommand | ShellSession | NodeFile | NodeFolder | NodeGit


class Loader:
    """Turns plugin references into sources, keeping those that were there before a reload."""

    def __init__(
        self,
        policy: PluginPolicy,
        workshop: BashWorkshop | None,
        *,
        node: Callable[[], NodeShop | None] | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self._policy = policy
        self._workshop = workshop
        self._make_node = node
        self._fetch = fetch
        self.problems: list[ConfigProblem] = []
        self.watched: dict[str, Stamp | None] = {}
        """Files besides the tools themselves whose change changes what is loaded."""

    def sources(self, entries: Json, document: Document, kept: Iterable[Source] = ()) -> list[Source]:
        """The sources of the document's `plugins`, in order, each once."""
        keys = dict.fromkeys(self._keys(entries, document))
        before = {source.key: source for source in kept if source.conditions == self._conditions(source.key)}
        return [before.get(key) or self._make_source(key) for key in keys]

    def _keys(self, entries: Json, document: Document) -> Iterable[Key]:
        if not isinstance(entries, list):
            if entries is not None:
                self._add(
                    "plugin_spec", "'plugins' must be a list", '"plugins": ["bash:./tools"]', document, ("plugins",)
                )
            return
        for index, entry in enumerate(entries):
            spec = parse_plugin(entry, ("plugins", index), document)
            if isinstance(spec, ConfigProblem):
                self.problems.append(spec)
            elif not self._may_load(spec, document):
                continue
            elif isinstance(spec, BashFile | BashDirectory):
                yield from self._bash_files(spec)
            else:
                yield spec

    def _may_load(self, spec: PluginSpec, document: Document) -> bool:
        """Nothing of a bash tool runs unless the configuration says so."""
        if not self._policy.allow_bash_tools and isinstance(spec, BashFile | BashDirectory):
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
        if self._workshop is None:
            hint = "install bash 4.4 or newer and put it on PATH"
            self._add("bash_missing", "there is no bash on PATH", hint, document, spec.pointer)
            return False
        return True

    def _may_load_node(self, spec: NodeFile | NodeFolder | NodeGit, document: Document) -> bool:
        if self._node is None:
            hint = "install Node 20 or newer and put it on PATH"
            self._add("node_missing", "there is no Node on PATH", hint, document, spec.pointer)
            return False
        if isinstance(spec, NodeGit) and self._fetch is None:
            message, hint = "Node packages are not loaded from repositories yet", 'clone it, and write "node:PATH"'
            self._add("plugin_unsupported", message, hint, document, spec.pointer)
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

    @cached_property
    def _node(self) -> NodeShop | None:
        """Looked for only when something needs it."""
        return self._make_node() if self._make_node else None

    def _conditions(self, key: Hashable) -> object:
        return self._node if isinstance(key, NodeFile | NodeFolder | NodeGit) else self._workshop

    def _make_source(self, key: Key) -> Source:
        if isinstance(key, NodeFile | NodeFolder | NodeGit):
            from toolyard.plugins.node_source import NodeSource

            return NodeSource(key, checked(self._node), self._fetch)
        workshop = checked(self._workshop)
        return BashToolSource(key, workshop) if isinstance(key, str) else ShellSource(key, workshop)

    def _add(self, code: str, message: str, hint: str, document: Document, pointer: tuple[str | int, ...]) -> None:
        self.problems.append(ConfigProblem(code=code, message=message, hint=hint, where=document.position(pointer)))


def checked(shop: Shop | None) -> Shop:
    """What is there, since nothing is loaded otherwise."""
    if shop is None:
        raise RuntimeError("a plugin was let in whose program is missing")
    return shop
