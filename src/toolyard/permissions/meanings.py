"""What words mean in a live session: a function or an alias that a person let pass takes the place of a program.

A rule for `ls **` is about the program. After `ls() { … }` was approved, `ls` is something else in that session, and is
asked about until the definition is taken back or the session begins anew.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Meanings"]

NAME = r"[^\s;&|<>()$`'\"\\=]+"
FUNCTION = re.compile(rf"(?:^|[\s;&|({{])(?:function\s+({NAME})|({NAME})\s*\(\s*\))")
ALIAS = re.compile(r"(?:^|[\s;&|({])alias\s+([^;&|\n]*)")
ALIASED = re.compile(rf"(?:^|\s)['\"]?({NAME})=")
ELSEWHERE = re.compile(rf"\b(?:enable\s+-n|hash\s+-p\s+\S+)\s+({NAME})")
TAKEN_BACK = re.compile(rf"\b(?:unset\s+-f|unalias)\s+((?:{NAME}\s*)+)")


class Meanings:
    """For each session the names that no longer mean what rules say of them."""

    def __init__(self) -> None:
        self._changed: dict[str, set[str]] = {}

    def learn(self, session: str, text: str) -> None:
        """Note what a line defines, and what it takes back."""
        changed = self._changed.setdefault(session, set())
        for found in TAKEN_BACK.finditer(text):
            names = found[1].split()
            changed.difference_update(changed.copy() if "-a" in names else names)
        changed.update(defined_in(text))

    def forget(self, session: str) -> None:
        """The session begins anew."""
        self._changed.pop(session, None)

    def changed_among(self, session: str, names: Iterable[str | None]) -> str | None:
        """The first of some names that means something else now."""
        changed = self._changed.get(session)
        return next((name for name in names if name in changed), None) if changed else None


def defined_in(text: str) -> set[str]:
    """The names that a line gives another meaning, as far as the line itself says."""
    found = {match[1] or match[2] for match in FUNCTION.finditer(text)}
    for aliases in ALIAS.finditer(text):
        found.update(match[1] for match in ALIASED.finditer(aliases[1]))
    found.update(match[1] for match in ELSEWHERE.finditer(text))
    return found
