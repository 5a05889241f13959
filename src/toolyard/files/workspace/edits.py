"""Exact replacement in a text: what is to be replaced must be there, and once, unless all of it is meant."""

from __future__ import annotations

import re

from toolyard.files.workspace.contents import with_newlines
from toolyard.files.workspace.places import FileFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolyard.files.workspace.contents import FileText

NEAR = 3
"""How many places are named where a text is more than once."""


def edited(file: FileText, edits: list[dict[str, Any]]) -> tuple[str, int]:
    """The text after all edits, each made in what the one before left, and how many replacements that were."""
    text, made = file.text, 0
    for number, edit in enumerate(edits, start=1):
        where = f"edit {number}: " if len(edits) > 1 else ""
        try:
            text, count = replaced(text, edit["old_string"], edit["new_string"], file.newline, edit)
        except FileFault as fault:
            raise FileFault(f"{where}{fault}" + ("; nothing was changed" if where else "")) from None
        made += count
    return text, made


def replaced(text: str, old: str, new: str, newline: str, how: dict[str, Any]) -> tuple[str, int]:
    if not old:
        raise FileFault("old_string is empty; to make a file, write it")
    if old == new:
        raise FileFault("old_string and new_string are the same")
    spans = places_of(text, old)
    wanted = how.get("expected_replacements")
    if not spans:
        raise FileFault(f"old_string was not found in the file{hint_for(text, old)}")
    if wanted is not None and len(spans) != wanted:
        raise FileFault(f"old_string is there {len(spans)} times, and {wanted} replacements were expected")
    if wanted is None and len(spans) > 1 and not how.get("replace_all"):
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start, _ in spans[:NEAR])
        more = " …" if len(spans) > NEAR else ""
        raise FileFault(
            f"old_string is there {len(spans)} times (lines {lines}{more}); give more of what is around it, or say "
            "replace_all"
        )
    new = with_newlines(new, newline) if "\r\n" in text else new
    pieces, end = [], 0
    for start, stop in spans:
        pieces += [text[end:start], new]
        end = stop
    return "".join([*pieces, text[end:]]), len(spans)


def places_of(text: str, old: str) -> list[tuple[int, int]]:
    """Where a text is; the end of a line is one, whatever characters the file has for it."""
    if "\n" in old and "\r\n" in text:
        pattern = r"\r?\n".join(re.escape(line) for line in old.replace("\r\n", "\n").split("\n"))
        return [match.span() for match in re.finditer(pattern, text)]
    spans, at = [], text.find(old)
    while at >= 0:
        spans.append((at, at + len(old)))
        at = text.find(old, at + len(old))
    return spans


def hint_for(text: str, old: str) -> str:
    """What may be wrong with a text that was not found."""
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    if re.match(r"\s*\d+\t", old):
        return "; it begins with a line number, which is no part of the file"
    if not first or first not in text:
        return ""
    line = text.count("\n", 0, text.index(first)) + 1
    return f"; its first line is like line {line}, so look at white space and at what follows"
