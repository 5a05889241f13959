"""Whether shfmt, a parser written by others, reads the same commands in a line as we do.

Compared is the skeleton: where each word of each command, condition, loop and redirection begins and ends, and what
every word stands for of which we say that it is certain. A construct without a form there is a disagreement.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.reading import Assignment, Condition, Loop, Redirection, SimpleCommand
from toolyard.process.shfmt import parse_with_shfmt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.bash.syntax.reading import Reading
    from toolyard.bash.syntax.words import Word


Span: TypeAlias = tuple[int, int]
Bone: TypeAlias = tuple[Any, ...]
NO_BODY: Span = (0, 0)
HOLDERS = frozenset({"BinaryCmd", "Block", "Subshell", "IfClause", "WhileClause", "TimeClause", "File"})
CONDITION_OPERATORS = re.compile(r"\[\[|\]\]|&&|\|\||[!()<>]|==?|!=|=~|-[a-zA-Z]{1,2}")
SPECIAL_IN_QUOTES = re.compile(r"\\([$`\"\\])")


async def agrees(text: str) -> bool:
    """Whether both readers see the same commands in a line; what shfmt said of it once is remembered."""
    known = SAID.get(text)
    if known is None:
        tree = await asyncio.to_thread(parse_with_shfmt, text.encode("utf-8", "replace"))
        if tree is None:
            return False
        known = SAID[text] = same_reading(read_line(text), msgspec.json.decode(tree))
        while len(SAID) > MOST_REMEMBERED:
            del SAID[next(iter(SAID))]
    return known


SAID: dict[str, bool] = {}
MOST_REMEMBERED = 4096


class Different(Exception):
    """The other reader saw something that we have no form for."""


def same_reading(reading: Reading, tree: dict[str, Any]) -> bool:
    """Whether the tree that shfmt printed is the same as our reading."""
    source = reading.text.encode("utf-8")
    ours, values = our_bones(reading)
    theirs = Bones(source, values)
    try:
        theirs.statement(tree)
    except (Different, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return sorted(map(repr, ours)) == sorted(map(repr, theirs.found)) and not theirs.values


def our_bones(reading: Reading) -> tuple[list[Bone], dict[Span, str]]:
    """The skeleton of our reading, and the words that we say are certain."""
    bones: list[Bone] = []
    values: dict[Span, str] = {}

    def words(of: Iterable[Word]) -> tuple[Span, ...]:
        of = tuple(of)
        values.update({(word.start, word.end): word.value for word in of if word.value is not None})
        return tuple((word.start, word.end) for word in of)

    def redirection(part: Redirection) -> Bone:
        span = words([part.target]) if part.target and part.body is None else ()
        operator, target = part.operator, span
        if operator.endswith("&-"):
            operator, target = operator[:-1], ("-",)  # type: ignore[assignment]
        span_of_body = part.body_span if part.body else NO_BODY
        return ("redirection", operator, part.descriptor, target, span_of_body)

    def assignment(part: Assignment) -> Bone:
        return ("assignment", part.start, words([part.value]) if part.value and part.value.text else ())

    for part in reading.parts:
        match part:
            case SimpleCommand():
                bones.append(("command", words(part.written)))
                bones.extend(map(redirection, part.redirections))
                bones.extend(map(assignment, part.assignments))
            case Redirection():
                bones.append(redirection(part))
            case Assignment():
                bones.append(assignment(part))
            case Condition():
                operands = [word for word in part.words if not CONDITION_OPERATORS.fullmatch(word.text)]
                bones.append(("condition", words(operands)))
            case Loop(name=None):
                bones.extend(("pattern", span) for span in words(part.words))
            case Loop():
                bones.append(("loop", part.name, words(part.words)))
    return bones, values


class Bones:
    """Gathers the skeleton of the other reader's tree, and strikes out each certain word that it confirms."""

    def __init__(self, source: bytes, values: dict[Span, str]) -> None:
        self.found: list[Bone] = []
        self.values = values
        """What is still to be confirmed."""
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
            self.found.append(("condition", self._words(operands_of(node["X"]))))
        elif kind == "ForClause":
            loop = node["Loop"]
            if loop["Type"] != "WordIter" or node.get("Select"):
                raise Different
            self.found.append(("loop", loop["Name"]["Value"], self._words(loop.get("Items", ()))))
            self._statements(node["Do"])
        elif kind == "CaseClause":
            self._patterns([node["Word"]])
            for item in node.get("Items", ()):
                self._patterns(item["Patterns"])
                self._statements(item.get("Stmts", ()))
        elif kind in HOLDERS:
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
            if assign.get("Array") or assign.get("Index") or assign.get("Append"):
                raise Different
            value = assign.get("Value")
            self.found.append(("assignment", assign["Pos"]["Offset"], self._words([value]) if value else ()))
        if node.get("Args"):
            self.found.append(("command", self._words(node["Args"])))

    def _redirect(self, node: dict[str, Any]) -> None:
        body = node.get("Hdoc")
        operator, descriptor = node["Op"], node.get("N", {}).get("Value", "")
        span = self._here_document(body) if body else NO_BODY
        if operator in ("<<", "<<-"):
            self.found.append(("redirection", operator, descriptor, (), span))
            return
        word = node["Word"]
        start, end = span_of(word)
        if operator.endswith("&") and self._source[start:end] == b"-":
            self.found.append(("redirection", operator, descriptor, ("-",), span))
        else:
            self.found.append(("redirection", operator, descriptor, self._words([word]), span))

    def _here_document(self, body: dict[str, Any]) -> Span:
        """Where the text begins, and where the line of its delimiter does."""
        start, end = span_of(body)
        for part in body.get("Parts", ()):
            if part["Type"] not in ("Lit", "ParamExp"):
                raise Different
        return start, self._source.rfind(b"\n", 0, end) + 1

    def _patterns(self, nodes: Sequence[dict[str, Any]]) -> None:
        self.found.extend(("pattern", span) for span in self._words(nodes))

    def _words(self, nodes: Iterable[dict[str, Any]]) -> tuple[Span, ...]:
        return tuple(self._word(node) for node in nodes)

    def _word(self, node: dict[str, Any]) -> Span:
        span = span_of(node)
        value = self._value_of(node)
        if span in self.values and (value is None or value == self.values[span]):
            if value is None and not all(is_dollar_quoted(part) for part in node["Parts"] if part["Type"] != "Lit"):
                raise Different
            del self.values[span]
        return span

    def _value_of(self, node: dict[str, Any]) -> str | None:
        """What the word stands for; None when an expansion is in it. Commands inside are gathered too."""
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
            case "ParamExp" | "ArithmExp":
                return None
        raise Different

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


def is_dollar_quoted(part: dict[str, Any]) -> bool:
    return part["Type"] in ("SglQuoted", "DblQuoted")


def span_of(node: dict[str, Any]) -> Span:
    return node["Pos"]["Offset"], node["End"]["Offset"]
