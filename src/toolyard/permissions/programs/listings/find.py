"""Finds the row of the tables for a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import each_name
from toolyard.permissions.programs.listings.git import GIT
from toolyard.permissions.programs.listings.packages import FLAT, PACKAGES
from toolyard.permissions.programs.listings.shell import SHELL
from toolyard.permissions.programs.listings.system import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.listings.listing import Listing


def commands_of(several: str) -> list[str]:
    """The commands that a row is for: one of two words, or several of one word each."""
    first, _, second = several.partition(" ")
    return [several] if first in GROUPS and " " not in second else several.split()


GROUPS = frozenset(
    {
        "config",
        "cache",
        "pkg",
        "mod",
        "pip",
        "python",
        "tool",
        "toolchain",
        "target",
        "component",
        "env",
        "image",
        "container",
        "volume",
        "network",
        "compose",
        "context",
        "system",
    }
)
"""Commands that have further ones."""
PLAIN: dict[str, Listing] = {**SYSTEM, **SHELL, **FLAT}
COMMANDS: dict[str, dict[str, Listing]] = {
    program: {command: row for several, row in rows.items() for command in commands_of(several)}
    for program, rows in each_name(PACKAGES).items()
}


def listing_of(words: Sequence[Word]) -> tuple[Listing, Sequence[Word]] | None:
    """The row for a call and the words that are read by it; None where the tables know no such command."""
    name = words[0].value or ""
    if name == "git":
        row = GIT.get(words[1].value or "") if len(words) > 1 else None
        return (row, words[2:]) if row else None
    if name in PLAIN:
        return PLAIN[name], words[1:]
    rows = COMMANDS.get(name, {})
    for count in (2, 1):
        command = " ".join(word.value or "" for word in words[1 : count + 1])
        if len(words) > count and (row := rows.get(command)) is not None:
            return row, words[count + 1 :]
    return None
