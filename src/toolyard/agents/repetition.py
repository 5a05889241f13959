"""Noticing that a model goes round in circles: the same calls with the same results, again and again."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from toolyard.core.lossless_json import encode_json
from toolyard.runtime.redaction import CUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.conversation import CallAnswer
    from toolyard.core.tool import ToolCall

LONGEST_CIRCLE = 3
SAID_AT = 3
ENDED_AT = 6


class Repetition:
    """Remembers the steps of a turn by what was called and what came of it."""

    def __init__(self) -> None:
        self._steps: list[bytes] = []

    def add(self, calls: Sequence[ToolCall], answers: Sequence[CallAnswer]) -> int:
        """How many times in a row the same steps were taken now; one for something new."""
        # Where long output is kept is told in it, and is another place each time.
        results = [(CUT.sub("", answer.text), answer.attachments) for answer in answers]
        seen = [[call.name, call.arguments] for call in calls], results
        self._steps.append(blake2b(encode_json(seen), digest_size=16).digest())
        return max(self._times(length) for length in range(1, LONGEST_CIRCLE + 1))

    def _times(self, length: int) -> int:
        """How often the last so many steps stand there one after the other."""
        last, times = self._steps[-length:], 1
        while len(last) == length and self._steps[-length * (times + 1) : -length * times] == last:
            times += 1
        return times


def in_words(times: int) -> str:
    """What the model is told."""
    return (
        f"[The same calls gave the same results {times} times in a row. Repeating them will not help: "
        "try something else, or say what is missing.]"
    )
