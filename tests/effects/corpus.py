"""All hostile lines, by class."""

from __future__ import annotations

from effects.hostile import git, grammar, programs, reading, runners, sessions, writing

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
        "sessions": [*sessions.sequences()],
    }
