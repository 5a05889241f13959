"""What words become when bash expands them, as far as the values of their variables are known; no file is looked at."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.braces import expand_braces
from toolyard.bash.syntax.words import Misread, Word, WordPiece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


PATTERN = re.compile(r"[*?\[]")
NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
BLANKS = re.compile(r"[ \t\n]+")
TILDE = re.compile(r"~([\w.+-]*)(?=/|\Z)", re.ASCII)
LATER_TILDE = re.compile(r"[:=]~")
"""Where bash takes a tilde for a home folder as well, if the word is an assignment."""
SPLITS = re.compile(r"[ \t\n*?\[]")
MOST_TEXTS = 64
ANY_NAME = "\0"
"""Stands for names that are not known, in the shape of a path."""
HOME_OF = {"": "HOME", "+": "PWD", "-": "OLDPWD"}


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a text that bash puts in the place of a variable or a command."""

    text: str | None = None
    """The text itself, when it is certain."""
    inside: bool = False
    """Whether it is the name of a file inside the workspace, or several of them with blanks between."""
    relative: bool = False
    """Whether those names are relative and do not lead up."""
    is_number: bool = False
    dashes: bool = True
    """Whether it may begin with a dash."""
    splits: bool = True
    """Whether it may hold blanks or characters of patterns."""
    prefix: str = ""
    """What it surely begins with."""
    numbered: bool = False
    """Whether each line of it begins with a number and a colon."""
    texts: tuple[str, ...] = ()
    """Of a text that is not certain, all that it may be, if those are known."""

    @property
    def possible(self) -> tuple[str, ...]:
        return self.texts if self.text is None else (self.text,)


UNKNOWN = Value()
SOME_NUMBER = Value(inside=True, relative=True, is_number=True, splits=False)
A_COUNT = replace(SOME_NUMBER, dashes=False)
ValueOf: TypeAlias = "Callable[[WordPiece], Value]"
Fragment: TypeAlias = "tuple[str, bool]"
"""A piece of text, and whether characters of patterns in it count."""


def union(values: Iterable[Value]) -> Value:
    """What holds for each of several values."""
    found = list(dict.fromkeys(values))
    if len(found) == 1:
        return found[0]
    if not found:
        return UNKNOWN
    prefixes = [value.prefix if value.text is None else value.text for value in found]
    shared = 0
    while all(len(prefix) > shared and prefix[shared] == prefixes[0][shared] for prefix in prefixes):
        shared += 1
    return Value(
        inside=all(value.inside for value in found),
        relative=all(value.relative for value in found),
        is_number=all(value.is_number for value in found),
        dashes=any(value.dashes for value in found),
        splits=any(value.splits for value in found),
        prefix=prefixes[0][:shared],
        texts=several([value.possible for value in found]),
    )


