"""A tool file as text: on which line is what its schema says?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolyard.config.document import Document, parse_document
from toolyard.config.problems import ConfigProblem
from toolyard.kinds.bash_comments import CommentTool, parse_comments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.config.document import Pointer

__all__ = ["FUNCTION", "PARAMETERS", "ScriptText", "read_script"]

FUNCTION: Pointer = ("tools", 0, "function")
PARAMETERS: Pointer = (*FUNCTION, "parameters")
HERE_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?(\w+))")


@dataclass(frozen=True, slots=True, kw_only=True)
class HereDocument:
    """The text of a here-document, and the line on which it begins."""

    line: int
    text: str


class ScriptText:
    """Finds lines in a file: those of its schema's JSON where that is written out, else by words that occur there."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.text = text
        self.syntax_problem: ConfigProblem | None = None
        """What is wrong with the JSON that is written out, with its line in the file."""
        self._schema: Document | None = None
        self._above = 0
        for found in here_documents(text):
            if self._schema is None and found.text.lstrip().startswith("{"):
                self._take(found)

    def line(self, pointer: Pointer, *clues: str) -> int:
        """The line of a value in the schema, or of what is nearest around it; else of the first clue that occurs."""
        if self._schema is not None:
            return self._above + (self._schema.position(pointer).line or 1)
        return self.line_with(*clues)

    def line_with(self, *clues: str) -> int:
        """The line of the first clue that occurs; the first line when none does."""
        for clue in clues:
            if (position := self.text.find(clue)) >= 0:
                return self._line_at(position)
        return 1

    def line_matching(self, pattern: re.Pattern[str]) -> int | None:
        """The first line with a match."""
        found = pattern.search(self.text)
        return self._line_at(found.start()) if found else None

    def property_line(self, name: str) -> int:
        """Where an argument is declared, in the schema or in a comment."""
        for parameter in self._comments().parameters:
            if parameter.name == name:
                return parameter.line
        return self.line((*PARAMETERS, "properties", name), f'"{name}"', name)

    def place_line(self, name: str) -> int:
        """Where an entry of `positional` names an argument."""
        places = self._schema.value.get("positional") if self._schema else None
        for index, place in enumerate(places if isinstance(places, list) else ()):
            if isinstance(place, dict) and place.get("name") == name:
                return self.line(("positional", index))
        return self.line(("positional",), '"positional":')

    def _take(self, found: HereDocument) -> None:
        """Keep the here-document that is the schema; remember the first that would be, were it JSON."""
        match parse_document(self.file, found.text):
            case Document(value=dict()) as document:
                self._schema, self._above = document, found.line - 1
            case ConfigProblem(where=where) as problem if self.syntax_problem is None and where and where.line:
                line = found.line - 1 + where.line
                position = type(where)(file=self.file, line=line, column=where.column)
                self.syntax_problem = type(problem)(
                    code=problem.code, message=problem.message, hint=problem.hint, where=position
                )

    def _comments(self) -> CommentTool:
        parsed = parse_comments(self.text)
        return parsed if isinstance(parsed, CommentTool) else CommentTool()

    def _line_at(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1


def read_script(file: Path) -> ScriptText:
    """The text of a file; empty when it cannot be read, which is said elsewhere."""
    try:
        return ScriptText(file, file.read_bytes().decode("utf-8", "replace"))
    except OSError:
        return ScriptText(file, "")


def here_documents(text: str) -> Iterator[HereDocument]:
    """Every here-document of a script."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        found = HERE_DOCUMENT.search(lines[number])
        number += 1
        if found is None or lines[number - 1].lstrip().startswith("#"):
            continue
        word = next(filter(None, found.groups()))
        body = list(lines_before(lines[number:], word))
        if number + len(body) < len(lines):
            yield HereDocument(line=number + 1, text="\n".join(body))
            number += len(body) + 1


def lines_before(lines: list[str], word: str) -> Iterator[str]:
    """The lines up to the one that is only a word."""
    for line in lines:
        if line.lstrip("\t") == word:
            return
        yield line
