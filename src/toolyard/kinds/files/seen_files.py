"""Which files each conversation has read, and what they were then: only those may be changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolyard.core.tool import CallContext

MOST_FILES = 10_000
"""Of one conversation; the oldest are forgotten first."""


class SeenFiles:
    """The versions of files by their paths, for each conversation and agent."""

    def __init__(self) -> None:
        self._by_session: dict[tuple[str, str], dict[str, list[int]]] = {}

    def version(self, context: CallContext, path: str) -> list[int] | None:
        """What a file was when the conversation last saw it; None for one that it has not seen."""
        return self._by_session.get((context.session, context.agent), {}).get(key_of(context, path))

    def note(self, context: CallContext, path: str, version: list[int]) -> None:
        """The conversation knows what is in a file now."""
        seen = self._by_session.setdefault((context.session, context.agent), {})
        seen.pop(key_of(context, path), None)
        seen[key_of(context, path)] = version
        while len(seen) > MOST_FILES:
            del seen[next(iter(seen))]

    def forget(self, session: str) -> None:
        for key in [key for key in self._by_session if key[0] == session]:
            del self._by_session[key]


def key_of(context: CallContext, path: str) -> str:
    return os.path.normpath(os.path.join(context.cwd, path))
