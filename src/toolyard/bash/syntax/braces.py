"""Brace expansion: the words that `{a,b}` and `{1..9}` become, before bash looks at anything else in them."""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, TypeAlias

from toolyard.bash.syntax.words import Misread, WordPiece

if TYPE_CHECKING:
    from collections.abc import Sequence


MOST_WORDS = 1000
RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?|([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])", re.ASCII)
TOO_MANY = "braces that become more words than can be looked over"
Symbol: TypeAlias = "str | WordPiece"
"""One character without quotes, or a piece that braces leave alone."""


def expand_braces(pieces: Sequence[WordPiece]) -> list[tuple[WordPiece, ...]]:
    """The words of which one with braces is short; raises Misread when they are too many, or not for certain these."""
    symbols: list[Symbol] = []
    for piece in pieces:
        symbols.extend(piece.text if piece.kind == "live" else [piece])
    if "{" not in symbols:
        return [tuple(pieces)]
    return [joined(word) for word in expanded(symbols)]


def expanded(symbols: Sequence[Symbol]) -> list[list[Symbol]]:
    """Everything before the first pair of braces, times what that becomes, times what the rest becomes."""
    opened = next((at for at, symbol in enumerate(symbols) if symbol == "{"), None)
    if opened is None:
        return [list(symbols)]
    closed, commas = matching(symbols, opened)
    before, inner, after = symbols[:opened], symbols[opened + 1 : closed], symbols[closed + 1 :]
    middles = alternatives(inner, [comma - opened - 1 for comma in commas])
    rests = expanded(after)
    if len(middles) * len(rests) > MOST_WORDS:
        raise Misread(TOO_MANY)
    return [[*before, *middle, *rest] for middle in middles for rest in rests]


def matching(symbols: Sequence[Symbol], opened: int) -> tuple[int, list[int]]:
    """Where a brace is closed, and the commas between that belong to it."""
    depth = 0
    commas: list[int] = []
    for at in range(opened, len(symbols)):
        if symbols[at] == "{":
            depth += 1
        elif symbols[at] == "}":
            depth -= 1
            if depth == 0:
                return at, commas
        elif symbols[at] == "," and depth == 1:
            commas.append(at)
    raise Misread("a brace without an end")


def alternatives(inner: Sequence[Symbol], commas: Sequence[int]) -> list[list[Symbol]]:
    """What is between the commas, or in the range; without either the braces stay."""
    if commas:
        bounds = [-1, *commas, len(inner)]
        parts = [inner[left + 1 : right] for left, right in pairwise(bounds)]
        found = [word for part in parts for word in expanded(part)]
        if len(found) > MOST_WORDS:
            raise Misread(TOO_MANY)
        return found
    if all(isinstance(symbol, str) for symbol in inner) and (found := in_range("".join(map(str, inner)))):
        return found
    return [["{", *word, "}"] for word in expanded(inner)]


def in_range(text: str) -> list[list[Symbol]]:
    """`1..9`, `01..10..2`, `a..f`; nothing when it is no range."""
    match = RANGE.fullmatch(text)
    if match is None:
        if ".." in text and re.search(r"\w\.\.\w", text) and not re.search(r"[/.]\.\.|\.\.[/.]", text):
            raise Misread("a range of words that is not understood")
        return []
    if match[1] is None:
        first, last = ord(match[4] or match[6]), ord(match[5] or match[7])
        step = 1 if first <= last else -1
        return [[chr(code)] for code in range(first, last + step, step)]
    first, last, width = int(match[1]), int(match[2]), padding(match[1], match[2])
    step = max(abs(int(match[3] or 1)), 1) * (1 if first <= last else -1)
    if abs(last - first) // abs(step) >= MOST_WORDS:
        raise Misread("a range of words that may have no end")
    return [list(f"{number:0{width}d}") for number in range(first, last + (1 if step > 0 else -1), step)]


def padding(first: str, last: str) -> int:
    """How long each number is made, when one of the two begins with a zero."""
    padded = [number for number in (first, last) if re.match(r"-?0\d", number)]
    return max(len(first), len(last)) if padded else 0


def joined(symbols: Sequence[Symbol]) -> tuple[WordPiece, ...]:
    """The symbols as pieces again; raises Misread when a name goes on in what braces put behind it, as in `$x{a,b}`."""
    for left, right in pairwise(symbols):
        is_name = isinstance(left, WordPiece) and left.kind == "variable" and not left.quoted
        if is_name and isinstance(right, str) and (right.isalnum() or right == "_"):
            raise Misread("braces behind the name of a variable")
    pieces: list[WordPiece] = []
    for is_text, group in groupby(symbols, key=lambda symbol: isinstance(symbol, str)):
        found = list(group)
        if is_text:
            pieces.append(WordPiece(kind="live", text="".join(map(str, found)), quoted=False))
        else:
            pieces.extend(piece for piece in found if isinstance(piece, WordPiece))
    return tuple(pieces)
