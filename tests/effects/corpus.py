"""All hostile lines, by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from effects.hostile import git, grammar, listings, programs, reading, runners, sessions, writing
from permissions.hostile_lines import BY_HAND, generated

if TYPE_CHECKING:
    from effects.judge import Judge

Attack = str | tuple[str, ...]
"""One line, or several for one live session."""


def by_hand() -> dict[str, list[Attack]]:
    """Those that were thought up, by the module that has them."""
    return {
        "reading": [*dict.fromkeys(reading.lines())],
        "programs": [*programs.lines()],
        "git": [*git.lines()],
        "planted": [*git.PLANTED],
        "grammar": [*grammar.lines()],
        "writing": [*writing.lines()],
        "runners": [*runners.lines()],
        "listings": [*listings.BY_HAND],
        "sessions": [*sessions.sequences()],
    }


def by_options() -> list[Attack]:
    """Those that the tables of programs' options make up, and more about options that were thought up."""
    return [*BY_HAND, *generated()]


def add_links(judge: Judge) -> None:
    """Other names by which lines about options go outside."""
    for name, target in {"link": "../neighbour/secret.txt", "way": "/etc", "../neighbour/x": "secret.txt"}.items():
        (judge.scene.work / name).symlink_to(target)
    judge.scene.tree.remember()
