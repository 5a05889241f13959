"""Known secret values never reach a result, an event or a log, also when they come in pieces."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Redactor", "StreamRedactor"]


class Redactor:
    """Replaces the values of known secrets by their names."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names = {spelling: name for name, value in secrets.items() if value for spelling in spellings(value)}
        # Longest first, so that a secret that contains another is replaced whole.
        self._values = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._values))) if self._values else None

    @property
    def knows_any(self) -> bool:
        """Whether there is any secret to look for."""
        return self._pattern is not None

    def redact(self, text: str) -> str:
        """The text without secrets."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: f"[redacted {self._names[match[0]]}]", text)

    def stream(self, emit: Callable[[str], None]) -> StreamRedactor:
        """Redact a text that comes in pieces."""
        return StreamRedactor(self, emit)

    def held_back(self, text: str) -> int:
        """How many characters at the end may be the beginning of a secret."""
        longest = len(self._values[0]) - 1 if self._values else 0
        for size in range(min(longest, len(text)), 0, -1):
            end = text[-size:]
            if any(len(value) > size and value.startswith(end) for value in self._values):
                return size
        return 0


def spellings(value: str) -> set[str]:
    """A value as it is, and as it stands inside a JSON text, where quotes and line ends are written otherwise."""
    return {value, *(json.dumps(value, ensure_ascii=ascii)[1:-1] for ascii in (True, False))}


class StreamRedactor:
    """Passes pieces on at once, but for an end that may be the beginning of a secret."""

    def __init__(self, redactor: Redactor, emit: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._emit = emit
        self._rest = ""

    def feed(self, text: str) -> None:
        """Take the next piece."""
        text = self._rest + text
        held = self._redactor.held_back(text)
        ready, self._rest = (text[:-held], text[-held:]) if held else (text, "")
        self._pass(ready)

    def finish(self) -> None:
        """Nothing more comes: what was held back was no secret."""
        rest, self._rest = self._rest, ""
        self._pass(rest)

    def _pass(self, text: str) -> None:
        if text:
            self._emit(self._redactor.redact(text))
