"""Text as a person may safely look at it: what would hide or move other text is spelled out."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "| "
"""Before every line that somebody else wrote."""
MOST_BLANK = 2
LAYOUT = "\t\n"
"""Control characters that belong in a command."""
UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Characters that show nothing although Unicode counts them among letters, marks or symbols."""
SUSPECT = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
"""Categories of controls, formats, blanks and of what has no meaning at all."""


UPON_OTHERS = frozenset({"Mn", "Me", "Cf"})
"""Categories of accents, frames and joiners."""


def hidden_characters(text: str) -> list[str]:
    """The characters that a person would not see as they are, each once, as their code points."""
    if text.isascii() and text.isprintable():
        return []
    return [f"U+{ord(char):04X}" for char in dict.fromkeys(text) if is_hidden(char) and char not in LAYOUT]


def escaped(text: str) -> str:
    """The text with every hidden character spelled out, so that nothing on a screen hides what is approved."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(spelled(char) if is_hidden(char) and char != "\n" else char for char in text)


def columns(text: str) -> int:
    """How many columns of a terminal a line takes: two for wide characters, none for what is put upon others."""
    if text.isascii():
        return len(text)
    return sum(map(columns_of, text))


def columns_of(char: str) -> int:
    if unicodedata.category(char) in UPON_OTHERS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def fitting(line: str, most: int) -> str:
    """As much of a line as fits into so many columns, and a mark where something is left out."""
    if columns(line) <= most:
        return line
    room, end = most - 1, 0
    for end, char in enumerate(line):  # noqa: B007 - how far it came
        room -= columns_of(char)
        if room < 0:
            break
    return f"{line[:end]}…"


def on_one_line(text: str) -> str:
    """Text of somebody else in a sentence of ours: it cannot begin a line, and nothing in it is hidden."""
    return escaped(" ".join(text.split()))


def marked_lines(text: str) -> Iterator[str]:
    """The lines of somebody else's text, each with a mark that none of ours has; many empty ones are only counted."""
    blank = 0
    for line in [*escaped(text).split("\n"), ""]:
        if not line.strip():
            blank += 1
            continue
        if blank > MOST_BLANK:
            yield f"{MARK}({blank} empty lines)"
        else:
            yield from [MARK.rstrip()] * blank
        blank = 0
        yield MARK + line
    if blank > MOST_BLANK:
        yield f"{MARK}({blank - 1} empty lines)"


def is_hidden(char: str) -> bool:
    if " " <= char <= "~":
        return False
    is_variation_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return char in UNSEEN or unicodedata.category(char) in SUSPECT or is_variation_selector


def spelled(char: str) -> str:
    short = {"\t": "\\t", "\r": "\\r", "\0": "\\0"}
    return short.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{{{ord(char):x}}}")
