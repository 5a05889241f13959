"""Whether a line is one command with its words, and nothing that bash makes more of."""

from __future__ import annotations

import re

EXPANSION = r"""`[^`]*`? | \$(?=[\w{(\[@*#?$!-])[^\s"]*"""
PLAIN = re.compile(
    rf"""\\. | '[^']*' | (?P<quotes>") | (?P<operator>{EXPANSION} | \$['"]
         | && | \|\| | \|& | ;; | <<< | << | >> | [;&|<>()\n])""",
    re.VERBOSE | re.DOTALL,
)
"""What is looked at outside of double quotes; all else is a word's own text."""
QUOTED = re.compile(rf"""\\. | (?P<quotes>") | (?P<operator>{EXPANSION})""", re.VERBOSE | re.DOTALL)
"""The same between them."""


def first_operator(line: str) -> str | None:
    """The first operator or expansion that bash would obey in a line; what quotes make plain text is none.

    It may find one too many, such as in a comment: a line is refused for it, and none is ever allowed.
    """
    text, at, is_quoted = line.strip(), 0, False
    while found := (QUOTED if is_quoted else PLAIN).search(text, at):
        if found["operator"]:
            return found[0]
        at, is_quoted = found.end(), is_quoted != bool(found["quotes"])
    return None
