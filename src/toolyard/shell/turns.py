"""One caller of a session at a time."""

from __future__ import annotations

import asyncio

__all__ = ["Turns"]


class Turns:
    """A lock that knows of everybody who waits for it, also of the one who is just being woken."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._callers = 0

    @property
    def is_free(self) -> bool:
        """Whether nobody has it and nobody waits for it."""
        return self._callers == 0

    async def __aenter__(self) -> None:
        self._callers += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._callers -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._callers -= 1
