"""The sources of repositories and Python plugins, those of before a reload among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.plugins.repository_spec import BashRepository

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.config.document import Document
    from toolyard.core.tool import JsonObject
    from toolyard.kinds.bash_workshop import BashWorkshop
    from toolyard.plugins.fetched_source import FetchedBashSource
    from toolyard.plugins.python_source import PythonSource
    from toolyard.plugins.python_workshop import PythonWorkshop
    from toolyard.plugins.repository_spec import PythonClass, PythonRepository, RepositorySpec
    from toolyard.plugins.source import Source

__all__ = ["RepositorySources"]


class RepositorySources:
    """Makes a source for a reference, or takes the one that there was before a reload."""

    def __init__(
        self,
        python: PythonWorkshop | None,
        bash: BashWorkshop | None,
        document: Document,
        config: JsonObject,
        kept: Iterable[Source],
    ) -> None:
        self._python = python
        self._bash = bash
        self._document = document
        self._config = config
        self._kept = {source.key: source for source in kept}

    def source(self, spec: RepositorySpec) -> Source | None:
        """The source of a reference; None where there is nothing to run it."""
        if isinstance(spec, BashRepository):
            return self._bash_source(spec)
        return self._python_source(spec)

    def _python_source(self, spec: PythonClass | PythonRepository) -> PythonSource | None:
        from toolyard.plugins.python_source import PythonSource

        if self._python is None:
            return None
        before = self._kept.get(spec)
        if isinstance(before, PythonSource) and before.conditions == self._python:
            return before.again(spec, self._document, self._config)
        return PythonSource(spec, self._python, self._document, self._config)

    def _bash_source(self, spec: BashRepository) -> FetchedBashSource | None:
        from toolyard.plugins.fetched_source import FetchedBashSource

        if self._python is None or self._bash is None:
            return None
        source = FetchedBashSource(spec, self._bash, self._python.acquirer, self._document)
        before = self._kept.get(spec)
        if isinstance(before, FetchedBashSource) and before.conditions == source.conditions:
            return before.again(spec, self._document)
        return source
