"""Logs of refs: which commits they once had, by which people find again what a branch has lost."""

from __future__ import annotations

from toolyard.core.regexes import late_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

LINE = late_pattern(
    rb"(?P<old>[0-9a-f]{40}(?:[0-9a-f]{24})?) (?P<new>[0-9a-f]{40}(?:[0-9a-f]{24})?)"
    rb" [^<>\x00-\x1f\x7f]*<[^<>\x00-\x1f\x7f]*> \d{1,20} [+-]\d{4}(?:\t[^\x00-\x08\x0a-\x1f\x7f]*)?"
)
STASH = "logs/refs/stash"
"""The one log of which git takes out lines by itself: each of them is a stash."""


def merged_log(outside: bytes, inside: bytes, broken: Collection[str]) -> bytes:
    """A log with what was added inside; what is there outside stays, and lines that git would not write stay inside.

    So do those that lead to what is broken: git outside follows them when it collects what is not needed any more.
    """
    there = lines_of(outside)
    known = set(there)
    new = (line for line in valid_lines(inside, broken) if line not in known)
    return b"".join(line + b"\n" for line in (*there, *new))


def valid_part(data: bytes, broken: Collection[str]) -> bytes:
    """Those lines of a log that git would write."""
    return b"".join(line + b"\n" for line in valid_lines(data, broken))


def stashes_gone(outside: bytes, inside: bytes) -> list[str]:
    """The stashes that are not there inside any more."""
    return [one for one in commits_in(outside) if one not in set(commits_in(inside))]


def commits_in(data: bytes) -> list[str]:
    return [found["new"].decode() for line in lines_of(data) if (found := LINE.fullmatch(line))]


def ids_in(data: bytes) -> set[str]:
    """All that the lines of a log lead to, before and after."""
    found = [line for one in lines_of(data) if (line := LINE.fullmatch(one))]
    return {line[which].decode() for line in found for which in ("old", "new") if line[which].strip(b"0")}


def valid_lines(data: bytes, broken: Collection[str]) -> list[bytes]:
    return [line for line in lines_of(data) if LINE.fullmatch(line) and ids_in(line).isdisjoint(broken)]


def lines_of(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line]
