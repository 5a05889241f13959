"""What is wrong with a text that is no JSON: where, what was expected there, and the usual causes by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.core.problems import Position, Problem

if TYPE_CHECKING:
    import json
    from pathlib import Path


BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])')
LITERALS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
WORD = re.compile(r"[A-Za-z]+")


def syntax_problem(path: Path, text: str, error: json.JSONDecodeError) -> Problem:
    """Explain a syntax error better than the parser does, which only tells what surprised it."""
    before, after = text[: error.pos].rstrip(), text[error.pos :]
    if error.msg.startswith("Illegal trailing comma"):  # since Python 3.13 the parser stops at the comma itself
        before, after = before + ",", after[1:].lstrip()
    where = Position(file=path, line=error.lineno, column=error.colno)
    if before.endswith(",") and after[:1] in ("}", "]"):
        where = Position(file=path, line=before.count("\n") + 1, column=len(before) - before.rfind("\n") - 1)
        message, hint = f"trailing comma before '{after[0]}'", "remove the comma"
    else:
        message, hint = usual_cause(error, after) or expectation(text, error, after)
    return Problem(code="config_syntax", message=message, hint=hint, where=where)


def usual_cause(error: json.JSONDecodeError, after: str) -> tuple[str, str] | None:
    """Recognise common mistakes, and say how to mend them."""
    word = WORD.match(after)
    if after.startswith(("//", "/*", "#")):
        return "comments are not part of JSON", "remove the comment"
    if after.startswith("'"):
        return "strings take double quotes", "write \"…\" instead of '…'"
    if word and word[0] in LITERALS:
        return f"'{word[0]}' is not a JSON value", f"write {LITERALS[word[0]]}"
    if error.msg.startswith("Unterminated string"):
        return "expected '\"' at the end of this string; the file ends here", "close the string"
    if error.msg.startswith("Invalid control character"):
        return "a line end or tab inside a string", "close the string with '\"', or write \\n or \\t"
    if error.msg.startswith("Invalid \\"):
        return f"'{after[:2]}' means nothing in a string", "write \\\\ for a backslash"
    return None


def expectation(text: str, error: json.JSONDecodeError, after: str) -> tuple[str, str]:
    """Say what may stand where the parser gave up."""
    found = f"found {after[0]!r}" if after else "the file ends here"
    opened = open_bracket(text[: error.pos])
    hint = "" if after or not opened else f"'{opened[0]}' of line {opened[1]} is not closed"
    return f"expected {expected_at(error.msg, opened[0] if opened else '')}; {found}", hint


def expected_at(said: str, bracket: str) -> str:
    if said.startswith("Extra data"):
        return "the end of the file"
    if "property name" in said:
        return "a key in double quotes"
    if "delimiter" not in said:
        return "a value"
    return "':' after the key" if "':'" in said else "',' or '}'" if bracket == "{" else "',' or ']'"


def open_bracket(text: str) -> tuple[str, int] | None:
    still_open: list[int] = []
    for found in BRACKETS.finditer(text):
        if found[1]:
            still_open.append(found.start())
        elif found[2] and still_open:
            still_open.pop()
    return (text[still_open[-1]], text.count("\n", 0, still_open[-1]) + 1) if still_open else None
