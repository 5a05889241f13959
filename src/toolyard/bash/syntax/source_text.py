"""The text under a syntax tree: what nodes say, whether all of it is accounted for, and what could not be proven."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolyard.bash.syntax.reading import Doubt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node


BEYOND_LATIN_1 = re.compile(r"[^\x00-\xff]")
BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*\Z")
BETWEEN_WORDS = re.compile(rb"(?:\\\n)*[ \t](?:[ \t]|\\\n)*\Z")
"""A line that goes on without a blank makes one word of two."""


class SourceText:
    """The bytes of one line, which nodes point into, and the doubts about it."""

    def __init__(self, text: str) -> None:
        self.source = text.encode("utf-8")
        self.doubts: list[Doubt] = []
        self.for_grammar = self.source
        """The same bytes for the grammar, which looks behind a `{` for digits in a table that ends at U+00FF, and
        crashes on what lies far beyond. Such characters are part of words to bash, so a `/` does as well."""
        if b"{" in self.source and BEYOND_LATIN_1.search(text):
            self.for_grammar = BEYOND_LATIN_1.sub(lambda found: "/" * len(found[0].encode()), text).encode()
            if b"<<" in self.source:  # two delimiters could look alike
                self.doubt("here_document", "a here-document beside braces and characters beyond Latin-1")

    def doubt(self, code: str, message: str, node: Node | None = None) -> None:
        doubt = Doubt(code=code, message=message, text=self.of(node) if node is not None else "")
        if doubt not in self.doubts:
            self.doubts.append(doubt)

    def of(self, node: Node) -> str:
        return self.between(node.start_byte, node.end_byte)

    def between(self, start: int, end: int) -> str:
        return self.source[start:end].decode("utf-8", "replace")

    def check_ends(self, root: Node) -> None:
        """Before the first command and behind the last there must be blanks and nothing else."""
        self._check(0, root.start_byte, BLANK)
        self._check(root.end_byte, len(self.source), BLANK)

    def check_gaps(self, nodes: Iterable[Node]) -> None:
        """Between nodes there must be blanks and nothing else."""
        for left, right in pairwise(nodes):
            self._check(left.end_byte, right.start_byte, BLANK)

    def check_words(self, nodes: Iterable[Node]) -> None:
        """The same for words, which must be apart; a redirection may touch one."""
        for left, right in pairwise(nodes):
            touches = left.type.endswith("_redirect") or right.type.endswith("_redirect")
            self._check(left.end_byte, right.start_byte, BLANK if touches else BETWEEN_WORDS)

    def _check(self, start: int, end: int, allowed: re.Pattern[bytes]) -> None:
        if not allowed.match(self.source[start:end]):
            self.doubt("misread", "text between two words or commands belongs to neither")