def several(possible: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """All of what several values may be; nothing when one is not known, or when they are too many."""
    count = sum(map(len, possible))
    return tuple(text for texts in possible for text in texts) if all(possible) and count <= MOST_TEXTS else ()


def joined(possible: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """All that values may be that are put together."""
    if not all(possible) or math.prod(map(len, possible)) > MOST_TEXTS:
        return ()
    return tuple("".join(texts) for texts in itertools.product(*possible))


def expand_word(word: Word, value_of: ValueOf) -> list[Word]:
    """The words that one becomes; what is still a pattern afterwards is left to whoever looks at the disk."""
    if word.value is not None or not word.pieces:
        return [word]
    try:
        alternatives = expand_braces(word.pieces)
    except Misread:
        return [word]
    found = [found for pieces in alternatives for found in expand_pieces(word, with_tilde(pieces), value_of)]
    return found if len(alternatives) == 1 else [replace(each, expanded=True) for each in found]


def with_tilde(pieces: tuple[WordPiece, ...]) -> tuple[WordPiece, ...]:
    """The pieces with the tilde at their beginning as what it stands for; elsewhere than there it is not certain."""
    if any(piece.kind == "live" and LATER_TILDE.search(piece.text) for piece in pieces):
        return (WordPiece(kind="unknown"), *pieces[1:])
    if not pieces or pieces[0].kind != "live":
        return pieces
    first = pieces[0]
    found = TILDE.match(first.text)
    if found is None or (found.end() == len(first.text) and len(pieces) > 1):
        return (WordPiece(kind="unknown"), *pieces[1:]) if first.text.startswith("~") else pieces
    name = HOME_OF.get(found[1])
    home = WordPiece(kind="variable", text=name) if name else WordPiece(kind="unknown")
    rest = first.text[found.end() :]
    return (home, *([replace(first, text=rest)] if rest else []), *pieces[1:])


def expand_pieces(word: Word, pieces: Sequence[WordPiece], value_of: ValueOf) -> Iterator[Word]:
    values = [known_value(piece, value_of) for piece in pieces]
    if any(value.text is None for value in values):
        yield partly_known(word, pieces, values)
        return
    for fragments in split_fields(pieces, values):
        text = "".join(part for part, _ in fragments)
        is_pattern = any(live and PATTERN.search(part) for part, live in fragments)
        if not is_pattern:
            yield Word(text=text, start=word.start, end=word.end, value=text, prefix=text)
            continue
        shape = "".join(part if live else "x" * len(part) for part, live in fragments)
        yield Word(
            text=text,
            start=word.start,
            end=word.end,
            kind="glob",
            prefix=text[: len(PATTERN.split(shape)[0])],
            splits=True,
            pieces=tuple(
                WordPiece(kind="live" if live else "text", text=part, quoted=not live) for part, live in fragments
            ),
        )


def known_value(piece: WordPiece, value_of: ValueOf) -> Value:
    if piece.kind in ("text", "live"):
        return Value(text=piece.text)
    return SOME_NUMBER if piece.kind == "number" else value_of(piece)


def split_fields(pieces: Sequence[WordPiece], values: Sequence[Value]) -> Iterator[list[Fragment]]:
    """The words that blanks in unquoted values make of one; of nothing but empty values, none."""
    field: list[Fragment] = []
    begun = False
    for piece, value in zip(pieces, values, strict=True):
        text = value.text or ""
        if piece.kind in ("text", "live") or piece.quoted:
            field.append((text, piece.kind == "live"))
            begun = begun or piece.kind == "text" or bool(text) or piece.quoted
            continue
        first, *more = BLANKS.split(text)
        for at, part in enumerate([first, *more]):
            if at and (begun or any(seen for seen, _ in field)):
                yield field
                field, begun = [], False
            elif at:
                field = []
            field.append((part, True))
            begun = begun or bool(part)
    if begun:
        yield field


def partly_known(word: Word, pieces: Sequence[WordPiece], values: Sequence[Value]) -> Word:
    """A word of which not all is known: what it begins with, and whether it can lead out of the workspace."""
    found, is_output = combined(pieces, values), is_process_output(pieces)
    splits = any(
        value.text is None and not piece.quoted and value.splits for piece, value in zip(pieces, values, strict=True)
    )
    return Word(
        text=word.text,
        start=word.start,
        end=word.end,
        kind="dynamic",
        prefix=found.prefix or ("" if found.dashes and not is_output else "./"),
        splits=splits,
        substitutes=word.substitutes,
        inside=is_output or (found.inside and (found.is_number or not splits)),
        is_number=found.is_number,
        texts=() if splits else found.texts,
        sample=None if splits else sample_of(values),
        signed_sample=None if splits else sample_of(values, signed=True),
    )


def is_process_output(pieces: Sequence[WordPiece]) -> bool:
    """Whether a word is `<(…)` and nothing else: a file that only holds what a command prints."""
    return len(pieces) == 1 and pieces[0].kind == "unknown" and pieces[0].text.startswith("<(")


def combined(pieces: Sequence[WordPiece], values: Sequence[Value]) -> Value:
    """What is known of several pieces put together, of which at least one is not certain."""
    prefix = ""
    for value in values:
        prefix += value.prefix if value.text is None else value.text
        if value.text is None:
            break
    first = next(value for value in values if value.text != "")
    inside = stays_inside(pieces, values)
    return Value(
        inside=inside,
        relative=inside and (first.text is not None or first.relative),
        is_number=all(value.text == "" or value.is_number for value in values),
        dashes=prefix.startswith("-") if prefix else first.dashes,
        splits=any(value.splits if value.text is None else bool(SPLITS.search(value.text)) for value in values),
        prefix=prefix,
        texts=joined([value.possible for value in values]),
    )


def sample_of(values: Sequence[Value], *, signed: bool = False) -> str | None:
    """The text with a number in the place of each that is not known; none when there is more than numbers."""
    if any(value.text is None and not value.is_number for value in values):
        return None
    first = next(value for value in values if value.text != "")
    return (
        None
        if first.text is None and first.dashes and not signed
        else "".join(value.text if value.text is not None else "1" for value in values)
    )


def stays_inside(pieces: Sequence[WordPiece], values: Sequence[Value]) -> bool:
    """Whether names inside the workspace, put together with text, still are such names."""
    shape = ""
    for at, (piece, value) in enumerate(zip(pieces, values, strict=True)):
        if value.text is not None:
            if piece.kind == "live" and PATTERN.search(value.text):
                return False
            shape += value.text
            continue
        follower = values[at + 1].text if at + 1 < len(values) else "/"
        if not value.inside or (not value.relative and (shape or (follower or "")[:1] != "/")):
            return False
        shape += "0" if value.is_number else ANY_NAME
    return not shape.startswith("/") and not any(map(may_lead_up, shape.split("/")))


def may_lead_up(component: str) -> bool:
    """Whether a part of a path may be `..`; a name that is not known may be empty, or a dot."""
    rest = component.replace(ANY_NAME, "")
    return rest == ".." or (rest == "." and rest != component)
