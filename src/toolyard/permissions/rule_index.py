"""All rules of an agent, arranged so that ten thousand are looked up as fast as ten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from toolyard.permissions.paths import PathIndex
from toolyard.permissions.patterns import CommandIndex, Found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.core.events import Decision
    from toolyard.permissions.rules import Rule


Access = Literal["read", "write"]


class RuleBook:
    """The rules, and what holds where none of them speaks."""

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        trusts: bool = False,
        otherwise: Decision = "ask",
        tools_otherwise: Decision = "ask",
        broken: str = "",
    ) -> None:
        self.trusts = trusts and not broken
        """Whether every command may run that no rule is against."""
        self.otherwise = otherwise
        """What becomes of a command that no rule allows."""
        self.tools_otherwise: Decision = "ask" if broken else tools_otherwise
        """What becomes of a call of another tool that no rule is about."""
        self.broken = broken
        """Why the rules cannot be relied on; nothing is allowed by them then."""
        self.rules = tuple(rule for rule in rules if not (broken and rule.decision == "allow"))
        self._commands: dict[Decision, CommandIndex[Rule]] = {key: CommandIndex() for key in ("allow", "ask", "deny")}
        self._files: dict[tuple[Decision, Access], PathIndex[Rule]] = {}
        self._tools: dict[str, list[Rule]] = {}
        self._tool_paths: dict[tuple[Decision, str], PathIndex[Rule]] = {}
        for rule in self.rules:
            self._add(rule)
        self.refuses_files = any(decision != "allow" for decision, _ in self._files)
        """Whether there are rules against files."""
        self.refuses = self.refuses_files or not (self._commands["deny"].is_empty and self._commands["ask"].is_empty)
        """Whether a command could be asked about or refused by a rule, so that what is unproven matters."""

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

    def extended(self, rules: Iterable[Rule]) -> RuleBook:
        """The same book with further rules."""
        return RuleBook(
            [*self.rules, *rules],
            trusts=self.trusts,
            otherwise=self.otherwise,
            tools_otherwise=self.tools_otherwise,
            broken=self.broken,
        )

    def trusts_tool(self, tool: str) -> bool:
        """Whether every command of a tool may run that no rule is against."""
        return self.trusts or self.whole_tool("allow", tool) is not None

    def commands(self, decision: Decision, words: Sequence[Word], tool: str) -> list[Found[Rule]]:
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

    def whole_tool(self, decision: Decision, tool: str) -> Rule | None:
        """The rule about every call of a tool."""
        for rule in self._of_tool(tool):
            if rule.decision == decision and not rule.arguments:
                return rule
        return None

    def by_arguments(self, decision: Decision, tool: str) -> Iterator[Rule]:
        """The rules about calls of a tool with certain arguments."""
        return (rule for rule in self._of_tool(tool) if rule.decision == decision and rule.arguments)

    def tool_path(self, decision: Decision, tool: str, path: str, workspace: str) -> Rule | None:
        """The rule about calls of a tool with a path."""
        for name in (tool, "*"):
            index = self._tool_paths.get((decision, name))
            if index is not None and (rule := next(index.find(path, workspace), None)):
                return rule
        return None

    def _of_tool(self, tool: str) -> list[Rule]:
        return [*self._tools.get(tool, ()), *self._tools.get("*", ())]
