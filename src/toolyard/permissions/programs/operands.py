"""Which words of a command are paths, in every spelling of an option, and what becomes of those: the one extractor."""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING, Protocol

import msgspec

from toolyard.permissions.programs.build import BUILD_TABLES
from toolyard.permissions.programs.carriers import CARRIER_TABLES
from toolyard.permissions.programs.categories import SPEAKS_ONLY, each_name
from toolyard.permissions.programs.files.find import FindTable
from toolyard.permissions.programs.git import GIT
from toolyard.permissions.programs.guards import GUARDS
from toolyard.permissions.programs.linters_and_tests import PYTEST
from toolyard.permissions.programs.network import NETWORK_TABLES
from toolyard.permissions.programs.options import Given, Operand, Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word


class OptionTable(Protocol):
    """Reads the words behind the name of a program."""

    def scan(self, words: Sequence[Word]) -> Given: ...


class Operands(msgspec.Struct, frozen=True):
    """The paths among the words of a command."""

    paths: tuple[Operand, ...] = ()
    unknown: Word | None = None
    """A word that is not known for the program, so that nothing is certain."""
    follows: bool = False
    """Whether links inside of folders are followed, wherever they lead."""


QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|\$\(.*\)|\$\{[^}]*\}|\\.", re.DOTALL)
PATTERN = re.compile(r"[*?\[]")
TABLES: dict[str, OptionTable] = {
    **{name: guard for name, guard in GUARDS.items() if isinstance(guard, Options | FindTable)},
    **each_name({**BUILD_TABLES, **CARRIER_TABLES, **NETWORK_TABLES, "pytest py.test": PYTEST, "git": GIT}),
}


def operands_of(words: Sequence[Word]) -> Operands | None:
    """What a command reads, writes and runs; None when nothing is known about the program."""
    name = words[0].value or ""
    if name in SPEAKS_ONLY:
        return Operands(tuple(listed_by_bash(words[1:])))
    table = TABLES.get(name)
    if table is None:
        return None
    given = table.scan(words[1:])
    listed = listed_by_bash(words[1:]) if any(word.kind != "literal" for word in words) else ()
    return Operands((*given.paths, *listed), given.unknown, given.follows)


def listed_by_bash(words: Sequence[Word]) -> Iterator[Operand]:
    """The patterns among words: bash itself looks into the folders that they name, whatever the program is."""
    for word in words:
        is_joined = word.kind == "dynamic" and word.value is None and PATTERN.search(QUOTED.sub("", word.text))
        if word.kind == "glob" or is_joined:
            yield Operand(word, word.text if word.value is None else os.path.dirname(word.value) or ".", "read")


def any_operands(words: Sequence[Word]) -> Operands:
    """The same for a program of which nothing is known: each word, and each value in one, may be a file it writes."""
    found: list[Operand] = []
    for word in words[1:]:
        text = word.value if word.value is not None else word.text
        if text.startswith("-"):
            text = text.partition("=")[2] if text.startswith("--") else text[2:]
        found += [Operand(word, text, "write")] if text else []
    return Operands((*found, Operand(words[0], ".", "read")))
