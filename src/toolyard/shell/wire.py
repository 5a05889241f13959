"""What is said to bash on its private control channel, and how its answers on the status channel are read.

Nothing said here needs a command that a user could have replaced by a function, but for `.` itself: the status record
is a redirection that cannot succeed, from a name that holds what we want to know, and bash's own words for that are the
record. It costs one write, leaves `$?` and the options as they are and cannot be shadowed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Record", "Records", "is_plain", "may_define", "quoted", "record_line", "run_line"]

MOST_INLINE = 2000
LONGEST = 16384
"""More than any record: the longest path is 4096 bytes."""
NEEDS_A_FILE = re.compile(
    r"""[&(){}`\n\r\x00-\x08\x0e-\x1f]
      | \b(?:alias|bg|builtin|command|coproc|disown|eval|exec|exit|fg|function|jobs|logout|return|set|shopt|source
          |suspend|times?|trap|unalias|wait)\b
      | (?:^|[\s;|])[.!]\s""",
    re.VERBOSE,
)
"""What makes a difference between a line typed at an interactive shell and the same line in a script."""
DEFINES = re.compile(r"\(\s*\)|\b(?:function|source|eval|alias|declare|typeset|readonly|enable)\b|(?:^|[\s;&|({])\.\s")
"""What can define a function or an alias, by which a plain word comes to mean anything."""
NAMES_DOT = re.compile(r"(?:^|[\s;&|({])(?:function\s+)?(\.|source)\s*\(\s*\)|\bfunction\s+(\.|source)\s")


class Record(NamedTuple):
    """What bash tells of the end of a command."""

    number: int
    status: int
    flags: str
    """The options that have a letter, as in `$-`."""
    cwd: str


class Records:
    """Finds records in whatever else an interactive bash writes to its own standard error: prompts, notices, traces."""

    def __init__(self, nonce: str) -> None:
        self._inbox = bytearray()
        self._end = f"={nonce}:".encode()
        self._pattern = re.compile(rf"/-/{nonce} (\d+) (\d+) (\w*) (.*?)={nonce}:".encode(), re.DOTALL)

    def feed(self, data: bytes) -> list[Record]:
        """The records that are complete by now; what else came before them is forgotten."""
        self._inbox += data
        if self._end not in self._inbox:
            del self._inbox[:-LONGEST]
            return []
        found = []
        end = 0
        for match in self._pattern.finditer(self._inbox):
            number, status, flags, cwd = match.groups()
            found.append(Record(int(number), int(status), flags.decode(), cwd.decode("utf-8", "surrogateescape")))
            end = match.end()
        del self._inbox[:end]
        return found


def quoted(text: str | bytes) -> bytes:
    """A word that bash takes for exactly this text."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return b"'" + data.replace(b"'", b"'\\''") + b"'"


def is_plain(text: str) -> bool:
    """Whether a line means the same typed at an interactive shell as in a script, given plain words."""
    return len(text) <= MOST_INLINE and NEEDS_A_FILE.search(text.replace("&&", "")) is None


def may_define(text: str) -> bool:
    """Whether a text may change what words mean to the shell."""
    return DEFINES.search(text) is not None


def shadows_dot(text: str) -> bool:
    """Whether a text defines a function in the place of the one builtin that we need."""
    return NAMES_DOT.search(text) is not None


def run_line(source: bytes, *, stdin: bytes, output: bytes) -> bytes:
    """Run something with the streams of a command."""
    return source + b" <" + stdin + b" >" + output + b" 2>&1\n"


def record_line(nonce: str, number: int, what: bytes) -> bytes:
    """Ask for a record of something; the `!` before it keeps `set -e` and the ERR trap away."""
    return b'! [[ a ]]<"/-/%b %d %b $- ${PWD-}=%b:"\n' % (nonce.encode(), number, what, nonce.encode())
