"""Docstrings in any of the usual three manners: what a model should read of them."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


ARGUMENT_TITLES = frozenset({"args", "arguments", "attributes", "parameters", "params"})
TITLES = ARGUMENT_TITLES | {
    *("return", "returns", "raises", "yield", "yields", "example", "examples", "note", "notes", "see also"),
}
FIELD = re.compile(r":param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
OTHER_FIELD = re.compile(r":(?:returns?|rtype|raises?|type|yields?)\b[^:]*:")
ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
TYPED_ARGUMENT = re.compile(r"\s+(\w+)\s*\(([^)]*)\)\s*:")
NUMPY_ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")


class Docstring(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a docstring that a model should read."""

    description: str = ""
    arguments: dict[str, str] = msgspec.field(default_factory=dict)
    types: dict[str, str] = msgspec.field(default_factory=dict)
    """As written in brackets behind a name: `count (int, optional)`."""


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring written in any of the usual three manners: `Args:`, `:param name:` or underlined titles."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    arguments: dict[str, str] = {}
    for title, body in sections(lines):
        if title is None:
            plain, fields = split_fields(body)
            description += plain
            arguments |= fields
        elif title in ARGUMENT_TITLES:
            arguments |= dict(listed_arguments(body))
    types = {found[1]: found[2] for line in lines if (found := TYPED_ARGUMENT.match(line))}
    return Docstring(description="\n".join(description).strip(), arguments=arguments, types=types)


def sections(lines: Sequence[str]) -> Iterator[tuple[str | None, list[str]]]:
    """The text before the first title, then each titled part."""
    title: str | None = None
    body: list[str] = []
    position = 0
    while position < len(lines):
        found, length = title_at(lines, position)
        if found:
            yield title, body
            title, body = found, []
        else:
            body.append(lines[position])
        position += length
    yield title, body


def title_at(lines: Sequence[str], position: int) -> tuple[str | None, int]:
    """The title that begins at a line, if one does, and how many lines it takes."""
    line = lines[position]
    word = line.rstrip(": ").lower()
    if line != line.lstrip() or word not in TITLES:
        return None, 1
    if line.rstrip().endswith(":"):
        return word, 1
    below = lines[position + 1].strip() if position + 1 < len(lines) else ""
    return (word, 2) if len(below) >= 3 and set(below) == {"-"} else (None, 1)


def split_fields(body: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Take the `:param name: text` lines out of a text."""
    plain: list[str] = []
    fields: dict[str, str] = {}
    name: str | None = None
    inside = False
    for line in body:
        if match := FIELD.match(line.strip()):
            name, inside = match[1], True
            fields[name] = match[2].strip()
        elif OTHER_FIELD.match(line.strip()):
            name, inside = None, True
        elif inside and line.strip():
            if name:
                fields[name] = f"{fields[name]} {line.strip()}".strip()
        else:
            inside = False
            plain.append(line)
    return plain, fields


def listed_arguments(body: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The arguments below a title: `name: text` with deeper lines that go on, or `name : type` with the text below."""
    margin = min((indent(line) for line in body if line.strip()), default=0)
    name, words = "", [""]
    for line in (line for line in body if line.strip()):
        match = ARGUMENT.fullmatch(line.strip()) if margin else NUMPY_ARGUMENT.fullmatch(line.strip())
        if indent(line) == margin and match:
            if name:
                yield name, " ".join(words).strip()
            name, words = match[1], [match[2] if margin else ""]
        else:
            words.append(line.strip())
    if name:
        yield name, " ".join(words).strip()


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())
