"""Logs of refs: which commits they once had, by which people find again what a branch has lost."""

from __future__ import annotations

import re

LINE = re.compile(
    rb"(?P<old>[0-9a-f]{40}(?:[0-9a-f]{24})?) (?P<new>[0-9a-f]{40}(?:[0-9a-f]{24})?)"
    rb" [^<>\x00-\x1f\x7f]*<[^<>\x00-\x1f\x7f]*> \d{1,20} [+-]\d{4}(?:\t[^\x00-\x08\x0a-\x1f\x7f]*)?"
)
STASH = "logs/refs/stash"
"""The one log of which git takes out lines by itself: each of them is a stash."""


def merged_log(outside: bytes, inside: bytes) -> bytes:
    """A log with what was added inside; what is there outside stays, and lines that git would not write stay inside."""
    there = lines_of(outside)
    known = set(there)
    return b"".join(line + b"\n" for line in (*there, *(line for line in valid_lines(inside) if line not in known)))


def valid_part(data: bytes) -> bytes:
    """Those lines of a log that git would write."""
    return b"".join(line + b"\n" for line in valid_lines(data))


def stashes_gone(outside: bytes, inside: bytes) -> list[str]:
    """The stashes that are not there inside any more."""
    return [one for one in commits_in(outside) if one not in set(commits_in(inside))]


def commits_in(data: bytes) -> list[str]:
    return [found["new"].decode() for line in lines_of(data) if (found := LINE.fullmatch(line))]


def valid_lines(data: bytes) -> list[bytes]:
    return [line for line in lines_of(data) if LINE.fullmatch(line)]


def lines_of(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line]
