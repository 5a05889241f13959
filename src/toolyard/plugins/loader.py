"""From the entries of `plugins` to sources of tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.problems import ConfigProblem
from toolyard.plugins.bash_source import BashToolSource, Stamp, stamp_of
from toolyard.plugins.descriptors import DESCRIPTOR, bash_files
from toolyard.plugins.repository_sources import repository_source
from toolyard.plugins.repository_spec import BashRepository, PythonClass, PythonRepository
from toolyard.plugins.shell_source import ShellSource
from toolyard.plugins.spec import BashDirectory, BashFile, ShellCommand, ShellSession, parse_plugin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.config.document import Document
    from toolyard.config.settings import PluginPolicy
    from toolyard.core.tool import Json
    from toolyard.kinds.bash_workshop import BashWorkshop
    from toolyard.plugins.python_workshop import PythonWorkshop
    from toolyard.plugins.repository_spec import RepositorySpec
    from toolyard.plugins.source import Source
    from toolyard.plugins.spec import PluginSpec

__all__ = ["Loader"]


class Loader:
    """Turns plugin references into sources, keeping those that were there before a reload."""

    def __init__(
        self, policy: PluginPolicy, workshop: BashWorkshop | None, python: PythonWorkshop | None = None
    ) -> None:
        self._policy = policy
        self._workshop = workshop
        self._python = python
        self.problems: list[ConfigProblem] = []
        self.watched: dict[str, Stamp | None] = {}
        """Files besides the tools themselves whose change changes what is loaded."""

    def sources(self, entries: Json, document: Document, kept: Iterable[Source] = ()) -> list[Source]:
        """The sources of the document's `plugins`, in order, each once."""
        before = {source.key: source for source in kept}
        keys = dict.fromkeys(self._keys(entries, document))
        made = (self._source(key, before.get(key)) for key in keys)
        return [source for source in made if source]

    def _source(self, key: str | ShellCommand | ShellSession | RepositorySpec, before: Source | None) -> Source | None:
        if isinstance(key, BashRepository | PythonClass | PythonRepository):
            return repository_source(key, self._python, self._workshop, before) if self._python else None
        if before and before.conditions == self._workshop:
            return before
        return make_source(key, self._workshop) if self._workshop else None

    def _keys(self, entries: Json, document: Document) -> Iterable[str | ShellCommand | ShellSession | RepositorySpec]:
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
            elif isinstance(spec, ShellCommand | ShellSession | BashRepository | PythonClass | PythonRepository):
                yield spec
            else:
                yield from self._bash_files(spec)

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
        if self._workshop is None:
            hint = "install bash 4.4 or newer and put it on PATH"
            self._add("bash_missing", "there is no bash on PATH", hint, document, spec.pointer)
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

    def _add(self, code: str, message: str, hint: str, document: Document, pointer: tuple[str | int, ...]) -> None:
        self.problems.append(ConfigProblem(code=code, message=message, hint=hint, where=document.position(pointer)))


def make_source(key: str | ShellCommand | ShellSession, workshop: BashWorkshop) -> Source:
    return BashToolSource(key, workshop) if isinstance(key, str) else ShellSource(key, workshop)
