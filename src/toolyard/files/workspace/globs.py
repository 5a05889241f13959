"""Patterns of paths as git and shells write them, as regular expressions."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MOST_BRANCHES = 256
NEVER = "(?!)"
"""Matches nothing."""
STAR, FOLDERS, ANYTHING = "*", "**/", ".*"
"""Of a pattern: any characters of a name, any number of folders, and whatever else comes."""
WILD = re.compile(r"[*?\[\\]")
SPACE, DIGITS, LOWER, UPPER = (" ", "\t", "\n", "\r"), ("09",), ("az",), ("AZ",)
PUNCTUATION = ("!/", ":@", "[`", "{~")
CLASSES: dict[str, tuple[str, ...]] = {
    "alnum": (*DIGITS, *LOWER, *UPPER),
    "alpha": (*LOWER, *UPPER),
    "blank": (" ", "\t"),
    "cntrl": ("\x00\x1f", "\x7f"),
    "digit": DIGITS,
    "graph": ("!~",),
    "lower": LOWER,
    "print": (" ~",),
    "punct": PUNCTUATION,
    "space": SPACE,
    "upper": UPPER,
    "xdigit": (*DIGITS, "af", "AF"),
}
"""The characters of each class that a set can name: single ones, and ranges by their first and last."""


class NoPattern(ValueError):
    """A text that git takes for a pattern which matches nothing: a set that does not end, or a backslash at the end."""


def glob_regex(pattern: str, *, as_git: bool = False) -> str:
    """What matches a whole path: `*` and `?` within a name, `**` for any number of folders, sets in brackets.

    What is no pattern is taken as it is written; NoPattern where it is to be as git has it. Whatever follows a star is
    taken where it fits first, and no other place is tried, so that no pattern takes longer than others: all that stands
    between two stars is as long as it is, in characters or in names.
    """
    groups: list[list[str]] = [[]]
    for token in tokens_of(pattern, as_git=as_git):
        if token == FOLDERS:
            groups.append([])
        else:
            groups[-1].append(token)
    first, *others = map(names_regex, groups)
    if not others:
        return first
    return first + "".join(f"(?>(?:[^/]*/)*?{one})" for one in others[:-1]) + f"(?:.*/)?{others[-1]}"


def tokens_of(pattern: str, *, as_git: bool) -> Iterator[str]:
    """Expressions of one character each, and what stands for more."""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            end = at + len(pattern[at:]) - len(pattern[at:].lstrip("*"))
            is_whole_name = (at == 0 or pattern[at - 1] == "/") and pattern[end : end + 1] in ("", "/")
            if end - at == 1 or not is_whole_name:
                yield STAR
            elif end < len(pattern):
                yield FOLDERS
                end += 1
            else:
                yield ANYTHING
            at = end
        elif char == "?":
            yield "[^/]"
            at += 1
        elif char == "[" and (read := read_set(pattern, at + 1, as_git=as_git)):
            yield read[0]
            at = read[1]
        elif (char == "[" or (char == "\\" and at + 1 == len(pattern))) and as_git:
            raise NoPattern(pattern)
        else:
            at += char == "\\" and at + 1 < len(pattern)
            yield re.escape(pattern[at])
            at += 1


def names_regex(tokens: Sequence[str]) -> str:
    """Names one below the other, in which stars stand for characters."""
    found, pieces = "", [""]
    for token in (*tokens, ""):
        if token == STAR:
            pieces.append("")
        elif token in ("", "/", ANYTHING):
            first, *others = pieces
            middle = "".join(f"(?>[^/]*?{one})" for one in others[:-1])
            found += first + (f"{middle}[^/]*{others[-1]}" if others else "") + token
            pieces = [""]
        else:
            pieces[-1] += token
    return found


def git_regex(pattern: str) -> str:
    """The same for a pattern with a slash as git reads it: what is before its first wild character is apart."""
    wild = WILD.search(pattern)
    plain = wild.start() if wild else len(pattern)
    return re.escape(pattern[:plain]) + glob_regex(pattern[plain:], as_git=True)


def read_set(pattern: str, at: int, *, as_git: bool) -> tuple[str, int] | None:
    """A set from behind its bracket on, as an expression, and where it is over; None when it never is.

    A range that ends before it begins has nothing in it, but for git its first character.
    """
    without = pattern[at : at + 1] in ("!", "^")
    begin = at = at + without
    ranges: list[str] = []
    previous = ""
    while at < len(pattern) and (pattern[at] != "]" or at == begin):
        if pattern[at] == "-" and previous and pattern[at + 1 : at + 2] not in ("", "]"):
            last, at = read_char(pattern, at + 1)
            ranges[len(ranges) if as_git else -1 :] = [previous + last]
            previous = ""
        elif pattern.startswith("[:", at) and (end := pattern.find("]", at + 2)) > 0 and pattern[end - 1] == ":":
            if (name := pattern[at + 2 : end - 1]) not in CLASSES:
                return None
            ranges += CLASSES[name]
            previous, at = "", end + 1
        else:
            previous, at = read_char(pattern, at)
            ranges.append(previous)
    if at >= len(pattern):
        return None
    return set_regex(ranges, without=without), at + 1


def read_char(pattern: str, at: int) -> tuple[str, int]:
    """One character of a set, perhaps after a backslash, and what comes next."""
    at += pattern[at] == "\\" and at + 1 < len(pattern)
    return pattern[at], at + 1


def set_regex(ranges: list[str], *, without: bool) -> str:
    """Single characters and ranges as an expression; never a slash, which parts names."""
    inner = "".join("-".join(map(re.escape, one)) for one in ranges if one[0] <= one[-1])
    if not inner:
        return "[^/]" if without else NEVER
    return f"(?!/)[{'^' if without else ''}{inner}]"


def compiled(regex: str) -> re.Pattern[str]:
    """A pattern of which a dot is any character."""
    return re.compile(regex, re.DOTALL)


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


def path_filter(pattern: str) -> Callable[[str], bool]:
    """Whether a path fits; after `!`, whether neither it nor a folder that it is in does."""
    if not pattern.startswith("!"):
        fits = path_pattern(pattern, anywhere=True).fullmatch
        return lambda path: fits(path) is not None
    left_out = re.compile(f"(?:{path_pattern(pattern[1:], anywhere=True).pattern})(?:/.*)?", re.DOTALL).fullmatch
    return lambda path: left_out(path) is None
