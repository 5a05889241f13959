"""The modules of plugins, imported once for all agents that use them, and forgotten with the last."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

    from toolyard.core.problems import Problem
    from toolyard.plugins.author_code.hooks import AuthorCode
    from toolyard.plugins.author_code.import_space import ImportSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One version of the author's code."""

    version: Hashable
    """Equal for code that need not be imported again."""
    space: ImportSpace | None
    author: AuthorCode
    targets: Sequence[tuple[str, Any]]
    """The entries that could be imported, each with what it names."""
    problems: Sequence[Problem]


@dataclass(slots=True)
class Slot:
    """One version, while somebody uses it."""

    importing: asyncio.Lock = field(default_factory=asyncio.Lock)
    code: Imported | None = None
    users: int = 0


class ModuleCache:
    """What is imported now.

    Agents have plugins of their own, made for their configurations, from one and the same code: as everywhere in Python
    a module is there once, whoever imports it.
    """

    def __init__(self) -> None:
        self._slots: dict[Hashable, Slot] = {}

    async def acquire(self, version: Hashable, make: Callable[[], Awaitable[Imported]]) -> Imported:
        """The code of a version, imported by the first who asks for it; each who does releases it."""
        slot = self._slots.setdefault(version, Slot())
        slot.users += 1  # before anything is awaited: whoever releases it meanwhile must not be the last
        try:
            if slot.code is None:  # else no lock, which may be of an event loop that is over
                async with slot.importing:
                    slot.code = slot.code or await make()
            return slot.code
        except BaseException:
            self._leave(version, slot)
            raise

    def release(self, code: Imported) -> bool:
        """Use it no more; tells whether nobody else does, and forgets its modules then."""
        slot = self._slots.get(code.version)
        if slot is None or slot.code is not code:
            return True
        is_last = self._leave(code.version, slot)
        if is_last and code.space:
            code.space.close()
        return is_last

    def _leave(self, version: Hashable, slot: Slot) -> bool:
        slot.users -= 1
        if slot.users == 0:
            self._slots.pop(version, None)
        return slot.users == 0
