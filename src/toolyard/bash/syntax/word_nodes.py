"""Reads words from the nodes of the syntax tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.braces import expand_braces
from toolyard.bash.syntax.words import Misread, WordBuilder, WordPiece, decode_ansi_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from toolyard.bash.syntax.words import PieceKind, Word


PLAIN_NODES = frozenset(
    {"word", "number", "test_operator", "extglob_pattern", "special_variable_name", "variable_name"}
)
"""Nodes whose text is a piece of an unquoted word."""
OPERATOR_WORDS = frozenset(
    {"$", "==", "=~", "=", "!=", "<", ">", "!", "(", ")", "&&", "||", "[", "]", "[[", "]]", "-a", "-o"}
)
"""Tokens that are words of their own in a command or a condition."""
PARAMETER = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!_-])")
GOES_TO_A_COMMAND = "output goes to a command"
MAY_EVALUATE = "an expansion that may evaluate what it finds"
HARMLESS_EXPANSION = re.compile(
    r"""\$\{(?:
        (?P<name>[A-Za-z_]\w*|[0-9]+|[@*#?$!-])
      | \#(?P<measured>[A-Za-z_]\w*(?:\[[@*]\])?)
      | (?P<element>[A-Za-z_]\w*)\[(?:[@*]|[0-9]{1,4})\] (?P<cased>\^\^?|,,?|)
      | !(?P<keys>[A-Za-z_]\w*)\[[@*]\]
      | (?P<changed>[A-Za-z_]\w*|[1-9]) (?P<change>
            :?[-+] [\w./ ,%+-]*
          | (?:\#\#?|%%?) [\w./*?,:@+=( -]*
          | //?[\#%]?(?:[\w.,:@*? -]|\\/)+(?:/[\w./,:@ -]*)?
          | \^\^? | ,,? | :[ ]?-?[0-9]{1,6}(?::-?[0-9]{1,6})?
        )
      | (?P<cut>[A-Za-z_]\w*|[1-9]) (?:\#\#?|%%?) (?:[^$`\\{}'"\n] | \\[^$`{}'\n])*
    )\}""",
    re.VERBOSE | re.ASCII,
)
"""Expansions that look a variable up, give another text for it, or change or cut off a piece; none is evaluated."""
ARITHMETIC = re.compile(r"[0-9A-Za-z_\s+*/%()<>=&|^!~?:,$-]*", re.ASCII)
"""Numbers, variables and operators; only what the variables hold may still be evaluated."""
EXPANDED_NAME = re.compile(r"\$(?![A-Za-z_])", re.ASCII)
LITERAL_DOLLAR = re.compile(r"\$(?![\w@*#?$!({\[-])", re.ASCII)
"""A dollar that begins no expansion."""


class WordReader:
    """Reads words; the commands inside them go to `on_substitution`."""

    def __init__(
        self, source: bytes, on_substitution: Callable[[Node], None], on_arithmetic: Callable[[str, Node], None]
    ) -> None:
        self._source = source
        self._on_substitution = on_substitution
        self._on_arithmetic = on_arithmetic

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
        word = builder.finish()
        expand_braces(word.pieces)
        return word

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
            case "regex":
                self._regex(node, text, builder)
            case "simple_expansion":
                text = text.lstrip(" \t\n") if quoted else text  # the grammar counts blanks before it among its own
                self._check(PARAMETER, text, "an expansion that is not understood")
                is_quoted = quoted and text != "$@"  # which becomes several words
                builder.dynamic(WordPiece(kind="variable", text=text[1:], quoted=is_quoted, start=node.start_byte))
            case "expansion":
                text = text.lstrip(" \t\n") if quoted else text
                self._look_inside(node)
                builder.dynamic(self._expansion(node, text, quoted=quoted))
            case "arithmetic_expansion":
                self._look_inside(node)
                self._on_arithmetic(expression_in(text.lstrip(" \t\n")), node)
                builder.dynamic(WordPiece(kind="number", text=text, start=node.start_byte))
            case "command_substitution" | "process_substitution":
                self._substitution(node, text)
                is_quoted = quoted or node.type == "process_substitution"
                what: PieceKind = "output" if node.type == "command_substitution" else "unknown"
                builder.dynamic(WordPiece(kind=what, text=text, quoted=is_quoted, start=node.start_byte))
            case "$" if text == "$":
                builder.quoted(text)
            case kind if not node.is_named and text == kind and kind in ("{", "}", "..", ","):
                builder.unquoted(text)
            case _:
                self._look_inside(node)
                raise Misread(f"a word of kind {node.type}")

    def _regex(self, node: Node, text: str, builder: WordBuilder) -> None:
        """The right side of `=~`; of a regular expression without expansions nothing is evaluated."""
        self._look_inside(node)
        if node.children or re.search(r"[`'\"\n]|\$(?![\s)|]|\Z)", text):
            raise Misread("a regular expression with expansions or quotes")
        builder.dynamic(WordPiece(kind="unknown", text=text, start=node.start_byte))

    def _expansion(self, node: Node, text: str, *, quoted: bool) -> WordPiece:
        """`${…}`, if nothing in it is evaluated."""
        found = HARMLESS_EXPANSION.fullmatch(text)
        if found is None:
            raise Misread(MAY_EVALUATE)
        if found["measured"]:
            return WordPiece(kind="number", text=text, start=node.start_byte)
        if found["cut"]:  # what is left is not worked out: nobody needs it
            return WordPiece(kind="unknown", text=text, quoted=quoted, start=node.start_byte)
        if found["keys"]:
            return WordPiece(kind="unknown", text=text, quoted=False, start=node.start_byte)
        name = found["name"] or found["changed"] or found["element"]
        is_whole = (
            found["element"] is not None and re.search(r"\[[@*]\]", text) is not None
        )  # becomes several words, also between quotes
        change = found["change"] or found["cased"] or ""
        return WordPiece(
            kind="variable", text=name, quoted=quoted and not is_whole, change=change, start=node.start_byte
        )

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
                blanks = self._text(child.start_byte, child.end_byte)
                self._string_text(at, child.start_byte + len(blanks) - len(blanks.lstrip(" \t\n")), builder)
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
            raise Misread(GOES_TO_A_COMMAND)
        if text.startswith("$(<") and [child.type for child in node.children[1:-1]] != ["file_redirect"]:
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


def expression_in(text: str) -> str:
    """What is computed by `$((…))`, or by its old spelling `$[…]`."""
    for opening, closing in (("$((", "))"), ("$[", "]")):
        if text.startswith(opening) and text.endswith(closing):
            return text[len(opening) : -len(closing)]
    raise Misread("arithmetic that is not understood")
