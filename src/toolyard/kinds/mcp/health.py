"""How a server has been doing: what went wrong, how often, and when it may be tried again."""

from __future__ import annotations

import time

import msgspec

FREE_TRIES = 3
"""How often a server may fail in a row before it is made to wait."""
LONGEST_PAUSE = 60.0
SOUND_AFTER = 30.0
"""A server that has lived so many seconds did not fail to start."""


class ServerLost(Exception):
    """A connection could not be made, or ended under whoever used it."""

    def __init__(self, reason: str, *, exit_code: int | None = None, signal: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = exit_code
        self.signal = signal


class ServerHealth(msgspec.Struct, kw_only=True):
    """Of one server, over all its connections."""

    starts: int = 0
    failures: int = 0
    """How often in a row it failed or ended before its time."""
    last_error: str = ""
    printed: str = ""
    """The last of what it printed beside its messages, when it failed."""
    started_at: float = 0.0
    next_try: float = 0.0

    def started(self) -> None:
        self.starts += 1
        self.started_at = time.monotonic()

    def failed(self, reason: str, printed: str) -> None:
        now = time.monotonic()
        self.failures = 1 if now - self.started_at > SOUND_AFTER else self.failures + 1
        self.last_error, self.printed = reason, printed
        pause = 0.0 if self.failures < FREE_TRIES else min(2.0 ** (self.failures - FREE_TRIES), LONGEST_PAUSE)
        self.next_try = now + pause

    @property
    def pause(self) -> float:
        """How many seconds are left until it may be started again."""
        return max(self.next_try - time.monotonic(), 0.0)

    @property
    def last_words(self) -> str:
        """What it printed last, as a paragraph below what went wrong."""
        return f"\nIt printed last:\n{self.printed}" if self.printed else ""
