"""`full_screen_program`: which program of a text would wait for a person before a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.core.regexes import late_pattern

if TYPE_CHECKING:
    from toolyard.bash.syntax.reading import SimpleCommand

EDITORS = frozenset({"hx", "joe", "mcedit", "micro", "nano", "nvim", "pico", "vi", "view", "vim", "vimdiff"})
MONITORS = frozenset({"atop", "btop", "htop", "top", "watch"})
NAMED = late_pattern(rf"\b(?:{'|'.join(sorted(EDITORS | MONITORS))})\b")
NEEDS_A_TERMINAL = "needs a terminal, and there is none here; nothing was run"
WORKS_ALONE = late_pattern(r"-(?:[bcEehsVv]|es|Es|bn\d*)|--(?:batch|cmd|headless|help|version)\b.*|\+.+")
"""Options with which such a program does its work by itself and ends."""


def full_screen_program(text: str) -> str | None:
    """The first program in a text that needs a screen and somebody before it."""
    if NAMED.search(text) is None:
        return None
    from toolyard.bash.syntax.parse import read_line
    from toolyard.bash.syntax.reading import SimpleCommand

    reading = read_line(text)
    commands = (part for part in reading.parts if isinstance(part, SimpleCommand))
    return next((one.name for one in commands if one.name not in reading.defines and needs_a_screen(one)), None)


def needs_a_screen(command: SimpleCommand) -> bool:
    """Whether it is such a program, with no option that says otherwise, no input of its own and no time limit."""
    name = (command.name or "").rpartition("/")[2]
    if name not in EDITORS | MONITORS or command.wrapped:
        return False
    reads = any(redirection.operator.startswith("<") for redirection in command.redirections)
    return not reads and not any(WORKS_ALONE.fullmatch(word.text) for word in command.words[1:])
