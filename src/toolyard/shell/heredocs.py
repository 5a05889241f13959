"""Here-documents: not the grammar, but the text itself decides where they end and what they hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.shell.reading import Redirection
from toolyard.shell.words import Misread, literal_word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["read_heredoc"]

DELIMITER = re.compile(r"""(?:[\w.-]+|'[\w. -]+'|"[\w. -]+"|\\[\w.-]+)""", re.ASCII)
"""A bare word, or one in a single pair of quotes; anything else is legal and never seen."""
REST_OF_LINE = re.compile(r"""(?:[^"'`\\(<$]|"[^"`\\$]*"|'[^']*'|<(?!<)|<<<)*""")
"""What may stand behind the delimiter: no second here-document, and no quote that goes on in the next line."""
EXPANDS = re.compile(r"[`\\]|\$(?![A-Za-z_]\w*|\{[A-Za-z_]\w*\}|[^\w@*#?$!({\[-]|\Z)", re.ASCII)
"""What in an unquoted here-document is more than the value of a variable."""


def read_heredoc(source: bytes, node: Node) -> Redirection:
    """A here-document's redirection; raises Misread unless grammar and text agree on it."""
    by_type = {child.type: child for child in node.children}
    operator = "<<-" if "<<-" in by_type else "<<"
    start, body, end = (by_type.get(f"heredoc_{name}") for name in ("start", "body", "end"))
    if start is None or body is None or end is None or end.is_missing:
        raise Misread("a here-document without an end")
    word = source[start.start_byte : start.end_byte].decode("utf-8", "replace")
    if not DELIMITER.fullmatch(word):
        raise Misread("an unusual here-document")
    is_literal = word[0] in "'\"\\"
    delimiter = word.strip("'\"").removeprefix("\\")
    content, span = extent(source, start.end_byte, end, delimiter, strips_tabs=operator == "<<-")
    if not is_literal and EXPANDS.search(content):
        raise Misread("a here-document that may run commands")
    descriptor = by_type.get("file_descriptor")
    return Redirection(
        operator=operator,
        descriptor=source[descriptor.start_byte : descriptor.end_byte].decode() if descriptor else "",
        target=literal_word(delimiter, start.start_byte, start.end_byte),
        text=f"{operator}{word}",
        start=node.start_byte,
        body=content,
        is_literal=is_literal,
        body_span=span,
    )


def extent(source: bytes, after: int, end: Node, delimiter: str, *, strips_tabs: bool) -> tuple[str, tuple[int, int]]:
    """The text from the next line to the line of the delimiter, which must be the first of its kind.

    The line of the operator must hold no second here-document and no quote that could go on in the next line.
    """
    line_end = source.find(b"\n", after)
    rest = source[after:line_end].decode("utf-8", "replace")
    if line_end < 0 or not REST_OF_LINE.fullmatch(rest):
        raise Misread("a here-document that begins on a line of more than it")
    content: list[str] = []
    at = line_end + 1
    while at <= len(source):
        stop = source.find(b"\n", at)
        stop = len(source) if stop < 0 else stop
        line = source[at:stop].decode("utf-8", "replace")
        ended = (line.lstrip("\t") if strips_tabs else line) == delimiter
        if ended:
            if end.end_byte != stop:
                raise Misread("a here-document that ends elsewhere than it seems")
            return "\n".join(content), (line_end + 1, at)
        content.append(line)
        at = stop + 1
    raise Misread("a here-document without an end")
