"""A JSON file with the line and column of every value."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.json_values import ABSENT, refuse_constant, value_at
from toolyard.core.problems import Position, Problem
from toolyard.core.regexes import late_pattern
from toolyard.files.door import LARGEST_CONFIGURATION, Door, FileRefused
from toolyard.files.working_folder import absolute_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tree_sitter import Node

    from toolyard.config.origins import Origins
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json
    from toolyard.files.door import Stamp


NOT_ACCEPTED = "config_not_accepted"
DEEPEST = 100
"""How far values may be nested: what walks over them does so by calling itself."""
CONSTANTS = late_pattern(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')


class Document(msgspec.Struct):
    """A parsed JSON file; positions are looked up only when there is a problem to show."""

    path: Path
    text: str
    value: Json
    origins: Origins | None = None
    """Where values were written that do not stand in the text where they stand in `value`."""
    repeats: bool = False
    """Whether an object has a key twice, of which only the last counts."""
    folder: str = ""
    """The folder that relative paths start at."""
    door: Door = msgspec.field(default_factory=Door.here)
    """By which it was read, and by which files are read that it names."""
    stamp: Stamp | None = None
    """That of the file when it was read."""
    _tree: Node | None = None
    _lines: list[str] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = os.path.dirname(absolute_path(self.path))

    def at(self, pointer: Pointer) -> Json:
        """The value at a pointer; None where there is none."""
        value = value_at(self.value, pointer)
        return None if value is ABSENT else value

    def repeated_keys(self) -> Iterator[tuple[str, Position, Position]]:
        """Each key that an object has again, with the position that is ignored and the one that counts."""
        for node in objects_in(self._root()) if self.repeats else ():
            last: dict[str, Node] = {}
            for pair in reversed(node.named_children):
                if (key := key_of(pair)) in last:
                    yield key, self._place(pair), self._place(last[key])
                last.setdefault(key, pair)

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
        return self._place(node, via)

    def _place(self, node: Node, via: tuple[str, ...] = ()) -> Position:
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
        return self.document.position(self.pointer)

    def below(self, *steps: str | int) -> Place:
        return Place(self.document, (*self.pointer, *steps))

    def problem(self, code: str, message: str, hint: str, *below: str | int) -> Problem:
        return Problem(code=code, message=message, hint=hint, where=self.below(*below).position())

    def path(self, name: str) -> str:
        """A path that is written there, absolute; links are not followed, so that messages show what was written."""
        return absolute_path(os.path.join(self.document.folder, os.path.expanduser(name)))


def read_document(path: Path, door: Door | None = None, *, accepted: bool = False) -> Document | Problem:
    """Read a JSON file, strictly; anything wrong with it is one problem that says where and what.

    With `accepted` it is one that tools must not have written, unless a person accepted that.
    """
    where, door = Position(file=path), door or Door.here()
    try:
        content = (door.read_accepted if accepted else door.read)(path, largest=LARGEST_CONFIGURATION)
        text = content.data.decode("utf-8-sig")
    except FileRefused as refused:
        return refused.problem(NOT_ACCEPTED if refused.errno == errno.EACCES else "file_refused")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text (byte {error.start})"
        return Problem(code="config_not_text", message=message, hint="save the file as UTF-8", where=where)
    except OSError as error:
        message, hint = f"cannot be read: {error.strerror}", "check the path and its permissions"
        return Problem(code="config_unreadable", message=message, hint=hint, where=where)
    document = parse_document(path, text, door)
    if isinstance(document, Document):
        document.stamp = content.stamp
    return document


def json_of(path: Path) -> Json:
    """What a JSON file holds; nothing when it cannot be read."""
    document = read_document(path)
    return document.value if isinstance(document, Document) else None


def parse_document(path: Path, text: str, door: Door | None = None) -> Document | Problem:
    repeats = False

    def to_object(pairs: list[tuple[str, Json]]) -> Json:
        nonlocal repeats
        made = dict(pairs)
        repeats = repeats or len(made) != len(pairs)
        return made

    try:
        value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=to_object)
    except json.JSONDecodeError as error:
        from toolyard.config.json_syntax import syntax_problem

        return syntax_problem(path, text, error)
    except RecursionError:
        return nested_problem(path, text)
    except ValueError as error:
        found = next((match for match in CONSTANTS.finditer(text) if match[1]), None)
        return problem_at(path, text, found.start() if found else 0, f"not strict JSON: {error}")
    if is_nested_too_deeply(text, value):
        return nested_problem(path, text)
    return Document(path, text, value, repeats=repeats, door=door or Door.here())


def is_nested_too_deeply(text: str, value: Json) -> bool:
    """Look level by level; a text with few brackets cannot be nested deeply."""
    if text.count("{") + text.count("[") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        inner = (part.values() if type(part) is dict else part for part in level if type(part) in (dict, list))
        level = [part for parts in inner for part in parts if type(part) in (dict, list)]
        if not level:
            return False
    return True


def nested_problem(path: Path, text: str) -> Problem:
    """Point at the first bracket that is nested too deeply."""
    from toolyard.config.json_syntax import BRACKETS

    depth = 0
    for found in BRACKETS.finditer(text):
        depth += bool(found[1]) - bool(found[2])
        if depth > DEEPEST:
            return problem_at(path, text, found.start(), f"nested more than {DEEPEST} levels deep")
    return problem_at(path, text, 0, f"nested more than {DEEPEST} levels deep")


def problem_at(path: Path, text: str, offset: int, message: str) -> Problem:
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    return Problem(code="config_syntax", message=message, where=Position(file=path, line=line, column=column))


def child_at(node: Node, step: str | int) -> Node | None:
    if isinstance(step, int):
        return node.named_child(step) if node.type == "array" and 0 <= step < node.named_child_count else None
    if node.type != "object":
        return None
    # The last of several equal keys is the one that counts.
    for pair in reversed(node.named_children):
        if key_of(pair) == step:
            return pair.child_by_field_name("value")
    return None


def key_of(pair: Node) -> str:
    key = pair.child_by_field_name("key")
    return str(json.loads(key.text)) if key is not None and key.text is not None else ""


def objects_in(node: Node) -> Iterator[Node]:
    """Every object of a tree, in the order of the text."""
    if node.type == "object":
        yield node
    for child in node.named_children:
        yield from objects_in(child)
