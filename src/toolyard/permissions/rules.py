"""Rules: which calls are allowed, asked about or refused, where each is written, and all of them ready to be found."""

from __future__ import annotations

import copy
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from toolyard.core.problems import Problem
from toolyard.core.reach import NAMED_REACHES, Reach, is_beyond
from toolyard.core.regexes import late_pattern
from toolyard.permissions.paths import PathIndex, parse_path_pattern
from toolyard.permissions.patterns import (
    ANY_WORD,
    CommandPattern,
    Glob,
    bad_rule,
    is_subsequence,
    letters_of,
    parse_pattern,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.config.document import Document
    from toolyard.core.events import Decision
    from toolyard.core.json_values import Pointer
    from toolyard.core.tool import Json


Access = Literal["read", "write"]
TOP: tuple[str, ...] = ()
"""The pattern of the workspace itself."""
PRESET = "preset "
KEYS = frozenset(
    {"tool", "server", "command", "write", "read", "path", "arguments", "reach", "reason", "host", "folder"}
)


HOST = late_pattern(r"(?:(?:\*\.)?[^\s/:*.@\[\]][^\s/:*@\[\]]*|\[[0-9A-Fa-f:.%]+\])(?::\d{1,5})?|@[\w-]+")
"""How a host is spelled in rules, as in `sandbox.hosts`."""


class RuleOrigin(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Where a rule comes from; the line in a file is looked up only when it is shown."""

    label: str
    is_answer: bool = False
    """Whether it was kept of an answer to a question about one call."""
    document: Document | None = None
    pointer: Pointer = ()

    @property
    def is_preset(self) -> bool:
        """Whether nobody wrote it but us."""
        return self.label.startswith(PRESET)

    def __str__(self) -> str:
        return self._shown

    @cached_property
    def _shown(self) -> str:
        return str(self.document.position(self.pointer)) if self.document else self.label


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. Without any pattern it is about every call of its tool."""

    decision: Decision
    text: str
    origin: RuleOrigin
    tool: str | None = None
    """None for every tool that runs shell commands."""
    server: str | None = None
    """Whose tool it has to be: a server's name, or `NAME#MADE_OF`; empty for tools of no server, None for any."""
    command: CommandPattern | None = None
    write: tuple[str, ...] | None = None
    read: tuple[str, ...] | None = None
    path: tuple[str, ...] | None = None
    arguments: dict[str, tuple[str, ...] | str] = msgspec.field(default_factory=dict)
    """For each named argument a path pattern, or a text with `*`."""
    host: str | None = None
    """A host that may be reached, or not, as `sandbox.hosts` spells it."""
    reason: str = ""
    reach: Reach | None = None
    """How far what it allows may reach; None for as far as the preset lets calls reach."""
    folder: tuple[str, ...] | None = None
    """The folders in which what it allows may run, as a pattern of paths; None for any. What reaches outside of the
    sandbox does what lies in its folder says, so without another word it is the top of the workspace alone."""
    confined: bool = False
    """Of a preset: holds only where every path among the arguments is inside the workspace."""

    def why(self) -> str:
        """What a model is told that runs into the rule."""
        return self.reason or f"the rule '{self.decision} {self.text}' ({self.origin})"

    def is_about(self, server: str) -> bool:
        """Whether it is about tools of a server, as `NAME#MADE_OF`, or, where that is empty, of none."""
        return self.server is None or self.server == server or (self.server or "#") == server.partition("#")[0]


def parse_rule(value: Json, decision: Decision, origin: RuleOrigin, *, confined: bool = False) -> Rule | Problem:
    """A rule as it is written: a text is a pattern of commands, an object says more."""
    if isinstance(value, str):
        value = {"command": value}
    if not isinstance(value, dict):
        return bad_rule("a rule is a text, such as 'git status **', or an object")
    fields = read_fields(value)
    if isinstance(fields, Problem):
        return fields
    reaches_out = decision == "allow" and fields.get("reach") == "outside"
    if "folder" in fields and not reaches_out:
        return bad_rule("'folder' is for rules that allow something with the reach 'outside'")
    if reaches_out:
        fields.setdefault("folder", TOP)
    return Rule(decision=decision, text=text_of(value), origin=origin, confined=confined, **fields)


def valid_rules(
    values: Iterable[Json], decision: Decision, origin: RuleOrigin, *, confined: bool = False
) -> list[Rule]:
    """The rules among values that we wrote ourselves, or that were checked before."""
    rules = (parse_rule(value, decision, origin, confined=confined) for value in values)
    return [rule for rule in rules if isinstance(rule, Rule)]


def kept_rules(values: Iterable[Json], decision: Decision, origin: RuleOrigin) -> list[Rule]:
    """Those that answers left: about the tool that was asked about, and not about one of a server that has its name."""
    rules = valid_rules(values, decision, origin)
    return [replace(rule, server="") if rule.tool and rule.server is None else rule for rule in rules]


def read_fields(value: dict[str, Json]) -> dict[str, Any] | Problem:
    if unknown := [key for key in value if key not in KEYS]:
        return bad_rule(f"a rule has no '{unknown[0]}'; it has {', '.join(sorted(KEYS))}")
    fields: dict[str, Any] = {}
    for key in ("tool", "server", "command", "write", "read", "path", "host", "reason", "folder"):
        if key not in value:
            continue
        text = value[key]
        if not isinstance(text, str) or not text.strip():
            return bad_rule(f"'{key}' must be a text that is not empty")
        fields[key] = text
    for key, parse in (
        ("command", parse_pattern),
        ("write", parse_path_pattern),
        ("read", parse_path_pattern),
        ("path", parse_path_pattern),
        ("folder", parse_path_pattern),
    ):
        if key in fields:
            fields[key] = parse(fields[key])
            if isinstance(fields[key], Problem):
                return bad_rule(f"'{key}': {fields[key].message}")
    if "reach" in value:
        if value["reach"] not in NAMED_REACHES:
            return bad_rule(f"'reach' must be one of {', '.join(NAMED_REACHES)}")
        fields["reach"] = value["reach"]
    arguments = read_arguments(value.get("arguments", {}))
    if isinstance(arguments, Problem):
        return arguments
    return check_combination({**fields, "arguments": arguments})


def read_arguments(value: Json) -> dict[str, tuple[str, ...] | str] | Problem:
    if not isinstance(value, dict):
        return bad_rule("'arguments' must be an object of patterns")
    found: dict[str, tuple[str, ...] | str] = {}
    for name, pattern in value.items():
        if isinstance(pattern, dict) and list(pattern) == ["path"] and isinstance(pattern["path"], str):
            parsed = parse_path_pattern(pattern["path"])
            if isinstance(parsed, Problem):
                return bad_rule(f"'arguments.{name}': {parsed.message}")
            found[name] = parsed
        elif isinstance(pattern, str):
            found[name] = pattern
        else:
            return bad_rule(f"'arguments.{name}' must be a text with '*', or {{\"path\": …}}")
    return found


def check_combination(fields: dict[str, Any]) -> dict[str, Any] | Problem:
    """A rule is about a command, about a file that a command touches, or about a tool."""
    of_shell = [key for key in ("command", "write", "read") if key in fields]
    of_tool = [key for key in ("path", "arguments") if fields.get(key)]
    if "host" in fields and not HOST.fullmatch(fields["host"]):
        return bad_rule(
            f"'{fields['host']}' is no host: write 'example.com', '*.example.com', '[::1]:8443' or '@python'"
        )
    if "host" in fields:
        others = [*of_shell, *of_tool, *(key for key in ("tool", "server") if key in fields)]
        return bad_rule(f"'host' and '{others[0]}' are two rules") if others else fields
    if "server" in fields and (of_shell or "tool" not in fields):
        return bad_rule("'server' is about a tool that runs no command, which 'tool' names; all of a server's are '*'")
    if len(of_shell) > 1 or (of_shell and of_tool):
        return bad_rule(f"'{of_shell[0]}' and '{(of_shell + of_tool)[1]}' are two rules")
    if not of_shell and "tool" not in fields:
        return bad_rule("a rule needs 'tool', 'command', 'write', 'read' or 'host'")
    return fields


def text_of(value: dict[str, Json]) -> str:
    shown = {key: part for key, part in value.items() if key not in ("reach", "reason", "folder")}
    where = f" in {value['folder']}" if value.get("folder", ".") != "." else ""
    reach = f" ({value['reach']}{where})" if value.get("reach", "work") != "work" else ""
    if list(shown) == ["command"]:
        return f"{shown['command']}{reach}"
    return " ".join(f"{key}={part}" for key, part in shown.items()) + reach


class RuleBook:
    """All rules of an agent, and what holds where none fits; ten thousand are looked up as fast as ten."""

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        trusts: bool = False,
        kept_in: bool = False,
        otherwise: Decision = "ask",
        tools_otherwise: Decision = "ask",
        usual_reach: Reach = "work",
        broken: str = "",
        is_allowlist: bool = False,
        operators: bool = True,
        is_kept: bool = False,
        closes: bool = False,
    ) -> None:
        self.trusts = trusts and not broken
        """Whether every command may run that no rule is against."""
        self.kept_in = kept_in
        """Whether a sandbox keeps what it trusts in, so that a program need not be known to be let run."""
        self.otherwise = otherwise
        """What becomes of a command that no rule allows."""
        self.tools_otherwise: Decision = "ask" if broken else tools_otherwise
        """What becomes of a call of another tool that no rule is about."""
        self.usual_reach: Reach = usual_reach
        """How far a call reaches where no rule says otherwise."""
        self.broken = broken
        """Why the rules cannot be relied on; nothing is allowed by them then."""
        self.is_allowlist = is_allowlist
        """Whether the rules are a list of programs, by which a refusal is told."""
        self.operators = operators
        """Whether a line may be more than one command with its words."""
        self.closes = closes
        """Whether what nobody vouches for may look where there is nothing to see but the workspace."""
        self.is_kept = is_kept
        """Whether a sandbox wholly keeps in what a preset lets run, so that it need not be proven harmless."""
        self.rules = tuple(rule for rule in rules if not (broken and rule.decision == "allow"))
        self._commands: dict[Decision, CommandIndex] = {key: CommandIndex() for key in ("allow", "ask", "deny")}
        self._files: dict[tuple[Decision, Access], PathIndex[Rule]] = {}
        self._tools: dict[str, list[Rule]] = {}
        self._tool_paths: dict[tuple[Decision, str], PathIndex[Rule]] = {}
        for rule in self.rules:
            self._add(rule)
        self.refuses_files = any(decision != "allow" for decision, _ in self._files)
        """Whether there are rules against files."""
        self.refuses = self.refuses_files or not (self._commands["deny"].is_empty and self._commands["ask"].is_empty)
        """Whether a command could be asked about or refused by a rule, so that what is unproven matters."""
        self.bound = tuple(rule for rule in self.rules if rule.folder is not None)
        """Those that hold in certain folders only."""
        self._holding: dict[tuple[bool, ...], RuleBook] = {}
        self.confines = any(rule.confined for rule in self.rules)
        """Whether a preset says what a line may look at, so that what only the line itself sees is free."""

    def _add(self, rule: Rule) -> None:
        if rule.command is not None:
            self._commands[rule.decision].add(rule.command, rule)
        elif rule.write is not None:
            self._files.setdefault((rule.decision, "write"), PathIndex()).add(rule.write, rule)
        elif rule.read is not None:
            self._files.setdefault((rule.decision, "read"), PathIndex()).add(rule.read, rule)
        elif rule.path is not None and rule.tool is not None:
            self._tool_paths.setdefault((rule.decision, rule.tool), PathIndex()).add(rule.path, rule)
        elif rule.tool is not None:
            self._tools.setdefault(rule.tool, []).append(rule)

    def holding_in(self, folders: Sequence[str] | None, workspace: str) -> RuleBook:
        """What is left of them for a line that runs in these folders; None where it is not certain in which."""
        holds = tuple(folders is not None and holds_in(rule, folders, workspace) for rule in self.bound)
        if all(holds):
            return self
        if holds not in self._holding:
            lost = [rule for rule, fits in zip(self.bound, holds, strict=True) if not fits]
            self._holding[holds] = self._with_rules(rule for rule in self.rules if all(rule is not one for one in lost))
        return self._holding[holds]

    def _with_rules(self, rules: Iterable[Rule]) -> RuleBook:
        return RuleBook(
            rules,
            trusts=self.trusts,
            kept_in=self.kept_in,
            otherwise=self.otherwise,
            tools_otherwise=self.tools_otherwise,
            usual_reach=self.usual_reach,
            broken=self.broken,
            is_allowlist=self.is_allowlist,
            operators=self.operators,
            is_kept=self.is_kept,
            closes=self.closes,
        )

    def extended(self, rules: Iterable[Rule], *, broken: str = "", operators: bool | None = None) -> RuleBook:
        return RuleBook(
            [*self.rules, *rules],
            trusts=self.trusts,
            kept_in=self.kept_in,
            otherwise=self.otherwise,
            tools_otherwise=self.tools_otherwise,
            usual_reach=self.usual_reach,
            broken=broken or self.broken,
            is_allowlist=self.is_allowlist,
            operators=self.operators if operators is None else operators,
            is_kept=self.is_kept,
            closes=self.closes,
        )

    def reaching(self, reach: Reach | None) -> RuleBook:
        """What is left of them for a call that says how far it wants to reach: rules for that reach."""
        if reach is None:
            return self
        if not is_beyond(reach, self.usual_reach):
            return self._without_lower if reach == self.usual_reach else self._not_closed
        rules = [rule for rule in self.rules if rule.decision != "allow" or not is_beyond(reach, rule.reach or "look")]
        return RuleBook(
            rules,
            otherwise=self.otherwise,
            usual_reach=self.usual_reach,
            broken=self.broken,
            is_allowlist=self.is_allowlist,
            operators=self.operators,
        )

    @cached_property
    def _not_closed(self) -> RuleBook:
        """The same for a call that says how far it wants to look."""
        if not self.closes:
            return self
        book = copy.copy(self)
        book.closes = False
        return book

    @cached_property
    def _without_lower(self) -> RuleBook:
        """The same for a call that wants all of its usual reach: a preset's rule for less of it is not meant then."""
        usual = self.usual_reach
        lower = [rule for rule in self.rules if rule.confined and rule.reach and is_beyond(usual, rule.reach)]
        if not lower:
            return self._not_closed
        return RuleBook(
            [rule for rule in self.rules if rule not in lower],
            trusts=self.trusts,
            kept_in=self.kept_in,
            otherwise=self.otherwise,
            tools_otherwise=self.tools_otherwise,
            usual_reach=usual,
            broken=self.broken,
            is_allowlist=self.is_allowlist,
            operators=self.operators,
        )

    def trusts_tool(self, tool: str) -> bool:
        """Whether every command of a tool may run that no rule is against."""
        return self.trusts or self.whole_tool("allow", tool) is not None

    def commands(self, decision: Decision, words: Sequence[Word], tool: str) -> list[RuleMatch]:
        """The rules of a decision whose pattern fits, or may fit, a command."""
        index = self._commands[decision]
        if index.is_empty:
            return []
        return [found for found in index.find(words) if found.rule.tool is None or found.rule.tool == tool]

    def resembling(self, decision: Decision, words: Sequence[Word], tool: str) -> Rule | None:
        """A rule that may be meant although its pattern does not fit."""
        for rule, _ in self._commands[decision].resembling(words):
            if rule.tool in (None, tool):
                return rule
        return None

    def file(self, decision: Decision, access: Access, path: str, workspace: str, tool: str) -> Rule | None:
        """The rule of a decision about reading or writing a file."""
        index = self._files.get((decision, access))
        if index is not None:
            for rule in index.find(path, workspace):
                if rule.tool in (None, tool):
                    return rule
        return None

    def hosts(self, decision: Decision) -> list[str]:
        """The hosts that rules of a decision name."""
        return [rule.host for rule in self.rules if rule.decision == decision and rule.host is not None]

    def whole_tool(self, decision: Decision, tool: str, server: str = "") -> Rule | None:
        """The rule about every call of a tool."""
        for rule in self._of_tool(tool, server):
            if rule.decision == decision and not rule.arguments:
                return rule
        return None

    def by_arguments(self, decision: Decision, tool: str, server: str = "") -> Iterator[Rule]:
        """The rules about calls of a tool with certain arguments."""
        return (rule for rule in self._of_tool(tool, server) if rule.decision == decision and rule.arguments)

    def tool_path(self, decision: Decision, tool: str, path: str, workspace: str, server: str = "") -> Rule | None:
        """The rule about calls of a tool with a path."""
        for name in (tool, "*"):
            index = self._tool_paths.get((decision, name))
            for rule in index.find(path, workspace) if index is not None else ():
                if rule.is_about(server):
                    return rule
        return None

    def _of_tool(self, tool: str, server: str) -> list[Rule]:
        rules = (*self._tools.get(tool, ()), *self._tools.get("*", ()))
        return [rule for rule in rules if rule.is_about(server)]


def holds_in(rule: Rule, folders: Sequence[str], workspace: str) -> bool:
    """Whether a rule holds in each of some absolute folders, wherever links on their way lead."""
    if rule.folder is None or (rule.folder == TOP and all(folder == workspace for folder in folders)):
        return True
    index: PathIndex[Rule] = PathIndex()
    index.add(rule.folder, rule)
    top = os.path.realpath(workspace)
    return all(any(index.find(os.path.realpath(folder), top)) for folder in folders)


class RuleMatch(msgspec.Struct, frozen=True):
    """A rule whose pattern fits; for certain, or depending on what bash makes of the words."""

    rule: Rule
    pattern: CommandPattern
    certain: bool


class CommandNode(msgspec.Struct):
    """All patterns that begin alike."""

    words: dict[str, CommandNode] = msgspec.field(default_factory=dict)
    globs: list[tuple[Glob, CommandNode]] = msgspec.field(default_factory=list)
    exact: list[tuple[Rule, CommandPattern]] = msgspec.field(default_factory=list)
    rest: list[tuple[Rule, CommandPattern]] = msgspec.field(default_factory=list)


class CommandIndex:
    """Finds the patterns that fit a command in the time its words take, however many patterns there are."""

    def __init__(self) -> None:
        self._root = CommandNode()
        self._second: dict[tuple[str, str], list[tuple[Rule, CommandPattern]]] = {}
        self.is_empty = True

    def add(self, pattern: CommandPattern, rule: Rule) -> None:
        self.is_empty = False
        node = self._root
        for word in pattern.words:
            if isinstance(word, str):
                node = node.words.setdefault(word, CommandNode())
            else:
                node.globs.append((word, CommandNode()))
                node = node.globs[-1][1]
        (node.rest if pattern.rest else node.exact).append((rule, pattern))
        if len(pattern.words) > 1 and isinstance(pattern.words[0], str) and isinstance(pattern.words[1], str):
            second = "-" if pattern.words[1].startswith("-") else pattern.words[1]
            self._second.setdefault((pattern.words[0], second), []).append((rule, pattern))

    def find(self, words: Sequence[Word]) -> list[RuleMatch]:
        """All that fit, an exact one before those that let others follow."""
        found: list[RuleMatch] = []
        self._find(self._root, words, 0, True, found)
        return found

    def resembling(self, words: Sequence[Word]) -> Iterator[tuple[Rule, CommandPattern]]:
        """Patterns that may be meant although they do not fit: options are between their words, or written apart."""
        values = [word.value for word in words]
        name = values[0]
        if name is None or not self._second:
            return
        for value in values[1:]:
            if value is not None and not value.startswith("-"):
                for rule, pattern in self._second.get((name, value), ()):
                    if is_subsequence(pattern.words, values):
                        yield rule, pattern
        for rule, pattern in self._second.get((name, "-"), ()):
            if letters_of(pattern.words[1:]) <= letters_of(values[1:]):
                yield rule, pattern

    def _find(self, node: CommandNode, words: Sequence[Word], at: int, certain: bool, found: list[RuleMatch]) -> None:
        if at == len(words):
            found += [RuleMatch(rule, pattern, certain) for rule, pattern in node.exact]
        elif (value := words[at].value) is None:
            self._find_uncertain(node, words, at, certain, found)
        else:
            if (below := node.words.get(value)) is not None:
                self._find(below, words, at + 1, certain, found)
            for glob, below in node.globs:
                if glob.pattern.fullmatch(value):
                    self._find(below, words, at + 1, certain, found)
        found += [RuleMatch(rule, pattern, certain) for rule, pattern in node.rest]

    def _find_uncertain(
        self, node: CommandNode, words: Sequence[Word], at: int, certain: bool, found: list[RuleMatch]
    ) -> None:
        """Only bash knows the word: whatever goes on from here may fit, and of that the first is enough."""
        for glob, below in node.globs:
            if glob.pattern.pattern == ANY_WORD and not words[at].splits:
                self._find(below, words, at + 1, certain, found)
        if (first := first_below(node)) is not None:
            found.append(RuleMatch(*first, False))


def first_below(node: CommandNode) -> tuple[Rule, CommandPattern] | None:
    """Any pattern that goes on from here."""
    if node.exact:
        return node.exact[0]
    for below in (*node.words.values(), *(below for _, below in node.globs)):
        if below.rest:
            return below.rest[0]
        if (found := first_below(below)) is not None:
            return found
    return None
