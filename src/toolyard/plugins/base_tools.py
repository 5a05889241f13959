"""The tools of the application that plugins build on: file tools and shells under other names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolyard.config.document import Place
from toolyard.plugins.entries import read_entry
from toolyard.plugins.kind import EndsSessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.core.tool import Tool
    from toolyard.plugins.host import Host
    from toolyard.plugins.kind import Source


class BaseTools:
    """Made when first named, and ended with whoever owns this."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sources: dict[str, Source] = {}
        self._replaced: list[Source] = []
        """Whose conditions do not hold any more; calls of theirs may still run."""

    def named(self, word: str) -> Mapping[str, Tool]:
        """The tools of an entry such as `files:more`, by their names; none for an entry that has to be loaded first."""
        source = self._sources.get(word) or self._make(word)
        return {tool.spec.name: tool for plugin in source.plugins() for tool in plugin.tools} if source else {}

    def follow(self, host: Host) -> None:
        """The configuration was read again: keep those whose tools would run under the same conditions."""
        self._host, before = host, self._sources
        self._sources = {}
        for word, old in before.items():
            made = self._make(word)
            if made is not None and made.conditions == old.conditions:
                old.adopt(made)
                self._sources[word] = old
            else:
                self._replaced.append(old)

    async def end_session(self, session: str) -> None:
        for source in self._sources.values():
            if isinstance(source, EndsSessions):
                await source.end_session(session)

    async def aclose(self) -> None:
        sources = [*self._replaced, *self._sources.values()]
        self._replaced, self._sources = [], {}
        await asyncio.gather(*(source.aclose() for source in sources))

    def _make(self, word: str) -> Source | None:
        at = Place(self._host.configuration.document, ("plugins",))
        kind, named = read_entry(word, at, self._host.kinds)
        if kind is None or len(named.references) != 1:
            return None
        reference = named.references[0]
        if reference.paths or reference.roots or reference.repository or kind.refusal(reference, self._host):
            return None  # nobody has made sure that tools cannot write it
        made = self._sources[word] = kind.source(reference, self._host)
        return made
