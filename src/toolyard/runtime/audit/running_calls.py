"""Calls whose start is on record and whose end is to come, and the room that their ends will need."""

from __future__ import annotations

from typing import Any

from toolyard.runtime.audit.reserve import KEPT_FOR_ENDS
from toolyard.runtime.audit.short_lines import LONGEST_LINE

OUTCOME = 256
"""What an end says more than a start."""


class RunningCalls:
    """Those of this application; others that write the same log have theirs."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, str], int] = {}
        self.size = 0
        """How long their ends will be together, where room is short."""

    @property
    def room_for_ends(self) -> int:
        """What no other line may use: enough for ours, and some for those of others."""
        return max(KEPT_FOR_ENDS, KEPT_FOR_ENDS // 2 + self.size)

    def begin(self, record: dict[str, Any], size: int) -> None:
        call = call_of(record)
        self.size -= self._sizes.pop(call, 0)
        self._sizes[call] = size = min(size, LONGEST_LINE) + OUTCOME
        self.size += size

    def end(self, record: dict[str, Any]) -> bool:
        """Whether the start of a call that ends is on record."""
        size = self._sizes.pop(call_of(record), 0)
        self.size -= size
        return size > 0


def call_of(record: dict[str, Any]) -> tuple[str, str]:
    return str(record.get("session", "")), str(record.get("call_id", ""))
