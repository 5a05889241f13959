"""A word of a command: what it is for certain, and what it may become when bash expands it."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

WordKind = Literal["literal", "glob", "dynamic"]
METACHARACTERS = frozenset(" \t\n|&;()<>'\"`$")
"""What cannot stand in an unquoted piece of a word."""
ASSIGNED_TILDE = re.compile(r"(?:^[A-Za-z_]\w*=|:)$")
RANGE = re.compile(r"\{(-?\d{1,5})\.\.(-?\d{1,5})\}")
LONGEST_RANGE = 1000
MOST_BRACES = 4
"""Each pair multiplies the words: thirty of `{a,b}` are a thousand million."""
MOST_COMMAS = 200
ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))", re.DOTALL
)
SIMPLE = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


class Misread(Exception):
    """The text does not fit the kind of its node, or is of a form that is not understood."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """One word as it is written."""

    text: str
    start: int
    end: int
    kind: WordKind = "literal"
    value: str | None = None
    """What the program gets, when that is certain."""
    prefix: str = ""
    """What it surely begins with."""
    splits: bool = False
    """Whether it may become several words, or none."""
    substitutes: bool = False
    """Whether the output of a command is in it."""

    @property
    def may_be_option(self) -> bool:
        if self.value is not None:
            return self.value.startswith("-") and self.value != "-"
        return self.splits_freely or not self.prefix or self.prefix.startswith("-")

    @property
    def splits_freely(self) -> bool:
        """Whether what it becomes may begin with anything; the names that a glob matches all begin with its prefix."""
        return self.splits and self.kind == "dynamic"


def literal_word(value: str, start: int = 0, end: int = 0) -> Word:
    return Word(text=value, start=start, end=end, value=value, prefix=value)


class WordBuilder:
    """Puts a word together from its pieces, from left to right."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text, self._start, self._end = text, start, end
        self._value: list[str] = []
        self._prefix: list[str] = []
        self._certain = True
        self._glob = self._dynamic = self._splits = self._substitutes = False
        self._shape: list[str] = []
        """The word with everything quoted made harmless, to look for braces in."""

    def quoted(self, text: str) -> None:
        """A piece that stands for itself."""
        self._add(text)
        self._shape.append("x" * len(text))

    def unquoted(self, text: str) -> None:
        """A piece without quotes: escapes, patterns, a tilde at its beginning."""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 1
                if at == len(text):
                    raise Misread("a word ends in a backslash")
                if text[at] != "\n":
                    self.quoted(text[at])
            elif char in METACHARACTERS:
                raise Misread(f"an unquoted {char!r} inside a word")
            elif char in "*?[":
                self._certain = False
                self._glob = self._splits = True
                self._shape.append(char)
            elif char == "~" and self._is_tilde_place():
                self._tilde()
            else:
                self._add(char)
                self._shape.append(char)
            at += 1

    def dynamic(self, *, quoted: bool, substitutes: bool = False) -> None:
        """A piece that only bash knows."""
        self._certain = False
        self._dynamic = True
        self._splits = self._splits or not quoted
        self._substitutes = self._substitutes or substitutes
        self._shape.append("x")

    def finish(self) -> Word:
        self._look_for_braces()
        kind: WordKind = "dynamic" if self._dynamic else "glob" if self._glob else "literal"
        return Word(
            text=self._text,
            start=self._start,
            end=self._end,
            kind=kind,
            value="".join(self._value) if self._certain else None,
            prefix="".join(self._prefix),
            splits=self._splits,
            substitutes=self._substitutes,
        )

    def _add(self, text: str) -> None:
        if self._certain:
            self._value.append(text)
            self._prefix.append(text)

    def _tilde(self) -> None:
        """A home folder, which is an absolute path."""
        if self._certain and not self._value:
            self._prefix.append("/")
        self._certain = False
        self._dynamic = True
        self._shape.append("~")

    def _is_tilde_place(self) -> bool:
        shape = "".join(self._shape)
        return not shape or bool(ASSIGNED_TILDE.search(shape))

    def _look_for_braces(self) -> None:
        """`{a,b}` and `{1..9}` make several words of one."""
        shape = "".join(self._shape)
        opened = shape.find("{")
        if opened < 0 or "}" not in shape[opened:]:
            return
        inside = shape[opened : shape.rfind("}")]
        if "," not in inside and ".." not in inside:
            return
        if shape.count("{") > MOST_BRACES or shape.count(",") > MOST_COMMAS:
            raise Misread("braces that become more words than can be looked over")
        self._check_ranges(shape)
        self._certain, self._glob, self._splits = False, True, True
        self._prefix = ["".join(self._prefix)[:opened]]

    def _check_ranges(self, shape: str) -> None:
        if ".." not in shape:
            return
        ranges = RANGE.findall(shape)
        if len(ranges) != 1 or shape.count("..") != 1 or abs(int(ranges[0][1]) - int(ranges[0][0])) > LONGEST_RANGE:
            raise Misread("a range of words that may have no end")


def decode_ansi_c(text: str) -> str:
    """What `$'…'` stands for."""
    body = text[2:-1]
    if not (text.startswith("$'") and text.endswith("'") and len(text) > 2):
        raise Misread("not a $'…' string")
    if re.sub(r"\\.", "", body, flags=re.DOTALL).count("'"):
        raise Misread("a quote inside a $'…' string")
    value = ESCAPE.sub(decode_escape, body)
    if "\0" in value:
        raise Misread("a NUL character ends the string")
    return value


def decode_escape(match: re.Match[str]) -> str:
    octal, byte, short, long, control, other = match.groups()
    if octal is not None:
        return as_character(int(octal, 8) & 0xFF)
    if byte is not None:
        return as_character(int(byte, 16))
    if short is not None or long is not None:
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise Misread("no such character")
        return chr(code)
    if control is not None:
        return chr(ord(control.upper()) & 0x1F)
    return SIMPLE.get(other, "\\" + other)


def as_character(code: int) -> str:
    """A byte above 127 is half a character, and what it becomes depends on its neighbours."""
    if code > 0x7F:
        raise Misread("a single byte that is no character")
    return chr(code)
