"""Takes wrappers off a command, which do not change what it does: `timeout 5`, `nice`, `command`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.bash.syntax.reading import SimpleCommand
    from toolyard.bash.syntax.words import Word


DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
SIGNAL = re.compile(r"[A-Z0-9+]+")
NUMBER = re.compile(r"[+-]?\d+")
BUFFERING = re.compile(r"L|0|\d+[KMG]?B?")
MOST = 8


def unwrapped(command: SimpleCommand) -> SimpleCommand:
    """The command with every wrapper taken off whose options are understood; one that is not stays the command."""
    layers, words = take_off_wrappers(command.words)
    return replace(command, words=words, wrapped=layers) if layers else command


def take_off_wrappers(words: tuple[Word, ...]) -> tuple[tuple[tuple[Word, ...], ...], tuple[Word, ...]]:
    """The words with each of their wrappers still on, from the outermost, and without any."""
    layers: list[tuple[Word, ...]] = []
    while len(layers) < MOST and words and (take_off := WRAPPERS.get(words[0].value or "")):
        inner = take_off(words)
        if inner is None or inner >= len(words) or words[inner].may_be_option:
            break
        layers.append(words)
        words = words[inner:]
    return tuple(layers), words


class WrapperSyntax:
    """What a wrapper takes before the command: options, options with a value, and a number of operands."""

    def __init__(
        self,
        flags: Sequence[str] = (),
        values: dict[str, re.Pattern[str]] | None = None,
        operands: Sequence[re.Pattern[str]] = (),
    ) -> None:
        self._flags = frozenset(flags)
        self._values = values or {}
        self._operands = operands

    def __call__(self, words: Sequence[Word]) -> int | None:
        """Where the command begins; None when that cannot be told."""
        at = 1
        while at < len(words) and (value := words[at].value) is not None and value.startswith("-"):
            if value == "--":
                at += 1
                break
            taken = self._take(value, words, at)
            if taken is None:
                return None
            at += taken
        for pattern in self._operands:
            if at >= len(words) or not fits(pattern, words[at]):
                return None
            at += 1
        return at

    def _take(self, option: str, words: Sequence[Word], at: int) -> int | None:
        """How many words an option takes."""
        if option in self._flags:
            return 1
        if pattern := self._values.get(option):
            return 2 if at + 1 < len(words) and fits(pattern, words[at + 1]) else None
        for name, pattern in self._values.items():
            glued = option.removeprefix(name + "=" if name.startswith("--") else name)
            if glued != option and pattern.fullmatch(glued):
                return 1
        return None


def fits(pattern: re.Pattern[str], word: Word) -> bool:
    return word.value is not None and bool(pattern.fullmatch(word.value))


TIMEOUT = WrapperSyntax(
    ["--preserve-status", "--foreground", "-v", "--verbose"],
    {"-k": DURATION, "--kill-after": DURATION, "-s": SIGNAL, "--signal": SIGNAL},
    [DURATION],
)
NICE = WrapperSyntax([f"-{number}" for number in range(20)], {"-n": NUMBER, "--adjustment": NUMBER})
STDBUF = WrapperSyntax(
    [], {name: BUFFERING for option in ("input", "output", "error") for name in (f"-{option[0]}", f"--{option}")}
)
PLAIN = WrapperSyntax()
WRAPPERS: dict[str, Callable[[Sequence[Word]], int | None]] = {
    "timeout": TIMEOUT,
    "nice": NICE,
    "stdbuf": STDBUF,
    "nohup": PLAIN,
    "command": WrapperSyntax(["-p"]),
    "builtin": PLAIN,
}
