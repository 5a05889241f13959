"""A word of a command: what it is for certain, and what it may become when bash expands it."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

WordKind = Literal["literal", "glob", "dynamic"]
PieceKind = Literal["text", "live", "variable", "output", "number", "unknown"]
METACHARACTERS = frozenset(" \t\n|&;()<>'\"`$")
"""What cannot stand in an unquoted piece of a word."""
ASSIGNED_TILDE = re.compile(r"(?:^[A-Za-z_]\w*=|:)$")
MOST_BRACES = 8
"""Pairs of braces in a word; each multiplies the words that it becomes."""
MOST_COMMAS = 200
ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))", re.DOTALL
)
SIMPLE = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


class Misread(Exception):
    """The text does not fit the kind of its node, or is of a form that is not understood."""


class WordPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a word that bash expands in its own way."""

    kind: PieceKind
    text: str = ""
    """What stands there; of a variable, its name."""
    quoted: bool = True
    """Whether bash leaves what it becomes in one piece."""
    change: str = ""
    """What `${name…}` does to the value, such as `%.py`."""
    start: int = 0
    """Where it begins in the line."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """One word as it is written, or as it is after expansion."""

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
    inside: bool = False
    """Whether it only becomes names of files inside the workspace, or numbers, whichever they are."""
    is_number: bool = False
    """Whether it only becomes a number."""
    expanded: bool = False
    """Whether it is one of those that braces or a pattern of files became, so that nobody wrote it as it is."""
    texts: tuple[str, ...] = ()
    """All texts that it may become, when they are known and it stays one word."""
    sample: str | None = None
    """One of the texts that it becomes, when all of them differ in nothing but a number."""
    signed_sample: str | None = None
    """The same when the first number may be below zero, for programs to which that can be no option."""
    pieces: tuple[WordPiece, ...] = ()
    """What it consists of, unless its value is certain as it is written."""

    @property
    def sampled(self) -> Word:
        """The word with one of its numbers, for those who do not care which."""
        return self if self.sample is None else literal_word(self.sample, self.start, self.end)

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
        self._pieces: list[WordPiece] = []
        self._certain = True
        self._glob = self._dynamic = self._splits = self._substitutes = False
        self._shape: list[str] = []
        """The word with everything quoted made harmless, to look for braces in."""

    def quoted(self, text: str) -> None:
        """A piece that stands for itself."""
        self._add(text)
        self._shape.append("x" * len(text))
        self._pieces.append(WordPiece(kind="text", text=text))

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
            else:
                self._live(char)
            at += 1

    def dynamic(self, piece: WordPiece) -> None:
        """A piece that only bash knows."""
        self._certain = False
        self._dynamic = True
        self._splits = self._splits or not piece.quoted
        self._substitutes = self._substitutes or piece.kind == "output"
        self._shape.append("x")
        self._pieces.append(piece)

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
            pieces=() if self._certain else tuple(self._pieces),
        )

    def _live(self, char: str) -> None:
        """A character without quotes, which may be part of a pattern, of braces or of a tilde's name."""
        if char in "*?[":
            self._certain = False
            self._glob = self._splits = True
        elif char == "~" and self._is_tilde_place():
            self._tilde()
        else:
            self._add(char)
        self._shape.append(char)
        if self._pieces and self._pieces[-1].kind == "live":
            char = self._pieces.pop().text + char
        self._pieces.append(WordPiece(kind="live", text=char, quoted=False))

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
        self._certain, self._glob, self._splits = False, True, True
        self._prefix = ["".join(self._prefix)[:opened]]


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
