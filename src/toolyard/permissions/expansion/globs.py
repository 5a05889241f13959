"""The files that a pattern matches now, found on the disk as bash finds them, within bounds."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import WordPiece


MOST_MATCHES = 500
MOST_FOLDERS = 200
MOST_ENTRIES = 20_000
CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "xdigit": "0-9a-fA-F",
    "word": r"\w",
    "punct": r"!-/:-@\[-`{-~",
}


class TooMuch(Exception):
    """More files or folders than can be looked over, or a pattern that is not understood."""


class Segment(msgspec.Struct, frozen=True):
    """What stands between two slashes of a pattern: a name, or a pattern of names."""

    name: str
    pattern: re.Pattern[str] | None = None
    hidden: bool = False
    """Whether it spells out the dot that names of hidden files begin with."""


def files_matching(pieces: Sequence[WordPiece], folder: str) -> list[str] | None:
    """The paths that a pattern stands for, as bash would write them; None when that cannot be found out."""
    try:
        segments = segments_of([(char, piece.kind == "live") for piece in pieces for char in piece.text])
        return sorted(GlobWalk(folder).run(segments))
    except (TooMuch, re.error, ValueError):
        return None


def segments_of(chars: Sequence[tuple[str, bool]]) -> list[Segment]:
    segments: list[Segment] = []
    current: list[tuple[str, bool]] = []
    for char, live in [*chars, ("/", True)]:
        if char == "/":
            segments.append(segment_of(current))
            current = []
        else:
            current.append((char, live))
    return segments


def segment_of(chars: Sequence[tuple[str, bool]]) -> Segment:
    name = "".join(char for char, _ in chars)
    if not any(live and char in "*?[" for char, live in chars):
        return Segment(name)
    return Segment(name, re.compile("".join(as_regex(chars)), re.DOTALL), name.startswith("."))


def as_regex(chars: Sequence[tuple[str, bool]]) -> Iterator[str]:
    at = 0
    while at < len(chars):
        char, live = chars[at]
        if not live or char not in "*?[":
            yield re.escape(char)
        elif char != "[":
            yield {"*": ".*", "?": "."}[char]
        else:
            found, at = bracket(chars, at)
            yield found
        at += 1


def bracket(chars: Sequence[tuple[str, bool]], at: int) -> tuple[str, int]:
    """`[…]` as a regular expression, and where it ends; a bracket without an end stands for itself."""
    text = "".join(char if live else f"\0{char}" for char, live in chars[at:])
    match = re.match(r"\[([!^]?)((?:\]|\[:\w+:\]|[^\]\[])(?:\[:\w+:\]|[^\]\[])*)\]", text)
    if match is None:
        if "]" in text:
            raise TooMuch
        return re.escape("["), at
    if "\0" in match[0] or "\\" in match[0]:
        raise TooMuch
    inner = re.sub(r"\[:(\w+):\]|([\\&~|\[\]^])", set_member, match[2])
    return f"[{'^' if match[1] else ''}{inner}]", at + len(match[0]) - 1


def set_member(match: re.Match[str]) -> str:
    if match[1] is None:
        return "\\" + match[2]
    if match[1] not in CLASSES:
        raise TooMuch
    return CLASSES[match[1]]


class GlobWalk:
    """Walks down a pattern's segments; raises TooMuch beyond its bounds."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._folders = self._entries = 0

    def run(self, segments: Sequence[Segment]) -> list[str]:
        found = [""]
        for at, segment in enumerate(segments):
            last = at == len(segments) - 1
            found = [path for base in found for path in self._step(base, segment, last=last)]
            if len(found) > MOST_MATCHES:
                raise TooMuch
        return found

    def _step(self, base: str, segment: Segment, *, last: bool) -> Iterator[str]:
        slash = "" if last else "/"
        if segment.pattern is None:
            path = base + segment.name
            if not segment.name or os.path.lexists(self._where(path)):
                yield path + slash
            return
        for name in self._names(base):
            if not fits(segment, name):
                continue
            if last or os.path.isdir(self._where(base + name)):
                yield base + name + slash

    def _where(self, path: str) -> str:
        return os.path.join(self._folder, path)

    def _names(self, base: str) -> list[str]:
        self._folders += 1
        try:
            names = os.listdir(self._where(base) or ".")
        except OSError:
            return []
        self._entries += len(names)
        if self._folders > MOST_FOLDERS or self._entries > MOST_ENTRIES:
            raise TooMuch
        return [*names, ".", ".."]


def fits(segment: Segment, name: str) -> bool:
    """Whether a pattern means a name; a hidden one, and `..`, only if its dot is spelled out."""
    if name.startswith(".") and not segment.hidden:
        return False
    return segment.pattern is not None and bool(segment.pattern.fullmatch(name))
