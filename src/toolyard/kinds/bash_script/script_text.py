"""A tool file as text: on which line is what its schema says?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.config.document import Document, parse_document
from toolyard.core.problems import Position, Problem
from toolyard.files.door import LARGEST_SCRIPT, Door
from toolyard.kinds.bash_script.comments.script import CommentScript, parse_comments
from toolyard.kinds.bash_script.schema import FUNCTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolyard.core.json_values import Pointer
    from toolyard.kinds.bash_script.comments.tags import CommentParameter
    from toolyard.kinds.bash_script.schema import SchemaFault


PARAMETERS: Pointer = (*FUNCTION, "parameters")
SCHEMA_KEYS = frozenset({"id", "version", "args_mode", "tools"})
HERE_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?(\w+))")
QUOTED_OBJECT = re.compile(r"'(\s*\{[^']*\}\s*)'")


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a file, and the line on which it begins."""

    line: int
    text: str


class ScriptText:
    """Finds lines in a file: those of its schema's JSON where that is written out, else by words that occur there."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.text = text
        self.syntax_problem: Problem | None = None
        """Why what looks like the schema is not JSON."""
        self._schema: Document | None = None
        self._above = 0
        for piece in (*here_documents(text), *quoted_objects(text)):
            if self._schema is None and piece.text.lstrip().startswith("{"):
                self._take(piece)

    def schema_line(self, pointer: Pointer) -> int | None:
        """The line of a value in the schema, or of what is nearest around it; None when that is not written out."""
        return self._above + (self._schema.position(pointer).line or 1) if self._schema else None

    def line(self, pointer: Pointer, *clues: str) -> int:
        """The line of a value in the schema; else of the first clue that occurs."""
        return self.schema_line(pointer) or self.line_with(*clues)

    def line_with(self, *clues: str) -> int:
        """The line of the first clue that occurs; the first line when none does."""
        for clue in clues:
            if (position := self.text.find(clue)) >= 0:
                return self._line_at(position)
        return 1

    def line_matching(self, pattern: re.Pattern[str]) -> int | None:
        found = pattern.search(self.text)
        return self._line_at(found.start()) if found else None

    def property_line(self, name: str) -> int:
        """Where an argument is declared, in the schema or in a comment."""
        for parameter in self._comment_parameters():
            if parameter.name == name:
                return parameter.line
        return self.line((*PARAMETERS, "properties", name), f'"{name}"', name)

    def place_line(self, name: str) -> int | None:
        """Where `positional` names an argument; None when that is not written out."""
        places = self._schema.value.get("positional") if self._schema else None
        for index, place in enumerate(places if isinstance(places, list) else ()):
            if isinstance(place, dict) and place.get("name") == name:
                return self.schema_line(("positional", index))
        return self.schema_line(("positional",))

    def _take(self, piece: Piece) -> None:
        """Keep a piece that is the schema; remember the first that would be, were it JSON."""
        above = piece.line - 1
        match parse_document(self.file, piece.text):
            case Document(value=dict() as value) as document if SCHEMA_KEYS & value.keys():
                self._schema, self._above = document, above
            case Problem(where=Position(line=int(line))) as problem if self.syntax_problem is None:
                self.syntax_problem = replace(problem, where=Position(file=self.file, line=above + line))

    def _comment_parameters(self) -> Iterator[CommentParameter]:
        parsed = parse_comments(self.text)
        for tool in parsed.tools if isinstance(parsed, CommentScript) else ():
            yield from tool.parameters

    def _line_at(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1


def read_script(file: Path) -> ScriptText:
    """The text of a file; empty when it cannot be read, which is said elsewhere."""
    try:
        return ScriptText(file, Door.here().read(file, largest=LARGEST_SCRIPT).data.decode("utf-8", "replace"))
    except OSError:
        return ScriptText(file, "")


def here_documents(text: str) -> Iterator[Piece]:
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        found = HERE_DOCUMENT.search(lines[number])
        number += 1
        if found is None or lines[number - 1].lstrip().startswith("#"):
            continue
        body = list(lines_before(lines[number:], next(filter(None, found.groups()))))
        if number + len(body) < len(lines):  # else `<<` shifts bits
            yield Piece(line=number + 1, text="\n".join(body))
            number += len(body) + 1


def lines_before(lines: Sequence[str], word: str) -> Iterator[str]:
    """The lines up to the one that is only a word."""
    for line in lines:
        if line.lstrip("\t") == word:
            return
        yield line


def quoted_objects(text: str) -> Iterator[Piece]:
    """Every JSON object in single quotes."""
    for found in QUOTED_OBJECT.finditer(text):
        yield Piece(line=text.count("\n", 0, found.start(1)) + 1, text=found[1])


SUBCOMMAND = re.compile(r"^[ \t]*\(?[\"']?schema[\"']?[ \t]*[)|]", re.MULTILINE)


def problem_of(fault: SchemaFault, script: ScriptText) -> Problem:
    """A fault as a problem, at the line where the schema is written if it is written out, else where it is printed."""
    message, hint, line = fault.message, fault.hint, fault.line
    if fault.code == "bash_schema_not_json" and (found := script.syntax_problem) and found.where:
        message, hint, line = f"`schema` prints no JSON: {found.message}", found.hint or hint, found.where.line
    elif line is None and fault.pointer is not None:
        line = script.schema_line(fault.pointer)
    elif fault.printed and fault.printed in script.text:
        line = script.line_with(fault.printed)
    line = line or script.line_matching(SUBCOMMAND) or 1
    return Problem(
        code=fault.code,
        message=message,
        hint=hint.replace("FILE", str(script.file)),
        where=Position(file=script.file, line=line),
    )
