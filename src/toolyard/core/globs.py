"""Patterns in which a star stands for any text, matched in time in proportion to the text and the stars."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
