"""What changes from one text to another, as a unified diff, also of large texts in little time."""

from __future__ import annotations

from toolyard.files.workspace.places import quoted

CONTEXT = 3
MOST_COMPARED = 4000
"""Lines between the first and the last change, of which more are shown as replaced altogether."""
PIECE = 32_768
"""Characters that are compared at once."""


def unified(path: str, before: str | None, after: str | None, same: tuple[int, int] | None = None) -> str:
    """The diff of a file; None stands for a file that is not there.

    Who knows how many characters are the same at the beginning and at the end says so, and they are not compared.
    """
    name = quoted(path)
    old, new = before or "", after or ""
    if old == new and (before is None) == (after is None):
        return ""
    head = (
        f"--- {'/dev/null' if before is None else 'a/' + name}\n+++ {'/dev/null' if after is None else 'b/' + name}\n"
    )
    return head + "".join(hunks(old, new, same or same_parts(old, new)))


def same_parts(old: str, new: str) -> tuple[int, int]:
    """How many characters two texts begin and end with alike, without any that would be in both."""
    begin = common(old, new)
    return begin, common_end(old, new, min(len(old), len(new)) - begin)


def hunks(old: str, new: str, same: tuple[int, int]) -> list[str]:
    """Of the lines between the first change and the last, and a few around them."""
    begin = old.rfind("\n", 0, same[0]) + 1
    stop = len(old) - same[1]
    for _ in range(CONTEXT):
        begin = old.rfind("\n", 0, max(begin - 1, 0)) + 1
    for _ in range(CONTEXT + 1):
        stop = old.find("\n", stop) + 1 or len(old)
    after = len(new) - (len(old) - stop)
    return compared(lines_of(old[begin:stop]), lines_of(new[begin:after]), old.count("\n", 0, begin))


def common(old: str, new: str) -> int:
    """How many characters both begin with: by pieces that stay in the processor's cache, and then by halves."""
    low, most = 0, min(len(old), len(new))
    while low < most and new.startswith(old[low : low + PIECE], low):
        low += PIECE
    high = min(low + PIECE, most)
    while low < high:
        middle = (low + high + 1) // 2
        if new.startswith(old[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return min(low, most)


def common_end(old: str, new: str, most: int) -> int:
    """How many characters both end with, of at most so many."""
    low = 0
    while low < most and ends_alike(old, new, low, low + PIECE):
        low += PIECE
    high = min(low + PIECE, most)
    while low < high:
        middle = (low + high + 1) // 2
        if ends_alike(old, new, low, middle):
            low = middle
        else:
            high = middle - 1
    return min(low, most)


def ends_alike(old: str, new: str, begin: int, stop: int) -> bool:
    """Whether two texts are the same from one place to another, both counted from their ends."""
    return new.endswith(old[max(len(old) - stop, 0) : len(old) - begin], 0, len(new) - begin)


def lines_of(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def count_lines(text: str) -> int:
    """How many lines those are; the last need not end."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def compared(old: list[str], new: list[str], skipped: int) -> list[str]:
    groups = [[("replace", 0, len(old), 0, len(new))]]
    if plain := as_one_change(old, new):
        groups = [plain]
    elif len(old) + len(new) <= MOST_COMPARED:
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


def as_one_change(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    """The commonest of changes, as a matcher of lines would give it in ten times the time: one line that became
    another, or lines that only came or only went; nothing for all else.
    """
    begin = end = 0
    most = min(len(old), len(new))
    while begin < most and old[begin] == new[begin]:
        begin += 1
    while end < most - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    gone, come = len(old) - end, len(new) - end
    if not (min(gone, come) == begin or gone == come == begin + 1):
        return []
    first, after = max(begin - CONTEXT, 0), min(end, CONTEXT)
    return [
        ("equal", first, begin, first, begin),
        ("replace", begin, gone, begin, come),
        ("equal", gone, gone + after, come, come + after),
    ]


def range_of(start: int, stop: int, skipped: int) -> str:
    """Where a piece is, counted from one; an empty piece is named by the line before it."""
    length = stop - start
    at = skipped + start + (1 if length else 0)
    return str(at) if length == 1 else f"{at},{length}"


def with_sign(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
