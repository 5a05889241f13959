"""Patterns of commands: words, `*` inside a word, and a last `**` for any further arguments."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.problems import Problem
from toolyard.core.regexes import star_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


REST = "**"
ANY_WORD = ".*"
"""What a lone `*` becomes."""
ORDINARY = re.compile(r"[\w.:@%+,/=^~-]+", re.ASCII)


def bad_rule(message: str, hint: str = "until this is mended, nothing is allowed without asking") -> Problem:
    """Why what is written in the permissions is no rule, or no setting."""
    return Problem(code="permissions_rule", message=message, hint=hint)


class Glob(msgspec.Struct, frozen=True):
    """A word with `*` in it."""

    pattern: re.Pattern[str]


class CommandPattern(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Words to be met one by one; `rest` lets any number of others follow."""

    words: tuple[str | Glob, ...]
    rest: bool

    @cached_property
    def is_exact(self) -> bool:
        return not self.rest and all(isinstance(word, str) for word in self.words)

    @cached_property
    def named(self) -> int:
        """How many words it spells out from the beginning."""
        return next((at for at, word in enumerate(self.words) if not isinstance(word, str)), len(self.words))


def parse_pattern(text: str) -> CommandPattern | Problem:
    """Read a pattern; quotes and backslashes make a character stand for itself, as in a shell."""
    tokens = split_tokens(text)
    if isinstance(tokens, Problem):
        return tokens
    if not tokens:
        return bad_rule("a pattern needs at least one word")
    rest = tokens[-1] == [(REST, False)]
    words = [as_word(token) for token in (tokens[:-1] if rest else tokens)]
    for word in words:
        if isinstance(word, Problem):
            return word
    if words and isinstance(words[0], Glob):
        return bad_rule("the program has to be named; only a last '**' or '*' in an argument stands for others")
    return CommandPattern(words=tuple(word for word in words if not isinstance(word, Problem)), rest=rest)


def split_tokens(text: str) -> list[list[tuple[str, bool]]] | Problem:
    """The words of a pattern, each as its pieces with whether they were quoted."""
    tokens: list[list[tuple[str, bool]]] = []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "bad":
            return bad_rule(f"a quote or backslash at column {match.start() + 1} has no end")
        if match.lastgroup == "word":
            tokens.append([piece_of(piece) for piece in PIECE.finditer(match[0])])
    return tokens


PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)|(?P<plain>[^\s'"\\]+)""", re.DOTALL
)
TOKEN = re.compile(
    rf"(?P<blank>\s+)|(?P<word>(?:{re.sub(r'[?]P<[a-z]+>', '?:', PIECE.pattern)})+)|(?P<bad>.)", re.DOTALL
)


def piece_of(match: re.Match[str]) -> tuple[str, bool]:
    if match["plain"] is not None:
        return match["plain"], False
    if match["double"] is not None:
        return re.sub(r"\\([\"\\$`])", r"\1", match["double"]), True
    return match["single"] or match["escaped"] or "", True


def as_word(pieces: list[tuple[str, bool]]) -> str | Glob | Problem:
    if any(REST in text and not quoted for text, quoted in pieces):
        return bad_rule("'**' stands for any further arguments and can only be the last word")
    if not any("*" in text and not quoted for text, quoted in pieces):
        return "".join(text for text, _ in pieces)
    texts = [""]
    for text, quoted in pieces:
        first, *others = [text] if quoted else text.split("*")
        texts = [*texts[:-1], texts[-1] + first, *others]
    return Glob(star_pattern(texts))


def quoted_token(value: str) -> str:
    """A word as a pattern for exactly itself."""
    if ORDINARY.fullmatch(value):
        return value
    return "'" + value.replace("'", "'\\''") + "'"


def is_subsequence(pattern: Sequence[str | Glob], values: Sequence[str | None]) -> bool:
    """Whether the pattern's words stand in the command in their order, with others between them."""
    left = iter(values)
    return all(any(fits(word, value) for value in left) for word in pattern)


def fits(word: str | Glob, value: str | None) -> bool:
    if value is None:
        return True
    return value == word if isinstance(word, str) else bool(word.pattern.fullmatch(value))


def letters_of(words: Iterable[str | Glob | None]) -> frozenset[str]:
    """The single-letter options, however they are put together; any other word counts as itself."""
    found: set[str] = set()
    for word in words:
        if isinstance(word, str):
            is_cluster = re.fullmatch(r"-[A-Za-z]+", word)
            found.update(word[1:] if is_cluster else [word])
    return frozenset(found)
