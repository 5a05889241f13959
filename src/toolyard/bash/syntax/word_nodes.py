"""Reads words from the nodes of the syntax tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import Misread, WordBuilder, decode_ansi_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from toolyard.bash.syntax.words import Word


PLAIN_NODES = frozenset(
    {"word", "number", "test_operator", "extglob_pattern", "regex", "special_variable_name", "variable_name"}
)
"""Nodes whose text is a piece of an unquoted word."""
OPERATOR_WORDS = frozenset(
    {"$", "==", "=~", "=", "!=", "<", ">", "!", "(", ")", "&&", "||", "[", "]", "[[", "]]", "-a", "-o"}
)
"""Tokens that are words of their own in a command or a condition."""
PARAMETER = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!_-])")
HARMLESS_EXPANSION = re.compile(
    r"""\$\{(?:
        (?:[A-Za-z_]\w*|[0-9]+|[@*#?$!-])
      | \#[A-Za-z_]\w*
      | [A-Za-z_]\w* :?[-+] [\w./ ,%+-]*
      | [A-Za-z_]\w* (?:\#\#?|%%?) [\w./*?-]*
    )\}""",
    re.VERBOSE | re.ASCII,
)
"""Expansions that look a variable up, give another text for it or cut a piece off; nothing in them is evaluated."""
ONLY_NUMBERS = re.compile(r"\$\(\([0-9\s+*/%()<>=&|^!~?:-]*\)\)", re.ASCII)
LITERAL_DOLLAR = re.compile(r"\$(?![\w@*#?$!({\[-])", re.ASCII)
"""A dollar that begins no expansion."""


class WordReader:
    """Reads words; the commands inside them go to `on_substitution`."""

    def __init__(self, source: bytes, on_substitution: Callable[[Node], None]) -> None:
        self._source = source
        self._on_substitution = on_substitution

    def read(self, node: Node) -> Word:
        """The word of a node; raises Misread when its text is not what the node says."""
        text = self._text(node.start_byte, node.end_byte)
        builder = WordBuilder(text, node.start_byte, node.end_byte)
        if node.type in OPERATOR_WORDS and text == node.type:
            builder.quoted(text)
        elif text.startswith("#"):
            raise Misread("a word that may be a comment")
        else:
            self._piece(node, builder, quoted=False)
        return builder.finish()

    def _text(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8", "replace")

    def _piece(self, node: Node, builder: WordBuilder, *, quoted: bool) -> None:
        text = self._text(node.start_byte, node.end_byte)
        match node.type:
            case kind if kind in PLAIN_NODES and not node.children:
                builder.unquoted(text)
            case "concatenation" | "brace_expression":
                self._joined(node, builder)
            case "raw_string":
                builder.quoted(self._raw(text))
            case "ansi_c_string":
                builder.quoted(decode_ansi_c(text))
            case "string":
                self._string(node, builder)
            case "simple_expansion":
                self._check(PARAMETER, text, "an expansion that is not understood")
                builder.dynamic(quoted=quoted)
            case "expansion":
                self._look_inside(node)
                self._check(HARMLESS_EXPANSION, text, "an expansion that may evaluate what it finds")
                builder.dynamic(quoted=quoted)
            case "arithmetic_expansion":
                self._look_inside(node)
                self._check(ONLY_NUMBERS, text, "arithmetic can run commands")
                builder.dynamic(quoted=True)
            case "command_substitution" | "process_substitution":
                self._substitution(node, text)
                builder.dynamic(quoted=quoted or node.type == "process_substitution", substitutes=True)
            case "$" if text == "$":
                builder.quoted(text)
            case kind if not node.is_named and text == kind and kind in ("{", "}", "..", ","):
                builder.unquoted(text)
            case _:
                self._look_inside(node)
                raise Misread(f"a word of kind {node.type}")

    def _joined(self, node: Node, builder: WordBuilder) -> None:
        end = node.start_byte
        for child in node.children:
            if child.start_byte != end:
                raise Misread("a gap inside a word")
            self._piece(child, builder, quoted=False)
            end = child.end_byte
        if end != node.end_byte:
            raise Misread("a gap inside a word")

    def _string(self, node: Node, builder: WordBuilder) -> None:
        """`"…"`: what is between the expansions stands for itself, but for five escapes."""
        at = node.start_byte + 1
        end = node.end_byte - 1
        if end < at or self._source[at - 1 : at] != b'"' or self._source[end : end + 1] != b'"':
            raise Misread("a string without its quotes")
        for child in node.children:
            if child.type.endswith(("expansion", "substitution")):
                self._string_text(at, child.start_byte, builder)
                self._piece(child, builder, quoted=True)
                at = child.end_byte
        self._string_text(at, end, builder)

    def _string_text(self, start: int, end: int, builder: WordBuilder) -> None:
        text = self._text(start, end)
        without_escapes = re.sub(r"\\[$`\"\\\n]", "", text)
        if '"' in without_escapes or "`" in without_escapes or "$" in LITERAL_DOLLAR.sub("", without_escapes):
            raise Misread("a string that does not end where it seems to")
        builder.quoted(re.sub(r"\\([$`\"\\\n])", lambda match: match[1].replace("\n", ""), text))

    def _raw(self, text: str) -> str:
        if len(text) < 2 or text[0] != "'" or text[-1] != "'" or "'" in text[1:-1]:
            raise Misread("a string without its quotes")
        return text[1:-1]

    def _substitution(self, node: Node, text: str) -> None:
        self._on_substitution(node)
        if text.startswith("`") and ("\\" in text or "`" in text[1:-1]):
            raise Misread("backticks inside backticks")
        if text.startswith(">("):
            raise Misread("output goes to a command")
        if text.startswith("$(<"):
            raise Misread("a file is read without a command")

    def _look_inside(self, node: Node) -> None:
        """Commands inside what is not understood may still be refused."""
        for child in node.children:
            if child.type in ("command_substitution", "process_substitution"):
                self._on_substitution(child)
            else:
                self._look_inside(child)

    def _check(self, pattern: re.Pattern[str], text: str, message: str) -> None:
        if not pattern.fullmatch(text):
            raise Misread(message)
