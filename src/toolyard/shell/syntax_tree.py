"""A line through tree-sitter-bash: an allow-list of node kinds, and every byte of the text accounted for.

The grammar is tolerant, so a tree alone proves nothing. Whatever is not on the list is a doubt; so is text between two
nodes that is no blank, and a word whose text is not what its node says. Of what is left a second reader has to say the
same.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from toolyard.shell.heredocs import read_heredoc
from toolyard.shell.reading import Assignment, Condition, Doubt, Loop, Redirection, SimpleCommand
from toolyard.shell.word_nodes import WordReader
from toolyard.shell.words import Misread, Word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tree_sitter import Node, Parser

    from toolyard.shell.reading import Part

__all__ = ["TreeReader"]

DEEPEST = 64
MOST_COMMANDS = 50
BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*\Z")
BETWEEN_WORDS = re.compile(rb"(?:\\\n)*[ \t](?:[ \t]|\\\n)*\Z")
DESCRIPTOR = re.compile(r"\d+|\{\w+\}")
TRANSPARENT = frozenset({
    "program", "list", "pipeline", "subshell", "compound_statement", "if_statement", "elif_clause", "else_clause",
    "while_statement", "do_group", "negated_command",
})  # fmt: skip
"""Nodes that only hold others."""
PATTERN_NODES = frozenset(
    {"extglob_pattern", "word", "string", "raw_string", "simple_expansion", "number", "concatenation"}
)
STATEMENTS = TRANSPARENT | {
    "command", "redirected_statement", "test_command", "for_statement", "case_statement", "function_definition",
    "declaration_command", "c_style_for_statement", "file_redirect",
}  # fmt: skip
REPEATING = frozenset({"while_statement", "for_statement", "c_style_for_statement"})
TOKENS = frozenset({
    ";", "&", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "!", "if", "then", "elif", "else", "fi", "while",
    "until", "do", "done", "for", "in", "case", "esac", ";;",
})  # fmt: skip
FILE_OPERATORS = frozenset({">", ">>", "<", ">&", "<&", "&>", "&>>", ">|", ">&-", "<&-"})
RESERVED = frozenset({
    "!", "{", "}", "[[", "]]", "((", "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while",
    "until", "do", "done", "in", "function", "time", "coproc", "export", "declare", "typeset", "local", "readonly",
    "unset", "unsetenv",
})  # fmt: skip
"""Words that are never the name of a command when they are not quoted, and of which the grammar may think otherwise."""


@cache
def parser() -> Parser:
    """Made once: the grammar takes a while to load."""
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class TreeReader:
    """Takes one line apart; `parts` and `doubts` hold what was found."""

    def __init__(self, text: str) -> None:
        self.source = text.encode("utf-8")
        self.parts: list[Part] = []
        self.doubts: list[Doubt] = []
        self._depth = 0
        self._repeating = 0
        self._words = WordReader(self.source, self._substitution)

    def read(self) -> None:
        """Read the whole line; never raises, whatever it is."""
        root = parser().parse(self.source).root_node
        if root.has_error:
            self.doubt("syntax", "bash's grammar does not fit")
        if not BLANK.match(self.source[: root.start_byte]) or not BLANK.match(self.source[root.end_byte :]):
            self.doubt("misread", "something stands outside of all commands")
        self.statement(root)
        self.parts.sort(key=lambda part: part.start)
        commands = sum(isinstance(part, SimpleCommand) for part in self.parts)
        if commands > MOST_COMMANDS:
            self.doubt("too_many", f"{commands} commands are more than can be looked over")
        if not self.parts and not self.doubts:
            self.doubt("empty", "there is no command")

    def doubt(self, code: str, message: str, node: Node | None = None) -> None:
        """Note something that could not be proven."""
        text = self.text_of(node) if node is not None else ""
        doubt = Doubt(code=code, message=message, text=text)
        if doubt not in self.doubts:
            self.doubts.append(doubt)

    def text_of(self, node: Node) -> str:
        """The text of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def statement(self, node: Node) -> None:
        """Anything that can stand where a command can."""
        self._depth += 1
        repeats = node.type in REPEATING
        self._repeating += repeats
        try:
            if self._depth > DEEPEST:
                self.doubt("too_deep", "commands are nested too deep")
            else:
                self._statement(node)
        except Misread as error:
            self.doubt("misread", str(error), node)
        finally:
            self._depth -= 1
            self._repeating -= repeats

    def _statement(self, node: Node) -> None:
        match node.type:
            case kind if kind in TRANSPARENT:
                self._holder(node)
            case "command":
                self._command(node, ())
            case "redirected_statement":
                self._redirected(node)
            case "test_command":
                self._test(node)
            case "for_statement":
                self._loop(node)
            case "case_statement" | "case_item":
                self._case(node)
            case "variable_assignment" | "variable_assignments":
                self._bare_assignments(node)
            case "comment":
                self._comment(node)
            case kind if not node.is_named and kind in TOKENS:
                self._token(node)
            case _:
                self._unknown(node)

    def _holder(self, node: Node) -> None:
        self._check_gaps(node)
        for child in node.children:
            self.statement(child)

    def _token(self, node: Node) -> None:
        if self.text_of(node).strip(" \t") != node.type.strip(" \t"):
            raise Misread("an operator is not what it seems")

    def _unknown(self, node: Node) -> None:
        """Not on the list; what is inside may still be refused."""
        names = {
            "function_definition": "a function is defined",
            "declaration_command": "the shell's variables are changed",
            "unset_command": "the shell's variables are changed",
            "c_style_for_statement": "arithmetic can run commands",
        }
        self.doubt("construct", names.get(node.type, f"a construct that is not understood: {node.type}"), node)
        self._look_inside(node)

    def _look_inside(self, node: Node) -> None:
        for child in node.children:
            if child.type in STATEMENTS:
                self.statement(child)
            elif child.type in ("command_substitution", "process_substitution"):
                self._substitution(child)
            else:
                self._look_inside(child)

    def _command(self, node: Node, after: Sequence[Node], redirections: Iterable[Redirection] = ()) -> None:
        """A simple command; `after` are further words that stand behind its redirections."""
        self._check_gaps(node, between_words=True)
        words: list[Word] = []
        assignments: list[Assignment] = []
        found: list[Redirection] = list(redirections)
        for child in [*node.children, *after]:
            match child.type:
                case "variable_assignment":
                    assignments.append(self._assignment(child))
                case "command_name":
                    self._check_gaps(child)
                    words.append(self._word(child.children[0] if len(child.children) == 1 else child))
                case "file_redirect" | "herestring_redirect":
                    redirection, more = self._redirect(child)
                    found.append(redirection)
                    words.extend(map(self._word, more))
                case _:
                    words.append(self._word(child))
        self._add_command(node, sorted(words, key=lambda word: word.start), assignments, found)

    def _add_command(
        self, node: Node, words: list[Word], assignments: list[Assignment], found: list[Redirection]
    ) -> None:
        timed = None
        if words and words[0].text == "time":
            timed, words = words[0].start, words[1:]
            if words and words[0].text == "-p":
                words = words[1:]
        if not words:
            self.doubt("no_command", "there is no command", node)
        elif words[0].text in RESERVED or words[0].text.startswith(("-", "%")):
            self.doubt("keyword", f"'{words[0].text}' is not the name of a command here", node)
        self.parts.append(
            SimpleCommand(
                words=tuple(words),
                text=self.text_of(node),
                start=node.start_byte,
                assignments=tuple(assignments),
                redirections=tuple(found),
                repeated=self._repeating > 0,
                keyword_time=timed,
            )
        )

    def _redirected(self, node: Node) -> None:
        """A statement with redirections behind it."""
        self._check_gaps(node)
        first, *redirects = node.children
        body: Node | None = first
        if first.type.endswith("_redirect"):
            body, redirects = None, node.children
        found: list[Redirection] = []
        words: list[Node] = []
        for child in redirects:
            if child.type == "heredoc_redirect":
                found.append(self._heredoc(child, found, words))
            else:
                redirection, more = self._redirect(child)
                found.append(redirection)
                words.extend(more)
        if body is not None and body.type == "command":
            self._command(body, words, found)
            return
        if body is not None:
            self.statement(body)
        if words:
            raise Misread("words behind a redirection belong to no command")
        self.parts.extend(found)

    def _redirect(self, node: Node) -> tuple[Redirection, list[Node]]:
        """A redirection, and words behind its target that are arguments of the command."""
        if node.type not in ("file_redirect", "herestring_redirect"):
            raise Misread(f"a redirection of kind {node.type}")
        children = list(node.children)
        descriptor = ""
        if children and children[0].type == "file_descriptor":
            descriptor = self.text_of(children.pop(0))
            if not descriptor.isdigit():
                raise Misread("a descriptor in a variable")
        operator = self.text_of(children.pop(0))
        if operator not in FILE_OPERATORS and operator != "<<<":
            raise Misread(f"a redirection {operator}")
        for left, right in pairwise(children[1:]):
            self._check_gap(left.end_byte, right.start_byte, BETWEEN_WORDS)
        target = self._word(children[0]) if children else None
        if target is None and not operator.endswith("-"):
            raise Misread("a redirection without a target")
        end = children[0].end_byte if children else node.end_byte
        text = self.source[node.start_byte : end].decode("utf-8", "replace")
        redirection = Redirection(
            operator=operator, descriptor=descriptor, target=target, text=text, start=node.start_byte
        )
        return redirection, children[1:]

    def _heredoc(self, node: Node, found: list[Redirection], words: list[Node]) -> Redirection:
        """A here-document; what stands between its delimiter and its line's end is in its node too."""
        self._check_gaps_before(node, "heredoc_body")
        for child in node.children:
            match child.type:
                case "heredoc_start" | "heredoc_body" | "heredoc_end" | "<<" | "<<-" | "file_descriptor":
                    pass
                case "file_redirect" | "herestring_redirect":
                    redirection, more = self._redirect(child)
                    found.append(redirection)
                    words.extend(more)
                case kind if kind in TRANSPARENT or kind in TOKENS or kind in ("command", "redirected_statement"):
                    self.statement(child)
                case _:
                    words.append(child)
        return read_heredoc(self.source, node)

    def _loop(self, node: Node) -> None:
        self._check_gaps(node)
        name: str | None = None
        words: list[Word] = []
        for child in node.children:
            match child.type:
                case "variable_name":
                    name = self.text_of(child)
                case "do_group" | "compound_statement":
                    self.statement(child)
                case "select":
                    raise Misread("select asks a person")
                case kind if not child.is_named and kind in TOKENS:
                    self._token(child)
                case _:
                    words.append(self._word(child))
        self.parts.append(Loop(name=name, words=tuple(words), text=self.text_of(node), start=node.start_byte))

    def _case(self, node: Node) -> None:
        self._check_gaps(node)
        words: list[Word] = []
        for child in node.children:
            match child.type:
                case (
                    "extglob_pattern"
                    | "word"
                    | "string"
                    | "raw_string"
                    | "simple_expansion"
                    | "number"
                    | "concatenation"
                ):
                    words.append(self._word(child))
                case ";;&" | ";&":
                    raise Misread("a case that goes on with the next")
                case _:
                    self.statement(child)
        if words:
            self.parts.append(Loop(name=None, words=tuple(words), text=self.text_of(node), start=words[0].start))

    def _bare_assignments(self, node: Node) -> None:
        several = node.type == "variable_assignments"
        if several:
            self._check_gaps(node, between_words=True)
        for child in node.children if several else [node]:
            self.parts.append(self._assignment(child, alone=True))

    def _assignment(self, node: Node, *, alone: bool = False) -> Assignment:
        name = next((self.text_of(child) for child in node.children[:1] if child.type == "variable_name"), None)
        value: Word | None = None
        if len(node.children) == 3 and node.children[2].type != "array":
            value = self._word(node.children[2])
        else:
            for child in node.children[1:]:
                if child.is_named:
                    self._look_inside(child)
        appends = any(child.type == "+=" for child in node.children)
        return Assignment(
            name=None if appends else name, value=value, text=self.text_of(node), start=node.start_byte, alone=alone
        )

    def _test(self, node: Node) -> None:
        """`[ … ]` is a command, `[[ … ]]` a condition; `(( … ))` is arithmetic, which can run commands."""
        opening = node.children[0].type
        if opening not in ("[", "[["):
            self.doubt("arithmetic", "arithmetic can run commands", node)
            return
        leaves = [node.children[0]]
        for child in node.children[1:-1]:
            leaves.extend(self._leaves(child))
        leaves.append(node.children[-1])
        for left, right in pairwise(leaves):
            self._check_gap(left.end_byte, right.start_byte, BETWEEN_WORDS if opening == "[" else BLANK)
        words = tuple(self._word(leaf) for leaf in leaves)
        text, start = self.text_of(node), node.start_byte
        if opening == "[":
            repeated = self._repeating > 0
            self.parts.append(SimpleCommand(words=words, text=text, start=start, repeated=repeated))
        else:
            self.parts.append(Condition(words=words, text=text, start=start))

    def _leaves(self, node: Node) -> list[Node]:
        """The words and operators of a condition, in their order."""
        if node.type in ("binary_expression", "unary_expression", "parenthesized_expression", "negation_expression"):
            return [leaf for child in node.children for leaf in self._leaves(child)]
        return [node]

    def _comment(self, node: Node) -> None:
        text = self.text_of(node)
        before = self.source[node.start_byte - 1 : node.start_byte] if node.start_byte else b"\n"
        if not text.startswith("#") or "\n" in text or before not in b" \t\n;&|(){}":
            raise Misread("a comment that may be none")

    def _word(self, node: Node) -> Word:
        """A word; one that cannot be read may be anything."""
        try:
            if self.source[node.end_byte : node.end_byte + 1] in (b"<", b">") and DESCRIPTOR.fullmatch(
                self.text_of(node)
            ):
                raise Misread("a word that may be the descriptor of a redirection")
            return self._words.read(node)
        except Misread as error:
            self.doubt("word", str(error), node)
            return Word(text=self.text_of(node), start=node.start_byte, end=node.end_byte, kind="dynamic", splits=True)

    def _substitution(self, node: Node) -> None:
        """The commands inside `$(…)`, `<(…)` or backticks."""
        self._check_gaps(node)
        for child in node.children[1:-1]:
            self.statement(child)

    def _check_gaps(self, node: Node, *, between_words: bool = False) -> None:
        """Between the parts of a node there must be blanks and nothing else."""
        for left, right in pairwise(node.children):
            if between_words and not right.type.endswith("_redirect") and not left.type.endswith("_redirect"):
                self._check_gap(left.end_byte, right.start_byte, BETWEEN_WORDS)
            else:
                self._check_gap(left.end_byte, right.start_byte, BLANK)

    def _check_gaps_before(self, node: Node, last: str) -> None:
        for left, right in pairwise(node.children):
            if right.type != last and left.type != last:
                self._check_gap(left.end_byte, right.start_byte, BLANK)

    def _check_gap(self, start: int, end: int, allowed: re.Pattern[bytes]) -> None:
        if not allowed.match(self.source[start:end]):
            self.doubt("misread", "text between two words or commands belongs to neither")
