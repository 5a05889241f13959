"""Reads simple commands from the nodes of the syntax tree: words, assignments, redirections, here-documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.bash.syntax.reading import Assignment, Redirection, SimpleCommand
from toolyard.bash.syntax.word_nodes import WordReader
from toolyard.bash.syntax.words import Misread, Word, WordPiece, literal_word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tree_sitter import Node

    from toolyard.bash.syntax.source_text import SourceText


ODD_DECLARATION = "a declaration that is not understood"
DESCRIPTOR = re.compile(r"\d+|\{\w+\}")
REDIRECTS = ("file_redirect", "herestring_redirect")
OPERATORS = frozenset({">", ">>", "<", ">&", "<&", "&>", "&>>", ">|", ">&-", "<&-", "<<<"})
HEREDOC_NODES = frozenset({"heredoc_start", "heredoc_body", "heredoc_end", "<<", "<<-", "file_descriptor"})
RESERVED = frozenset({
    "!", "{", "}", "[[", "]]", "((", "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while",
    "until", "do", "done", "in", "function", "time", "coproc", "export", "declare", "typeset", "local", "readonly",
    "unset", "unsetenv",
})  # fmt: skip
"""Words that never name a command when they are not quoted, although tree-sitter may say so."""
WORD_NODES = frozenset({
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "simple_expansion",
    "expansion", "arithmetic_expansion", "command_substitution", "process_substitution", "brace_expression",
})  # fmt: skip
"""Nodes that are words where a command has its arguments."""
DELIMITER = re.compile(r"""(?:[\w.-]+|'[\w. -]+'|"[\w. -]+"|\\[\w.-]+)""", re.ASCII)
"""A bare word, or one in a single pair of quotes; anything else is legal and never seen."""
REST_OF_LINE = re.compile(r"""(?:[^"'`\\(<$]|"[^"`\\$]*"|'[^']*'|<(?!<)|<<<)*""")
"""What may stand behind the delimiter: no second here-document, and no quote that goes on in the next line."""
ESCAPED = re.compile(r"\\[^\n]")
EXPANDS = re.compile(r"[`\\]|\$(?![A-Za-z_]\w*|\{[A-Za-z_]\w*\}|[^\w@*#?$!({\[-]|\Z)", re.ASCII)
"""What in an unquoted here-document is more than the value of a variable."""


class CommandReader:
    """Reads commands; substitutions and other nodes that hold statements go to the callbacks."""

    def __init__(
        self,
        text: SourceText,
        on_substitution: Callable[[Node], None],
        look_inside: Callable[[Node], None],
        on_arithmetic: Callable[[str, Node], None],
    ) -> None:
        self._text = text
        self._look_inside = look_inside
        self._words = WordReader(text.source, on_substitution, on_arithmetic)

    def word(self, node: Node) -> Word:
        """A word; one that cannot be read may be anything."""
        try:
            follower = self._text.between(node.end_byte, node.end_byte + 1)
            if follower in ("<", ">") and DESCRIPTOR.fullmatch(self._text.of(node)):
                raise Misread("a word that may be the descriptor of a redirection")
            return self._words.read(node)
        except Misread as error:
            self._text.doubt("word", str(error), node)
            text = self._text.of(node)
            return Word(text=text, start=node.start_byte, end=node.end_byte, kind="dynamic", splits=True)

    def descriptor_of(self, body: Node, redirect: Node) -> Node | None:
        """The `0` of `cat 0< file`, which the grammar takes for the command's last word."""
        last = body.children[-1]
        touches = last.end_byte == redirect.start_byte and redirect.type == "file_redirect"
        is_zero = touches and self._text.of(last) == "0" and self._text.of(redirect).startswith("<")
        return last if is_zero and len(body.children) > 1 else None

    def command(
        self,
        node: Node,
        after: Sequence[Node] = (),
        redirections: Sequence[Redirection] = (),
        *,
        without: Node | None = None,
    ) -> SimpleCommand:
        """A simple command; `after` are words of it that stand behind its redirections."""
        self._text.check_words(node.children)
        words: list[Word] = []
        assignments: list[Assignment] = []
        found = list(redirections)
        for child in [*node.children, *after]:
            if child == without:
                continue
            if child.type == "variable_assignment":
                assignments.append(self.assignment(child))
            elif child.type in REDIRECTS:
                redirection, more = self.redirection(child)
                found.append(redirection)
                words.extend(map(self.word, more))
            else:
                is_name = child.type == "command_name" and len(child.children) == 1
                words.append(self.word(child.children[0] if is_name else child))
        return SimpleCommand(
            words=self._checked(sorted(words, key=lambda word: word.start), node),
            text=self._text.of(node),
            start=node.start_byte,
            assignments=tuple(assignments),
            redirections=tuple(found),
        )

    def _checked(self, words: list[Word], node: Node) -> tuple[Word, ...]:
        """The words without the reserved word `time`; the first must be able to name a command."""
        if words and words[0].text == "time":
            words = words[2:] if len(words) > 1 and words[1].text == "-p" else words[1:]
        if not words:
            self._text.doubt("no_command", "there is no command", node)
        elif words[0].text in RESERVED or words[0].text.startswith(("-", "%")):
            self._text.doubt("keyword", f"'{words[0].text}' is not the name of a command here", node)
        return tuple(words)

    def redirection(self, node: Node) -> tuple[Redirection, list[Node]]:
        """A redirection, and words behind its target that are arguments of the command."""
        children = list(node.children)
        descriptor = ""
        if children and children[0].type == "file_descriptor":
            descriptor = self._text.of(children.pop(0))
        operator = self._text.of(children.pop(0)) if children else ""
        is_known = node.type in REDIRECTS and operator in OPERATORS and (not descriptor or descriptor.isdigit())
        if not is_known or (not children and not operator.endswith("-")):
            raise Misread(f"a redirection that is not understood: {self._text.of(node)}")
        self._text.check_words(children[1:])
        end = children[0].end_byte if children else node.end_byte
        redirection = Redirection(
            operator=operator,
            descriptor=descriptor,
            target=self.word(children[0]) if children else None,
            text=self._text.between(node.start_byte, end),
            start=node.start_byte,
        )
        return redirection, children[1:]

    def redirections(
        self, nodes: Sequence[Node], on_statement: Callable[[Node], None]
    ) -> tuple[list[Redirection], list[Node]]:
        """The redirections behind a statement, and words among them; a here-document holds more of its line."""
        found: list[Redirection] = []
        words: list[Node] = []
        for node in nodes:
            is_heredoc = node.type == "heredoc_redirect"
            before = [node]
            if is_heredoc:
                before = [child for child in node.children if child.type not in ("heredoc_body", "heredoc_end")]
            self._text.check_gaps(before)
            for child in before:
                if child.type in REDIRECTS or not is_heredoc:
                    redirection, more = self.redirection(child)
                    found.append(redirection)
                    words.extend(more)
                elif child.type in WORD_NODES:
                    words.append(child)
                elif child.type not in HEREDOC_NODES:
                    on_statement(child)
            if is_heredoc:
                found.append(read_heredoc(self._text.source, node))
        return found, words

    def declaration(self, node: Node) -> SimpleCommand:
        """`export NAME=value`, `declare -r NAME`: a builtin whose arguments are assignments and names."""
        self._text.check_words(node.children)
        words = [literal_word(self._text.of(node.children[0]), node.children[0].start_byte, node.children[0].end_byte)]
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                words.append(self._declared(child))
            elif child.type in ("word", "variable_name"):
                words.append(self.word(child))
            else:
                raise Misread(ODD_DECLARATION)
        return SimpleCommand(words=tuple(words), text=self._text.of(node), start=node.start_byte)

    def _declared(self, node: Node) -> Word:
        """`NAME=value` as an argument: one word, certain if its value is."""
        assigned = self.assignment(node)
        if assigned.name is None or assigned.adds or assigned.elements is not None:
            raise Misread(ODD_DECLARATION)
        name, value = f"{assigned.name}=", assigned.value
        word = Word(text=assigned.text, start=node.start_byte, end=node.end_byte, prefix=name)
        if value is None or value.value is not None:
            certain = name + (value.value or "" if value else "")
            return replace(word, value=certain, prefix=certain)
        return replace(word, kind="dynamic", pieces=(WordPiece(kind="text", text=name), *value.pieces))

    def assignment(self, node: Node, *, alone: bool = False) -> Assignment:
        """`NAME=value`, `NAME+=value` or `NAME=(…)`; anything more is looked into for commands, but not read."""
        kinds = [child.type for child in node.children]
        value: Word | None = None
        elements: tuple[Word, ...] | None = None
        is_plain = kinds[:1] == ["variable_name"] and kinds[1:2] in (["="], ["+="])
        if is_plain and len(kinds) == 3 and kinds[2] == "array":
            elements = self._elements(node.children[2])
        elif len(kinds) == 3 and kinds[2] != "array":
            value = self.word(node.children[2])
        else:
            self._look_inside(node)
        return Assignment(
            name=self._text.of(node.children[0]) if is_plain else None,
            value=value,
            text=self._text.of(node),
            start=node.start_byte,
            alone=alone,
            elements=elements,
            adds=kinds[1:2] == ["+="],
        )

    def _elements(self, node: Node) -> tuple[Word, ...]:
        """The words of an array; a subscript in it would be evaluated."""
        self._text.check_gaps(node.children)
        self._text.check_words(node.children[1:-1])
        words = tuple(self.word(child) for child in node.children[1:-1] if child.type != "comment")
        if any(word.text.startswith("[") for word in words) or "#" in self._text.of(node):
            raise Misread("an array with subscripts or comments")
        return words


def read_heredoc(source: bytes, node: Node) -> Redirection:
    """A here-document; raises Misread unless tree-sitter and our own look at the text find the same one."""
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
    content, span = heredoc_body(source, start.end_byte, end, delimiter, strips_tabs=operator == "<<-")
    if not is_literal and EXPANDS.search(ESCAPED.sub("", content)):
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


def heredoc_body(
    source: bytes, after: int, end: Node, delimiter: str, *, strips_tabs: bool
) -> tuple[str, tuple[int, int]]:
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
