"""Asks shfmt, a parser written by others, whether it sees the same commands in a line as our reading.

Both are reduced to an outline, and the outlines are compared: where each word of each command, condition, loop and
redirection begins and ends, and the value of every word that our reading calls certain. A construct that has no form in
an outline counts as a difference.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.reading import Arithmetic, Assignment, Condition, Loop, Redirection, SimpleCommand
from toolyard.process.shfmt import parse_with_shfmt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.bash.syntax.reading import Reading
    from toolyard.bash.syntax.words import Word


Span: TypeAlias = tuple[int, int]
Item: TypeAlias = tuple[Any, ...]
"""One command, redirection, … of an outline: what it is, and where its words begin and end."""
NO_BODY: Span = (0, 0)
CONTAINERS = frozenset({"BinaryCmd", "Block", "Subshell", "IfClause", "WhileClause", "TimeClause", "File"})
CONDITION_OPERATORS = re.compile(r"\[\[|\]\]|&&|\|\||[!()<>]|==?|!=|=~|-[a-zA-Z]{1,2}")
SPECIAL_IN_QUOTES = re.compile(r"\\([$`\"\\])")
REMEMBERED: dict[str, bool] = {}
MOST_REMEMBERED = 4096


async def shfmt_agrees(text: str) -> bool:
    """Whether shfmt sees the same commands in a line as `read_line`; the answer is remembered."""
    known = REMEMBERED.get(text)
    if known is None:
        tree = await asyncio.to_thread(parse_with_shfmt, text.encode("utf-8", "replace"))
        if tree is None:
            return False
        try:
            decoded = msgspec.json.decode(tree)
        except RecursionError:
            return False
        known = REMEMBERED[text] = same_reading(read_line(text), decoded)
        while len(REMEMBERED) > MOST_REMEMBERED:
            del REMEMBERED[next(iter(REMEMBERED))]
    return known


class Different(Exception):
    """shfmt saw something that has no form in an outline."""


def same_reading(reading: Reading, tree: dict[str, Any]) -> bool:
    """Whether the tree that shfmt printed has the same outline as our reading."""
    ours, values = outline_of(reading)
    theirs = ShfmtOutline(reading.text.encode("utf-8"), values)
    try:
        theirs.statement(tree)
    except (Different, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return sorted(map(repr, ours)) == sorted(map(repr, theirs.items)) and not theirs.unconfirmed


def outline_of(reading: Reading) -> tuple[list[Item], dict[Span, str]]:
    """The outline of our reading, and the values of the words that it calls certain."""
    items: list[Item] = []
    values: dict[Span, str] = {}

    def words(of: Iterable[Word]) -> tuple[Span, ...]:
        of = tuple(of)
        values.update({(word.start, word.end): word.value for word in of if word.value is not None})
        return tuple((word.start, word.end) for word in of)

    def redirection(part: Redirection) -> Item:
        operator = part.operator
        target: Item = words([part.target]) if part.target and part.body is None else ()
        if operator.endswith("&-"):  # which shfmt reads as `>&` and the word `-`
            operator, target = operator[:-1], ("-",)
        return ("redirection", operator, part.descriptor, target, part.body_span if part.body else NO_BODY)

    def assignment(part: Assignment) -> Item:
        if part.elements is not None:
            return ("array", part.start, part.adds, words(part.elements))
        return ("assignment", part.start, part.adds, words([part.value]) if part.value and part.value.text else ())

    items.extend(("function", each.name, each.start) for each in reading.functions)
    for part in reading.parts:
        match part:
            case SimpleCommand():
                items.append(("command", words(part.written)))
                items.extend(map(redirection, part.redirections))
                items.extend(map(assignment, part.assignments))
            case Redirection():
                items.append(redirection(part))
            case Assignment():
                items.append(assignment(part))
            case Condition():
                operands = [word for word in part.words if not CONDITION_OPERATORS.fullmatch(word.text)]
                items.append(("condition", words(operands)))
            case Arithmetic():
                if part.is_command:
                    items.append(("arithmetic", part.start))
            case Loop(name=None):
                items.extend(("pattern", span) for span in words(part.words))
            case Loop():
                items.append(("loop", part.name, words(part.words)))
    return items, values


class ShfmtOutline:
    """Collects the outline of shfmt's tree, and removes each certain word that the tree confirms."""

    def __init__(self, source: bytes, unconfirmed: dict[Span, str]) -> None:
        self.items: list[Item] = []
        self.unconfirmed = unconfirmed
        self._source = source

    def statement(self, node: dict[str, Any]) -> None:
        """A statement, or anything that holds some."""
        if node.get("Coprocess") or node.get("Disown"):
            raise Different
        for redirect in node.get("Redirs", ()):
            self._redirect(redirect)
        command = node.get("Cmd", node if "Type" in node else None)
        if command is not None:
            self._command(command)

    def _command(self, node: dict[str, Any]) -> None:
        kind = node["Type"]
        if kind == "CallExpr":
            self._call(node)
        elif kind == "TestClause":
            self.items.append(("condition", self._words(operands_of(node["X"]))))
        elif kind == "ArithmCmd":
            self.items.append(("arithmetic", node["Left"]["Offset"]))
            self._counted(node.get("X"))
        elif kind == "DeclClause":
            self._declaration(node)
        elif kind == "FuncDecl" and not node.get("RsrvWord"):
            self.items.append(("function", node["Name"]["Value"], node["Pos"]["Offset"]))
            self.statement(node["Body"])
        elif kind == "ForClause":
            loop = node["Loop"]
            if loop["Type"] == "CStyleLoop":
                self.items.append(("arithmetic", loop["Lparen"]["Offset"]))
                self._statements(node["Do"])
                return
            if loop["Type"] != "WordIter" or node.get("Select"):
                raise Different
            self.items.append(("loop", loop["Name"]["Value"], self._words(loop.get("Items", ()))))
            self._statements(node["Do"])
        elif kind == "CaseClause":
            self._patterns([node["Word"]])
            for item in node.get("Items", ()):
                self._patterns(item["Patterns"])
                self._statements(item.get("Stmts", ()))
        elif kind in CONTAINERS:
            for key in ("X", "Y", "Stmt", "Else"):
                if isinstance(node.get(key), dict):
                    self.statement(node[key] if key != "Else" else {"Type": "IfClause", **node[key]})
            for key in ("Stmts", "Cond", "Then", "Do"):
                self._statements(node.get(key, ()))
        else:
            raise Different

    def _statements(self, nodes: Sequence[dict[str, Any]]) -> None:
        for node in nodes:
            self.statement(node)

    def _call(self, node: dict[str, Any]) -> None:
        for assign in node.get("Assigns", ()):
            self._assign(assign)
        if node.get("Args"):
            self.items.append(("command", self._words(node["Args"])))

    def _assign(self, node: dict[str, Any]) -> None:
        """`NAME=value`, `NAME+=value`, `NAME=(…)`."""
        if node.get("Index"):
            raise Different
        start, adds, array = node["Pos"]["Offset"], bool(node.get("Append")), node.get("Array")
        if array:
            elements = array.get("Elems", ())
            if any(element.get("Index") for element in elements):
                raise Different
            self.items.append(("array", start, adds, self._words(element["Value"] for element in elements)))
            return
        value = node.get("Value")
        self.items.append(("assignment", start, adds, self._words([value]) if value else ()))

    def _declaration(self, node: dict[str, Any]) -> None:
        """`export NAME=value …`, each argument as one word."""
        spans = [self._confirmed(span_of(node["Variant"]), node["Variant"]["Value"])]
        for argument in node.get("Args", ()):
            if argument.get("Array") or argument.get("Index") or argument.get("Append"):
                raise Different
            value = self._value_of(argument["Value"]) if argument.get("Value") else ""
            name = argument.get("Name", {}).get("Value", "")
            if name and not argument.get("Naked"):
                value = None if value is None else f"{name}={value}"
            spans.append(self._confirmed(span_of(argument), name if argument.get("Naked") and name else value))
        self.items.append(("command", tuple(spans)))

    def _confirmed(self, span: Span, value: str | None) -> Span:
        if span in self.unconfirmed and value == self.unconfirmed[span]:
            del self.unconfirmed[span]
        return span

    def _redirect(self, node: dict[str, Any]) -> None:
        body = node.get("Hdoc")
        operator, descriptor = node["Op"], node.get("N", {}).get("Value", "")
        span = self._here_document(body) if body else NO_BODY
        if operator in ("<<", "<<-"):
            self.items.append(("redirection", operator, descriptor, (), span))
            return
        word = node["Word"]
        start, end = span_of(word)
        if operator.endswith("&") and self._source[start:end] == b"-":
            self.items.append(("redirection", operator, descriptor, ("-",), span))
        else:
            self.items.append(("redirection", operator, descriptor, self._words([word]), span))

    def _here_document(self, body: dict[str, Any]) -> Span:
        """Where the text begins, and where the line of its delimiter does."""
        start, end = span_of(body)
        for part in body.get("Parts", ()):
            if part["Type"] not in ("Lit", "ParamExp"):
                raise Different
        return start, self._source.rfind(b"\n", 0, end) + 1

    def _patterns(self, nodes: Sequence[dict[str, Any]]) -> None:
        self.items.extend(("pattern", span) for span in self._words(nodes))

    def _words(self, nodes: Iterable[dict[str, Any]]) -> tuple[Span, ...]:
        return tuple(self._word(node) for node in nodes)

    def _word(self, node: dict[str, Any]) -> Span:
        span = span_of(node)
        value = self._value_of(node)
        if span in self.unconfirmed and (value is None or value == self.unconfirmed[span]):
            if value is None and not all(part["Type"] in ("Lit", "SglQuoted", "DblQuoted") for part in node["Parts"]):
                raise Different
            del self.unconfirmed[span]
        return span

    def _value_of(self, node: dict[str, Any]) -> str | None:
        """What the word stands for; None when an expansion is in it. Commands inside are collected too."""
        pieces = [self._piece(part) for part in node.get("Parts", ())]
        return None if None in pieces else "".join(piece for piece in pieces if piece is not None)

    def _piece(self, part: dict[str, Any]) -> str | None:
        match part["Type"]:
            case "Lit":
                return re.sub(r"\\(.)", r"\1", part.get("Value", ""), flags=re.DOTALL)
            case "SglQuoted":
                return None if part.get("Dollar") else part.get("Value", "")
            case "DblQuoted" if not part.get("Dollar"):
                return self._quoted(part.get("Parts", ()))
            case "CmdSubst" | "ProcSubst":
                if part.get("TempFile") or part.get("ReplyVar"):
                    raise Different
                self._statements(part.get("Stmts", ()))
                return None
            case "ArithmExp":
                self._counted(part.get("X"))
                return None
            case "ParamExp":
                return None
        raise Different

    def _counted(self, node: object) -> None:
        """The commands inside arithmetic."""
        if isinstance(node, dict):
            if node.get("Type") == "CmdSubst":
                self._piece(node)
                return
            for value in node.values():
                self._counted(value)
        elif isinstance(node, list):
            for value in node:
                self._counted(value)

    def _quoted(self, parts: Iterable[dict[str, Any]]) -> str | None:
        pieces: list[str | None] = []
        for part in parts:
            if part["Type"] == "Lit":
                pieces.append(SPECIAL_IN_QUOTES.sub(r"\1", part.get("Value", "")))
            else:
                pieces.append(self._piece(part))
        return None if None in pieces else "".join(piece for piece in pieces if piece is not None)


def operands_of(node: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The words of a condition, without its operators."""
    if node["Type"] == "Word":
        yield node
        return
    if node["Type"] not in ("UnaryTest", "BinaryTest", "ParenTest"):
        raise Different
    for key in ("X", "Y"):
        if key in node:
            yield from operands_of(node[key])


def span_of(node: dict[str, Any]) -> Span:
    return node["Pos"]["Offset"], node["End"]["Offset"]
