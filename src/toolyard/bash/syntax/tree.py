"""Walks over the syntax tree that tree-sitter makes of a line, and collects the parts of the reading.

tree-sitter accepts broken text too, so its tree alone proves nothing. A node whose kind is not on our lists is a doubt;
so is text between two nodes that is not blank, and a word whose text does not fit its node. What is left without doubt
has to pass `cross_check` as well.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.bash.syntax.command_nodes import WORD_NODES, CommandReader
from toolyard.bash.syntax.reading import Condition, Doubt, Loop, SimpleCommand
from toolyard.bash.syntax.source_text import SourceText
from toolyard.bash.syntax.words import Misread

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

    from toolyard.bash.syntax.reading import Part
    from toolyard.bash.syntax.words import Word


DEEPEST = 64
MOST_COMMANDS = 50
CONTAINERS = frozenset({
    "program", "list", "pipeline", "subshell", "compound_statement", "if_statement", "elif_clause", "else_clause",
    "while_statement", "do_group", "negated_command",
})  # fmt: skip
"""Nodes that only hold others."""
STATEMENTS = CONTAINERS | {
    "command", "redirected_statement", "test_command", "for_statement", "case_statement", "function_definition",
    "declaration_command", "c_style_for_statement", "file_redirect",
}  # fmt: skip
ENDLESS = re.compile(
    r"(?!.*\b(?:break|exit|return)\b)(?:while\s+(?:true|:|(?:echo|printf|pwd|cd)\b[^;\n|&]*)|until\s+false)\s*[;\n]",
    re.DOTALL,
)
"""Loops whose condition is always met, and that nothing inside leaves."""
REPEATING = frozenset({"while_statement", "for_statement", "c_style_for_statement"})
TOKENS = frozenset({
    ";", "&", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "!", "if", "then", "elif", "else", "fi", "while",
    "until", "do", "done", "for", "in", "case", "esac", ";;",
})  # fmt: skip
EXPRESSIONS = frozenset({"binary_expression", "unary_expression", "parenthesized_expression", "negation_expression"})
CONSTRUCTS = {
    "function_definition": "a function is defined",
    "declaration_command": "the shell's variables are changed",
    "unset_command": "the shell's variables are changed",
    "c_style_for_statement": "arithmetic can run commands",
}


@cache
def parser() -> Parser:
    """One for the process, because the grammar takes a while to load."""
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class TreeReader:
    """Reads one line; `parts` and `doubts` hold what was found."""

    def __init__(self, text: str) -> None:
        self.parts: list[Part] = []
        self._text = SourceText(text)
        self._commands = CommandReader(self._text, self._substitution, self._look_inside)
        self._depth = 0
        self._repeating = 0
        self._looking = False

    @property
    def doubts(self) -> list[Doubt]:
        return self._text.doubts

    def read(self) -> None:
        root = parser().parse(self._text.for_grammar).root_node
        if root.has_error:
            self._text.doubt("syntax", "bash's grammar does not fit")
        self._text.check_ends(root)
        self._statement(root)
        self.parts.sort(key=lambda part: part.start)
        commands = sum(isinstance(part, SimpleCommand) for part in self.parts)
        if commands > MOST_COMMANDS:
            self._text.doubt("too_many", f"{commands} commands are more than can be looked over")
        if not self.parts and not self.doubts:
            self._text.doubt("empty", "there is no command")

    def _statement(self, node: Node) -> None:
        """Anything that can stand where a command can."""
        self._depth += 1
        repeats = node.type in REPEATING
        self._repeating += repeats
        try:
            if self._depth > DEEPEST:
                self._text.doubt("too_deep", "commands are nested too deep")
            else:
                self._read(node)
        except Misread as error:
            self._text.doubt("misread", str(error), node)
            self._look_once(node)
        finally:
            self._depth -= 1
            self._repeating -= repeats

    def _read(self, node: Node) -> None:
        match node.type:
            case kind if kind in CONTAINERS:
                self._text.check_gaps(node.children)
                if kind == "while_statement" and ENDLESS.match(self._text.of(node)):
                    self._text.doubt("endless", "a loop that does not end by itself", node)
                for child in node.children:
                    self._statement(child)
            case "command":
                self.parts.append(self._commands.command(node, repeated=self._repeating > 0))
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

    def _token(self, node: Node) -> None:
        if self._text.of(node).strip(" \t") != node.type.strip(" \t"):
            raise Misread("an operator is not what it seems")

    def _unknown(self, node: Node) -> None:
        """Doubt a node that is on no list; the commands inside are still read, because a rule may refuse them."""
        why = CONSTRUCTS.get(node.type, f"a construct that is not understood: {node.type}")
        self._text.doubt("construct", why, node)
        self._look_inside(node)

    def _look_once(self, node: Node) -> None:
        """Read the commands inside what was misread, because a rule may refuse them; some are then found twice."""
        if not self._looking:
            self._looking = True
            self._look_inside(node)
            self._looking = False

    def _look_inside(self, node: Node) -> None:
        for child in node.children:
            if child.type in STATEMENTS:
                self._statement(child)
            elif child.type in ("command_substitution", "process_substitution"):
                self._substitution(child)
            else:
                self._look_inside(child)

    def _substitution(self, node: Node) -> None:
        """The commands inside `$(…)`, `<(…)` or backticks."""
        self._text.check_gaps(node.children)
        for child in node.children[1:-1]:
            self._statement(child)

    def _redirected(self, node: Node) -> None:
        """A statement with redirections behind it, or redirections alone."""
        self._text.check_gaps(node.children)
        has_body = not node.children[0].type.endswith("_redirect")
        body = node.children[0] if has_body else None
        found, words = self._commands.redirections(node.children[has_body:], self._statement)
        if body is not None and body.type == "command":
            descriptor = self._commands.descriptor_of(body, node.children[1])
            if descriptor is not None:
                found[0] = replace(found[0], descriptor=self._text.of(descriptor), start=descriptor.start_byte)
            command = self._commands.command(body, words, found, repeated=self._repeating > 0, without=descriptor)
            self.parts.append(command)
            return
        self.parts.extend(found)
        if body is not None:
            self._statement(body)
        if words:
            raise Misread("words behind a redirection belong to no command")

    def _loop(self, node: Node) -> None:
        self._text.check_gaps(node.children)
        name: str | None = None
        words: list[Word] = []
        for child in node.children:
            match child.type:
                case "variable_name":
                    name = self._text.of(child)
                case "do_group" | "compound_statement":
                    self._statement(child)
                case kind if not child.is_named and kind in TOKENS:
                    self._token(child)
                case "select":
                    raise Misread("select asks a person")
                case _:
                    words.append(self._commands.word(child))
        self.parts.append(Loop(name=name, words=tuple(words), text=self._text.of(node), start=node.start_byte))

    def _case(self, node: Node) -> None:
        self._text.check_gaps(node.children)
        words: list[Word] = []
        for child in node.children:
            if child.type in WORD_NODES or child.type == "extglob_pattern":
                words.append(self._commands.word(child))
            elif child.type in (";;&", ";&"):
                raise Misread("a case that goes on with the next")
            else:
                self._statement(child)
        if words:
            self.parts.append(Loop(name=None, words=tuple(words), text=self._text.of(node), start=words[0].start))

    def _bare_assignments(self, node: Node) -> None:
        nodes = node.children if node.type == "variable_assignments" else [node]
        self._text.check_words(nodes)
        self.parts.extend(self._commands.assignment(child, alone=True) for child in nodes)

    def _test(self, node: Node) -> None:
        """`[ … ]` is a command, `[[ … ]]` a condition; `(( … ))` is arithmetic, which can run commands."""
        opening = node.children[0].type
        if opening not in ("[", "[["):
            self._text.doubt("arithmetic", "arithmetic can run commands", node)
            self._look_inside(node)
            return
        leaves = [leaf for child in node.children for leaf in leaves_of(child)]
        words = tuple(map(self._commands.word, leaves))
        text, start = self._text.of(node), node.start_byte
        if opening == "[":
            self._text.check_words(leaves)
            self.parts.append(SimpleCommand(words=words, text=text, start=start, repeated=self._repeating > 0))
        else:
            self._text.check_gaps(leaves)
            self.parts.append(Condition(words=words, text=text, start=start))

    def _comment(self, node: Node) -> None:
        text = self._text.of(node)
        before = self._text.between(node.start_byte - 1, node.start_byte) if node.start_byte else "\n"
        if not text.startswith("#") or "\n" in text or before not in " \t\n;&|(){}":
            raise Misread("a comment that may be none")


def leaves_of(node: Node) -> list[Node]:
    """The words and operators of a condition, in their order."""
    if node.type in EXPRESSIONS:
        return [leaf for child in node.children for leaf in leaves_of(child)]
    return [node]
