"""Exact replacement in a text: what is to be replaced must be there, and once, unless all of it is meant."""

from __future__ import annotations

import re

from toolyard.files.workspace.contents import with_newlines
from toolyard.files.workspace.places import FileFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolyard.files.workspace.contents import FileText

RARITY = " etnrsaioldc_.pumf()g=,\"h:b'y\n-v10w/2[]xk{}*T;SENACROI>Lq3<P+Dj54zFM#6BU89|7@V&GHW$?!XYJKZQ\\%`^~"
"""Characters by how common they are in programs, the most common first; all others are rarer than these."""
MOST_WEIGHED = 256
MOST_SKIPS = 1000
NEAR = 3
"""How many places are named where a text is more than once."""


class Replacement:
    """A text after replacements, and how much of it they left alone: whoever shows them need not look for it."""

    __slots__ = ("count", "head", "tail", "text")

    def __init__(self, text: str, count: int, head: int, tail: int) -> None:
        self.text = text
        self.count = count
        self.head = head
        """At least so many characters are before the first of them."""
        self.tail = tail
        """At least so many are after the last."""


def edited(file: FileText, edits: list[dict[str, Any]]) -> Replacement:
    """The text after all edits, each made in what the one before left."""
    done = Replacement(file.text, 0, len(file.text), len(file.text))
    # As it was read: an edit may take away the last of its ends of lines, and the next one bring new ones.
    has_crlf = "\r" in file.text and "\r\n" in file.text  # one character is looked for much faster than two
    newline = file.newline if has_crlf else None
    for number, edit in enumerate(edits, start=1):
        where = f"edit {number}: " if len(edits) > 1 else ""
        try:
            made = replaced(
                done.text, edit["old_string"], edit["new_string"], newline, every=bool(edit.get("replace_all"))
            )
        except FileFault as fault:
            raise FileFault(f"{where}{fault}" + ("; nothing was changed" if where else "")) from None
        head, tail = min(done.head, made.head), min(done.tail, made.tail)
        done = Replacement(made.text, done.count + made.count, head, tail)
    return done


def replaced(text: str, old: str, new: str, newline: str | None, *, every: bool) -> Replacement:
    if not old:
        raise FileFault("old_string is empty; to make a file, write it")
    if old == new:
        raise FileFault("old_string and new_string are the same")
    if newline:
        old, new = as_in_file(text, old, newline), with_newlines(new, newline)
    first = place_of(text, old)
    if first < 0:
        raise FileFault(f"old_string was not found in the file{hint_for(text, old)}")
    after = first + len(old)
    if place_of(text, old, after) < 0:
        return Replacement("".join((text[:first], new, text[after:])), 1, first, len(text) - after)
    count = text.count(old)
    if not every:
        raise FileFault(
            f"old_string is there {count} times (lines {lines_with(text, old)}); give more of what is around it, or "
            "say replace_all"
        )
    return Replacement(text.replace(old, new), count, first, len(text) - text.rindex(old) - len(old))


def place_of(text: str, old: str, start: int = 0) -> int:
    """As `find`, which looks at each character where this skips to the next that is the rarest one of what it looks
    for; where that one turns out to be common, it is left to `find`.
    """
    rarest = max(set(old[:MOST_WEIGHED]), key=lambda one: RARITY.find(one) % len(RARITY))
    within = old.index(rarest)
    place = start + within
    for _ in range(MOST_SKIPS):
        place = text.find(rarest, place)
        if place < 0 or text.startswith(old, place - within):
            return max(place - within, -1)
        place += 1
    return text.find(old, place - within)


def as_in_file(text: str, old: str, newline: str) -> str:
    """A text with the ends of lines that the file has there: most often all alike, but in some files not."""
    usual = with_newlines(old, newline)
    if "\n" not in old or usual in text:
        return usual
    any_end = r"\r?\n".join(re.escape(line) for line in with_newlines(old, "\n").split("\n"))
    found = re.search(any_end, text)
    return found[0] if found else usual


def lines_with(text: str, old: str) -> str:
    """The numbers of the first lines with a text."""
    numbers: list[str] = []
    at = text.find(old)
    while at >= 0 and len(numbers) < NEAR:
        numbers.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(numbers) + (" …" if at >= 0 else "")


def hint_for(text: str, old: str) -> str:
    """What may be wrong with a text that was not found."""
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    if re.match(r"\s*\d+\t", old):
        return "; it begins with a line number, which is no part of the file"
    if not first or first not in text:
        return ""
    line = text.count("\n", 0, text.index(first)) + 1
    return f"; its first line is like line {line}, so look at white space and at what follows"
