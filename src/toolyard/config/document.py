"""A JSON file with the line and column of every value."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from toolyard.config.problems import ConfigProblem, Position

if TYPE_CHECKING:
    from pathlib import Path

    from tree_sitter import Node

    from toolyard.config.origins import Origins
    from toolyard.core.tool import Json

__all__ = ["Document", "Place", "Pointer", "read_document"]

Pointer: TypeAlias = "tuple[str | int, ...]"
"""The way from the root to a value: keys and indices."""

DEEPEST = 100
"""How far values may be nested: what walks over them does so by calling itself."""
CONSTANTS = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')
BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])')


class Document(msgspec.Struct):
    """A parsed JSON file; positions are looked up only when there is a problem to show."""

    path: Path
    text: str
    value: Json
    origins: Origins | None = None
    """Where values were written that do not stand in the text where they stand in `value`."""
    folder: str = ""
    """The folder that relative paths start at."""
    _tree: Node | None = None
    _lines: list[str] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = os.path.dirname(os.path.abspath(self.path))

    def position(self, pointer: Pointer = (), *, of_key: bool = False) -> Position:
        """Where a value or its key is written, or the nearest thing around it that exists."""
        via: tuple[str, ...] = ()
        if self.origins:
            origin = self.origins.find(pointer)
            pointer, via = origin.pointer, origin.chain
        node = self._root()
        for step in pointer:
            child = child_at(node, step)
            if child is None:
                break
            node = child
        if of_key and node.parent and node.parent.type == "pair":
            node = node.parent
        row, column = node.start_point
        line_start = self._lines[row].encode("utf-8")[:column]
        return Position(file=self.path, line=row + 1, column=len(line_start.decode("utf-8", "replace")) + 1, via=via)

    def _root(self) -> Node:
        if self._tree is None:
            import tree_sitter
            import tree_sitter_json

            parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_json.language()))
            root = parser.parse(self.text.encode("utf-8")).root_node
            self._tree = root.named_children[0] if root.named_children else root
            self._lines = self.text.split("\n")
        return self._tree


class Place(msgspec.Struct, frozen=True):
    """A value of a document, whose position is looked up when there is a problem to show."""

    document: Document
    pointer: Pointer

    def position(self) -> Position:
        """Where it is written."""
        return self.document.position(self.pointer)


def read_document(path: Path) -> Document | ConfigProblem:
    """Read a JSON file, strictly; anything wrong with it is one problem that says where and what."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return ConfigProblem(
            code="config_not_text",
            message=f"not UTF-8 text (byte {error.start})",
            hint="save the file as UTF-8",
            where=Position(file=path),
        )
    except OSError as error:
        return ConfigProblem(
            code="config_unreadable",
            message=f"cannot be read: {error.strerror}",
            hint="check the path and its permissions",
            where=Position(file=path),
        )
    return parse_document(path, text)


def parse_document(path: Path, text: str) -> Document | ConfigProblem:
    """Parse the text of a JSON file."""
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        return syntax_problem(path, text, error)
    except RecursionError:
        return nested_problem(path, text)
    except ValueError as error:
        found = next((match for match in CONSTANTS.finditer(text) if match[1]), None)
        return problem_at(path, text, found.start() if found else 0, f"not strict JSON: {error}")
    if is_nested_too_deeply(text, value):
        return nested_problem(path, text)
    return Document(path, text, value)


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def is_nested_too_deeply(text: str, value: Json) -> bool:
    """Level by level; a text with few brackets needs no look."""
    if text.count("{") + text.count("[") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        inner = (part.values() if type(part) is dict else part for part in level if type(part) in (dict, list))
        level = [part for parts in inner for part in parts if type(part) in (dict, list)]
        if not level:
            return False
    return True


def nested_problem(path: Path, text: str) -> ConfigProblem:
    """The bracket that is one too many."""
    depth = 0
    for found in BRACKETS.finditer(text):
        depth += bool(found[1]) - bool(found[2])
        if depth > DEEPEST:
            return problem_at(path, text, found.start(), f"nested more than {DEEPEST} levels deep")
    return problem_at(path, text, 0, f"nested more than {DEEPEST} levels deep")


def problem_at(path: Path, text: str, offset: int, message: str) -> ConfigProblem:
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    return ConfigProblem(code="config_syntax", message=message, where=Position(file=path, line=line, column=column))


def syntax_problem(path: Path, text: str, error: json.JSONDecodeError) -> ConfigProblem:
    """A syntax error, with the usual causes named instead of the parser's surprise."""
    before, after = text[: error.pos].rstrip(), text[error.pos :]
    if error.msg.startswith("Illegal trailing comma"):  # since Python 3.13 the parser stops at the comma itself
        before, after = before + ",", after[1:].lstrip()
    after = after[:2]
    where = Position(file=path, line=error.lineno, column=error.colno)
    if before.endswith(",") and after[:1] in ("}", "]"):
        comma = Position(file=path, line=before.count("\n") + 1, column=len(before) - before.rfind("\n") - 1)
        return ConfigProblem(
            code="config_syntax", message=f"trailing comma before '{after[0]}'", hint="remove the comma", where=comma
        )
    if after[:2] in ("//", "/*") or after[:1] == "#":
        return ConfigProblem(
            code="config_syntax", message="comments are not part of JSON", hint="remove the comment", where=where
        )
    if after[:1] == "'":
        return ConfigProblem(
            code="config_syntax", message="strings take double quotes", hint="write \"…\" instead of '…'", where=where
        )
    found = f"found {after[0]!r}" if after else "the file ends here"
    return ConfigProblem(code="config_syntax", message=f"{error.msg.lower()}; {found}", hint="", where=where)


def child_at(node: Node, step: str | int) -> Node | None:
    """The value below a node for a key or an index."""
    if isinstance(step, int):
        return node.named_child(step) if node.type == "array" and 0 <= step < node.named_child_count else None
    if node.type != "object":
        return None
    # The last of several equal keys is the one that counts.
    for pair in reversed(node.named_children):
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if key is not None and value is not None and key.text is not None and json.loads(key.text) == step:
            return value
    return None
