"""Regular expressions that cost no more than they must: compiled when first used, and matched in bounded time."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # `typing` takes longer to import than all that is here, and small processes need this, too
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, AnyStr


def late_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A pattern for a whole module, compiled when something is first asked of it.

    A start imports a hundred of them and uses a few; to compile all takes longer than many a command.
    """
    return LatePattern(text, flags)  # type: ignore[return-value]  # it becomes one in all that is asked of it


class LatePattern:
    """Stands for a pattern; what was asked of it once is its own, so that the second time costs nothing more."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(re.compile(self._text, self._flags), name)
        return found


def star_pattern(texts: Sequence[str], any_character: str = ".") -> re.Pattern[str]:
    """What matches these texts in their order, with anything between two of them; to be used with `fullmatch`.

    Each text but the last is taken where it is found first, and no other place for it is ever tried: with `.*` for each
    star, there would be as many ways to try as the text has places for all of them.
    """
    first, *others = map(re.escape, texts)
    if not others:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>{any_character}*?{text})" for text in others[:-1])
    return re.compile(f"{first}{middle}{any_character}*{others[-1]}", re.DOTALL)
