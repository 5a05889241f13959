"""An author's code, imported once for all that use it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

    from toolyard.core.problems import Problem
    from toolyard.plugins.author_code.hooks import Author
    from toolyard.plugins.author_code.import_space import ImportSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One version of the author's code."""

    version: Hashable
    """Equal for code that need not be imported again."""
    space: ImportSpace | None
    author: Author
    targets: Sequence[tuple[str, Any]]
    """The entries that could be imported, each with what it names."""
    problems: Sequence[Problem]


@dataclass(slots=True)
class Place:
    """A version on the shelf, while somebody uses it."""

    importing: asyncio.Lock = field(default_factory=asyncio.Lock)
    code: Imported | None = None
    users: int = 0


class CodeShelf:
    """What is imported now.

    Agents have plugins of their own, made for their configurations, from one and the same code: as everywhere in Python
    a module is there once, whoever imports it.
    """

    def __init__(self) -> None:
        self._places: dict[Hashable, Place] = {}

    async def take(self, version: Hashable, make: Callable[[], Awaitable[Imported]]) -> Imported:
        """The code of a version, imported by the first who takes it; each who does puts it back."""
        place = self._places.setdefault(version, Place())
        place.users += 1
        try:
            if place.code is None:  # else no lock, which may be of an event loop that is over
                async with place.importing:
                    place.code = place.code or await make()
            return place.code
        except BaseException:
            self._leave(version, place)
            raise

    def put_back(self, code: Imported) -> bool:
        """Use it no more; tells whether nobody else does, and forgets its modules then."""
        place = self._places.get(code.version)
        if place is None or place.code is not code:
            return True
        is_last = self._leave(code.version, place)
        if is_last and code.space:
            code.space.close()
        return is_last

    def _leave(self, version: Hashable, place: Place) -> bool:
        place.users -= 1
        if place.users == 0:
            self._places.pop(version, None)
        return place.users == 0
