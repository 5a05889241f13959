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
from toolyard.bash.syntax.reading import Arithmetic, Condition, Doubt, Loop, Pipe, ShellFunction, SimpleCommand
from toolyard.bash.syntax.source_text import SourceText
from toolyard.bash.syntax.word_nodes import ARITHMETIC, EXPANDED_NAME
from toolyard.bash.syntax.words import Misread, literal_word

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
BRANCHES = frozenset({
    "subshell", "pipeline", "if_statement", "elif_clause", "else_clause", "while_statement", "for_statement",
    "c_style_for_statement", "case_statement", "case_item", "function_definition", "command_substitution",
    "process_substitution",
})  # fmt: skip
"""Nodes whose commands may not run, or run in a copy of the shell."""
FORKING = frozenset({"subshell", "pipeline", "command_substitution", "process_substitution"})
REPEATING = frozenset({"while_statement", "for_statement", "c_style_for_statement"})
TOKENS = frozenset({
    ";", "&", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "!", "if", "then", "elif", "else", "fi", "while",
    "until", "do", "done", "for", "in", "case", "esac", ";;",
})  # fmt: skip
EXPRESSIONS = frozenset({"binary_expression", "unary_expression", "parenthesized_expression", "negation_expression"})
CONSTRUCTS = {
    "function_definition": "a function is defined",
    "unset_command": "the shell's variables are changed",
}
LOST_DASH = re.compile(r"[ \t]+-[ \t]+")
FUNCTION = re.compile(r"[A-Za-z_]\w*", re.ASCII)
FILE_DOUBT = "file_read"
"""The code of the doubt about `$(< file)`."""
FUNCTION_DOUBT = "function"
"""The code of the doubt about a function that was read."""
EVALUATES = "arithmetic can run commands"
NAME = re.compile(r"(?<![\w#])[A-Za-z_]\w*", re.ASCII)
SETS = re.compile(r"([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII)


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
        self.pipes: list[Pipe] = []
        self.defines: list[str] = []
        self.functions: list[ShellFunction] = []
        self._commands = CommandReader(self._text, self._substitution, self._look_inside, self._arithmetic)
        self._depth = 0
        self._repeating = 0
        self._forked = 0
        self._block: tuple[int, ...] = ()
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
        if self._depth >= DEEPEST:
            self._text.doubt("too_deep", "commands are nested too deep")
            return
        outside = (self._depth, self._repeating, self._forked, self._block)
        self._depth += 1
        self._repeating += node.type in REPEATING
        self._enter(node)
        try:
            self._read(node)
        except Misread as error:
            self._text.doubt("misread", str(error), node)
            self._look_once(node)
        finally:
            self._depth, self._repeating, self._forked, self._block = outside

    def _enter(self, node: Node) -> None:
        """Note what of a node's commands is left in the shell, and whether they run at all."""
        after, parent = node.next_sibling, node.parent
        in_background = after is not None and after.type == "&"
        is_piped = parent is not None and parent.type == "pipeline"
        self._forked += node.type in FORKING or in_background
        self._block = (*self._block, *branch_starts(node))
        if node.type in BRANCHES or in_background or is_piped:
            self._block = (*self._block, node.start_byte)

    def _read(self, node: Node) -> None:
        match node.type:
            case kind if kind in CONTAINERS:
                self._text.check_gaps(node.children)
                if kind == "while_statement" and ENDLESS.match(self._text.of(node)):
                    self._text.doubt("endless", "a loop that does not end by itself", node)
                if kind == "pipeline":
                    self._pipe(node, [node])
                if kind == "compound_statement" and node.children[0].type == "((":
                    self._arithmetic_command(node, node.children[0], node.children[-1])
                    return
                for child in node.children:
                    self._statement(child)
            case "command":
                self._append(self._commands.command(node))
            case "declaration_command":
                self._append(self._commands.declaration(node))
            case "c_style_for_statement":
                self._counting_loop(node)
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
            case "function_definition":
                self._function(node)
            case "file_redirect":
                found, words = self._commands.redirections([node], self._statement)
                if words or any(each.operator != "<" for each in found):
                    raise Misread("a redirection without a command")
                self._text.doubt(FILE_DOUBT, "a file is read without a command", node)
                self.parts.extend(replace(each, block=self._block) for each in found)
            case _:
                self._unknown(node)

    def _append(self, command: SimpleCommand) -> None:
        self.parts.append(replace(command, repeated=self._repeating > 0, block=self._block, forked=self._forked > 0))

    def _function(self, node: Node) -> None:
        """`name() { … }`: what it does is read in its place, and who judges the line decides whether that is enough."""
        self.defines += [self._text.of(child) for child in node.children if child.type == "word"]
        if [child.type for child in node.children] != ["word", "(", ")", "compound_statement"]:
            self._unknown(node)
            return
        name, body = self._text.of(node.children[0]), node.children[-1]
        if not FUNCTION.fullmatch(name) or body.children[0].type != "{":
            self._unknown(node)
            return
        self._text.check_gaps(node.children)
        self._text.doubt(FUNCTION_DOUBT, CONSTRUCTS["function_definition"], node)
        self.functions.append(ShellFunction(name=name, start=node.start_byte, end=node.end_byte))
        self._repeating += 1
        self._statement(body)

    def _pipe(self, node: Node, statements: list[Node]) -> None:
        """Note what feeds what; a statement that is no command or row of commands feeds something that is not known."""
        elements: tuple[tuple[int, int], ...] = ()
        if len(statements) == 1 and statements[0].type == "pipeline":
            named = [child for child in statements[0].children if child.is_named]
            elements = tuple((child.start_byte, child.end_byte) for child in named)
        elif len(statements) == 1 and statements[0].type in ("command", "redirected_statement"):
            elements = ((statements[0].start_byte, statements[0].end_byte),)
        self.pipes.append(Pipe(start=node.start_byte, end=node.end_byte, elements=elements))

    def _arithmetic(self, text: str, node: Node, *, is_command: bool = False) -> None:
        """What is between `((` and `))`: nothing that runs commands, as far as can be seen without its variables."""
        outputs = [child for child in node.children if child.type == "command_substitution"]
        outputs += [each for child in node.children for each in substitutions_below(child)]
        for each in dict.fromkeys(outputs):
            text = text.replace(self._text.of(each), "0", 1)
        text = re.sub(r"\$\{([A-Za-z_]\w*)\}", r"\1", text)
        if not ARITHMETIC.fullmatch(text) or EXPANDED_NAME.search(text):
            raise Misread(EVALUATES)
        sets = {first or second for first, second in SETS.findall(text)}
        self.parts.append(
            Arithmetic(
                names=tuple(dict.fromkeys(NAME.findall(text))),
                sets=tuple(sorted(sets)),
                text=f"(({text}))",
                start=node.start_byte,
                block=self._block,
                is_command=is_command,
                outputs=tuple(each.start_byte for each in dict.fromkeys(outputs)),
            )
        )

    def _arithmetic_command(self, node: Node, opening: Node, closing: Node) -> None:
        """`((…))`; the tree of a construct that is no arithmetic at all would look the same."""
        self._look_inside(node)
        if closing.type != "))" or self._text.of(node)[:2] != "((":
            raise Misread(EVALUATES)
        self._arithmetic(self._text.between(opening.end_byte, closing.start_byte), node, is_command=True)

    def _counting_loop(self, node: Node) -> None:
        """`for ((…; …; …))`."""
        self._text.check_gaps(node.children)
        kinds = [child.type for child in node.children]
        opening, closing = node.children[kinds.index("((")], node.children[kinds.index("))")]
        inside = self._text.between(opening.end_byte, closing.start_byte)
        if inside.count(";") != 2 or not inside.split(";")[1].strip():
            self._text.doubt("endless", "a loop that does not end by itself", node)
        self._arithmetic(inside.replace(";", ","), opening, is_command=True)
        for child in node.children[kinds.index("))") + 1 :]:
            self._statement(child)

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
        self._pipe(node, node.children[1:-1])
        outside = (self._forked, self._block)
        self._enter(node)
        for child in node.children[1:-1]:
            self._statement(child)
        self._forked, self._block = outside

    def _redirected(self, node: Node) -> None:
        """A statement with redirections behind it, or redirections alone."""
        dash = self._lost_dash(node)
        self._text.check_gaps(node.children if dash is None else node.children[1:])
        has_body = not node.children[0].type.endswith("_redirect")
        body = node.children[0] if has_body else None
        found, words = self._commands.redirections(node.children[has_body:], self._statement)
        if body is not None and body.type == "command":
            descriptor = self._commands.descriptor_of(body, node.children[1])
            if descriptor is not None:
                found[0] = replace(found[0], descriptor=self._text.of(descriptor), start=descriptor.start_byte)
            command = self._commands.command(body, words, found, without=descriptor)
            if dash is not None and words:
                raise Misread("words behind a here-document")
            self._append(command if dash is None else replace(command, words=(*command.words, dash)))
            return
        covers = (body.start_byte, body.end_byte) if body is not None else (0, 0)
        self.parts.extend(replace(each, covers=covers, block=self._block) for each in found)
        if body is not None:
            self._statement(body)
        if words:
            raise Misread("words behind a redirection belong to no command")

    def _lost_dash(self, node: Node) -> Word | None:
        """The `-` of `cat - <<E`, which the grammar leaves out of its tree."""
        first, *others = node.children
        if first.type != "command" or not others or others[0].type != "heredoc_redirect":
            return None
        gap = self._text.between(first.end_byte, others[0].start_byte)
        if not LOST_DASH.fullmatch(gap):
            return None
        start = first.end_byte + gap.index("-")
        return literal_word("-", start, start + 1)

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
        text = self._text.of(node)
        self.parts.append(Loop(name=name, words=tuple(words), text=text, start=node.start_byte, block=self._block))

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
        found = (self._commands.assignment(child, alone=True) for child in nodes)
        self.parts.extend(replace(each, block=self._block) for each in found)

    def _test(self, node: Node) -> None:
        """`[ … ]` is a command, `[[ … ]]` a condition, `(( … ))` arithmetic."""
        opening = node.children[0].type
        if opening == "((":
            self._arithmetic_command(node, node.children[0], node.children[-1])
            return
        if opening not in ("[", "[["):
            raise Misread("a test that is not understood")
        leaves = [leaf for child in node.children for leaf in leaves_of(child)]
        words = tuple(map(self._commands.word, leaves))
        text, start = self._text.of(node), node.start_byte
        if opening == "[":
            self._text.check_words(leaves)
            self._append(SimpleCommand(words=words, text=text, start=start))
        else:
            self._text.check_gaps(leaves)
            self.parts.append(Condition(words=words, text=text, start=start, block=self._block))

    def _comment(self, node: Node) -> None:
        text = self._text.of(node)
        before = self._text.between(node.start_byte - 1, node.start_byte) if node.start_byte else "\n"
        if not text.startswith("#") or "\n" in text or before not in " \t\n;&|(){}":
            raise Misread("a comment that may be none")


def branch_starts(node: Node) -> tuple[int, ...]:
    """Where the branches begin that a node is in by its place among its neighbours: behind `then`, `&&` and `||`."""
    before = node.prev_sibling
    if before is not None and before.type == "||":
        return (node.start_byte,)
    if before is not None and before.type == "&&":
        return (*chained(before.prev_sibling), node.start_byte)
    if node.parent is None or node.parent.type not in ("if_statement", "elif_clause"):
        return ()
    if node.type in ("elif_clause", "else_clause") or not node.is_named:
        return ()
    then = next((child for child in node.parent.children if child.type == "then"), None)
    return (then.start_byte,) if then is not None and then.start_byte < node.start_byte else ()


def chained(node: Node | None) -> tuple[int, ...]:
    """Where the commands begin that all have to run before what follows in `a && b && c`."""
    starts: list[int] = []
    while node is not None and node.type == "list" and len(node.children) == 3 and node.children[1].type == "&&":
        starts.insert(0, node.children[2].start_byte)
        node = node.children[0]
    return tuple(starts)


def leaves_of(node: Node) -> list[Node]:
    """The words and operators of a condition, in their order."""
    if node.type in EXPRESSIONS:
        return [leaf for child in node.children for leaf in leaves_of(child)]
    return [node]


def substitutions_below(node: Node) -> list[Node]:
    """The substitutions in a node that are in no other."""
    if node.type == "command_substitution":
        return [node]
    return [found for child in node.children for found in substitutions_below(child)]
