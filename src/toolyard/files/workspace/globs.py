"""Patterns of paths as git and shells write them, as regular expressions."""

from __future__ import annotations

import re

MOST_BRANCHES = 256


def glob_regex(pattern: str) -> str:
    """What matches a whole path: `*` and `?` within a name, `**` for any number of folders, sets in brackets."""
    found, at = "", 0
    while at < len(pattern):
        rest = pattern[at:]
        if (rest.startswith("**/") and at == 0) or rest.startswith("/**/"):
            found, at = found + ("/" if at else "") + "(?:.*/)?", at + (4 if at else 3)
        elif rest == "/**":
            found, at = found + "/.*", at + 3
        elif rest == "**" and at == 0:
            found, at = found + ".*", at + 2
        elif rest[0] == "*":
            at += len(rest) - len(rest.lstrip("*"))
            found += "[^/]*"
        elif rest[0] == "?":
            found, at = found + "[^/]", at + 1
        elif rest[0] == "[" and (end := end_of_set(rest)):
            found, at = found + set_regex(rest[1:end]), at + end + 1
        elif rest[0] == "\\" and len(rest) > 1:
            found, at = found + re.escape(rest[1]), at + 2
        else:
            found, at = found + re.escape(rest[0]), at + 1
    return found


def end_of_set(text: str) -> int:
    """Where the bracket at the beginning of a text is closed; 0 when it is not."""
    begin = 2 if text[1:2] in ("!", "^") else 1
    return text.find("]", begin + 1) if text.find("]", begin + 1) > 0 else 0


def set_regex(inner: str) -> str:
    without = inner[:1] in ("!", "^")
    inner = (inner[1:] if without else inner).replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    # Never a slash, which parts names.
    return f"(?!/)[{'^' if without else ''}{inner.replace(']', chr(92) + ']')}]"


def compiled(regex: str) -> re.Pattern[str]:
    """A pattern; one that cannot be, such as with a range that ends before it begins, matches nothing."""
    try:
        return re.compile(regex, re.DOTALL)
    except re.error:
        return re.compile(r"(?!)")


def branches(pattern: str) -> list[str]:
    """The patterns that braces stand for: `*.{js,ts}` are two."""
    found: list[str] = []
    waiting = [pattern]
    while waiting and len(found) + len(waiting) < MOST_BRANCHES:
        one = waiting.pop()
        inner = re.search(r"(?<!\\)\{([^{}]*,[^{}]*)\}", one)
        if inner is None:
            found.append(one)
        else:
            waiting += [one[: inner.start()] + part + one[inner.end() :] for part in inner[1].split(",")]
    return found + waiting


def path_pattern(pattern: str, *, anywhere: bool = False, ignore_case: bool = False) -> re.Pattern[str]:
    """A pattern of paths, to be used with `fullmatch`; `anywhere` lets one that has no slash fit in any folder."""
    parts = [one.removeprefix("./") for one in branches(pattern)]
    regexes = [("(?:.*/)?" if anywhere and "/" not in one else "") + glob_regex(one.lstrip("/")) for one in parts]
    return compiled(("(?i)" if ignore_case else "") + "|".join(f"(?:{one})" for one in regexes))
