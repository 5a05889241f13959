"""What changes from one text to another, as a unified diff, also of large texts in little time."""

from __future__ import annotations

from toolyard.files.workspace.places import quoted

CONTEXT = 3
MOST_COMPARED = 4000
"""Lines between the first and the last change, of which more are shown as replaced altogether."""


def unified(path: str, before: str | None, after: str | None) -> str:
    """The diff of a file; None stands for a file that is not there."""
    name = quoted(path)
    old, new = before or "", after or ""
    if old == new and (before is None) == (after is None):
        return ""
    head = (
        f"--- {'/dev/null' if before is None else 'a/' + name}\n+++ {'/dev/null' if after is None else 'b/' + name}\n"
    )
    return head + "".join(hunks(old, new))


def hunks(old: str, new: str) -> list[str]:
    """Of the lines between the first change and the last, and a few around them."""
    begin = old.rfind("\n", 0, common(old, new)) + 1
    stop = len(old) - common_end(old, new, min(len(old), len(new)) - begin)
    for _ in range(CONTEXT):
        begin = old.rfind("\n", 0, max(begin - 1, 0)) + 1
    for _ in range(CONTEXT + 1):
        stop = old.find("\n", stop) + 1 or len(old)
    after = len(new) - (len(old) - stop)
    return compared(lines_of(old[begin:stop]), lines_of(new[begin:after]), old.count("\n", 0, begin))


def common(old: str, new: str) -> int:
    """How many characters both begin with; found by halves, for whole pieces are compared at once."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if new.startswith(old[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def common_end(old: str, new: str, most: int) -> int:
    """How many characters both end with, of at most so many."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if new.endswith(old[len(old) - middle : len(old) - low], 0, len(new) - low):
            low = middle
        else:
            high = middle - 1
    return low


def lines_of(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def compared(old: list[str], new: list[str], skipped: int) -> list[str]:
    groups = [[("replace", 0, len(old), 0, len(new))]]
    if len(old) + len(new) <= MOST_COMPARED:
        from difflib import SequenceMatcher

        groups = [list(group) for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT)]
    shown: list[str] = []
    for group in groups:
        counts = range_of(group[0][1], group[-1][2], skipped), range_of(group[0][3], group[-1][4], skipped)
        shown.append(f"@@ -{counts[0]} +{counts[1]} @@\n")
        for kind, a, b, c, d in group:
            if kind == "equal":
                shown += [with_sign(" ", line) for line in old[a:b]]
                continue
            shown += [with_sign("-", line) for line in old[a:b]]
            shown += [with_sign("+", line) for line in new[c:d]]
    return shown


def range_of(start: int, stop: int, skipped: int) -> str:
    """Where a piece is, counted from one; an empty piece is named by the line before it."""
    length = stop - start
    at = skipped + start + (1 if length else 0)
    return str(at) if length == 1 else f"{at},{length}"


def with_sign(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
