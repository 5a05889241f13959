"""The verdict on a call of a tool that runs no shell command: by its name, its arguments, and the paths among them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.visible_text import escaped
from toolyard.permissions.paths import PathIndex, is_inside, resolved
from toolyard.permissions.programs.known import names
from toolyard.permissions.verdict import Judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.events import Decision
    from toolyard.core.tool import Json, JsonObject
    from toolyard.permissions.rule_index import RuleBook
    from toolyard.permissions.rules import Rule


PATH_ARGUMENTS = names("""
    path paths file files filename filenames filepath filepaths dir dirs directory directories folder folders root cwd
    target targets targetpath targetfile targetdirectory destination dest dst destinationpath destpath output outputpath
    outputfile outputdir source src sourcepath sourcefile from to oldpath newpath frompath topath absolutepath
    relativepath notebookpath workingdirectory
""")
"""The names under which tools take the files that they are about, in small letters and without underscores."""
DEEPEST = 8
AGAINST: tuple[Decision, ...] = ("deny", "ask")


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool, as far as rules look at it."""

    tool: str
    arguments: JsonObject
    cwd: str
    workspace: str
    protected: Sequence[str] = ()
    """Files that hold the rules themselves."""
    read_only: bool = False

    @property
    def paths(self) -> list[str]:
        """The files it is about, each as it is written and where it leads."""
        return [name for path in paths_of(self.arguments) for name in resolved(path, self.cwd)]


def judge_tool(use: ToolUse, book: RuleBook) -> Judged:
    """Deny before ask before allow, over the tool, its arguments and its paths."""
    for decision in AGAINST:
        if rule := against(decision, use, book):
            return judged(use.tool, decision, rule.why(), rule)
    touched = next((path for path in use.paths if any(is_inside(path, own) for own in use.protected)), None)
    if touched and not use.read_only and not book.trusts:
        return judged(use.tool, "ask", f"'{touched}' holds the rules themselves")
    if rule := allowed_by(use, book):
        return judged(use.tool, "allow", f"the rule '{rule.text}'", rule)
    if book.tools_otherwise == "allow":
        return judged(use.tool, "allow", "it was configured, and no rule is against it")
    return judged(use.tool, book.tools_otherwise, f"no rule allows it{'; ' + book.broken if book.broken else ''}")


def against(decision: Decision, use: ToolUse, book: RuleBook) -> Rule | None:
    """A rule that one path, or all its arguments, run into."""
    if rule := book.whole_tool(decision, use.tool):
        return rule
    for path in use.paths:
        if rule := book.tool_path(decision, use.tool, path, use.workspace):
            return rule
    return next((rule for rule in book.by_arguments(decision, use.tool) if fits(rule, use)), None)


def allowed_by(use: ToolUse, book: RuleBook) -> Rule | None:
    """A rule that covers the whole call: every path of it, by each of its names."""
    if rule := book.whole_tool("allow", use.tool):
        return rule
    rules = [book.tool_path("allow", use.tool, path, use.workspace) for path in use.paths]
    if rules and all(rules):
        return rules[0]
    return next((rule for rule in book.by_arguments("allow", use.tool) if fits(rule, use)), None)


def paths_of(arguments: Json, depth: int = 0) -> list[str]:
    """The paths among a call's arguments, however deep; what only may be one counts: a rule has to cover it, too."""
    found: list[str] = []
    if isinstance(arguments, list) and depth < DEEPEST:
        found += [path for item in arguments for path in paths_of(item, depth + 1)]
    elif isinstance(arguments, dict) and depth < DEEPEST:
        for name, value in arguments.items():
            if name.replace("_", "").replace("-", "").lower() in PATH_ARGUMENTS:
                found += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
            found += paths_of(value, depth + 1)
    return found


def fits(rule: Rule, use: ToolUse) -> bool:
    """Whether every argument that a rule names is there and fits."""
    given = use.arguments
    return all(name in given and fits_value(pattern, given[name], use) for name, pattern in rule.arguments.items())


def fits_value(pattern: tuple[str, ...] | str, value: Json, use: ToolUse) -> bool:
    text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(pattern, str):
        return bool(text_pattern(pattern).fullmatch(text))
    index: PathIndex[bool] = PathIndex()
    index.add(pattern, True)
    return all(any(index.find(name, use.workspace)) for name in resolved(text, use.cwd))


@lru_cache(maxsize=1024)
def text_pattern(pattern: str) -> re.Pattern[str]:
    """A text in which `*` stands for any characters."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*"), re.DOTALL)


def judged(tool: str, decision: Decision, reason: str, rule: Rule | None = None) -> Judged:
    """A verdict on a tool as a whole."""
    return Judged(
        text=escaped(tool),
        kind="tool",
        decision=decision,
        reason=reason,
        rule=rule.text if rule else None,
        origin=rule.origin if rule else None,
    )
