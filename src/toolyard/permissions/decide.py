"""The verdict on a call: on the command line that it runs, or on its tool, arguments and paths when it runs none."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from toolyard.bash.syntax.cross_check import shfmt_agrees
from toolyard.bash.syntax.operators import first_operator
from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.reading import SimpleCommand
from toolyard.core.regexes import late_pattern, star_pattern
from toolyard.core.tool import OWN
from toolyard.core.visible_text import escaped
from toolyard.files.inside import is_inside
from toolyard.permissions.expansion.folders import CHANGES_FOLDER
from toolyard.permissions.expansion.line import ExpandedLine
from toolyard.permissions.file_access import AGAINST, LATER_RUN, CallSite
from toolyard.permissions.judge import judge_line, judged_as
from toolyard.permissions.offers import bound_to_folder, derive_offers
from toolyard.permissions.paths import PathIndex, resolved
from toolyard.permissions.programs.categories import names, program_name
from toolyard.permissions.programs.git_options import GLOBALS
from toolyard.permissions.programs.listings.closed import CLOSED
from toolyard.permissions.rules import text_of
from toolyard.permissions.verdict import Judged, Offer, Verdict

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from toolyard.core.events import Decision
    from toolyard.core.reach import Reach
    from toolyard.core.tool import Json, JsonObject
    from toolyard.permissions.judge import LineVerdict
    from toolyard.permissions.rules import Rule, RuleBook
    from toolyard.permissions.verdict import PermissionRequest


DIFFERENT = "a second reader of the line does not see the same commands"
MAY_MOVE = late_pattern(r"cd|pushd|popd|-C|[\\'\"`$*?\[{]")
"""A line without any of these changes its folder in no spelling."""
PATH_ARGUMENTS = names("""
    path paths file files filename filenames filepath filepaths dir dirs dirpath directory directories folder
    folders root cwd target targets targetpath targetfile targetdirectory destination dest dst destinationpath
    destpath output outputpath outputfile outputdir source src sourcepath sourcefile from to oldpath newpath
    frompath topath absolutepath relativepath notebookpath workingdirectory
""")
"""The names under which tools take the files that they are about, in small letters and without underscores."""


async def decide_request(request: PermissionRequest, book: RuleBook, site: CallSite) -> Verdict:
    """The verdict on a call, as it may be shown and kept."""
    command = request.plan.command
    if command is None:
        verdict = decide_tool(request, book, site)
    else:
        verdict = await decide_line(command, book, site, wanted=request.plan.reach)
    return without_secrets(verdict, request.redact)


async def decide_line(text: str, book: RuleBook, site: CallSite, *, wanted: Reach | None = None) -> Verdict:
    """The verdict on a command line; beyond plain words, it is allowed only if shfmt reads the same commands in it.

    `wanted` is the reach that the call asks for: what would be kept of an answer is for that.
    """
    shown = escaped(text)
    if book.bound:
        book = book.holding_in(folders_of(text, site), site.workspace)
    if rule := book.whole_tool("deny", site.tool) or book.whole_tool("ask", site.tool):
        part = judged_tool(site.tool, rule.decision, rule.why(), rule)
        return Verdict(decision=rule.decision, reason=part.reason, rule=rule.text, parts=(part,), shown=shown)
    found = judge_line(text, book, site)
    if not book.operators and (operator := first_operator(text)) and is_listed(found):
        named = "newline" if operator == "\n" else escaped(operator)
        reason = f"Shell operator '{named}' is not allowed"
        doubt = Judged(text=shown, kind="doubt", decision="deny", reason=reason, doubt="operator")
        return Verdict(decision="deny", reason=reason, parts=(*found.parts, doubt), shown=shown)
    inner = found.texts if found.decision == "allow" else ()
    agree = [await shfmt_agrees(each) for each in ((text,) if found.needs_cross_check else ()) + inner]
    if not all(agree) and book.closes and not book.refuses:
        # Whichever of the two is right: there is nothing to change, and nothing of others to see.
        closed = judged_as("allow", text, "doubt", f"the rule '{CLOSED.text}'", rule=CLOSED)
        return Verdict(
            decision="allow", reason=closed.reason, rule=CLOSED.text, parts=(*found.parts, closed), shown=shown
        )
    if not all(agree):
        doubt = Judged(text=shown, kind="doubt", decision=book.otherwise, reason=DIFFERENT, doubt="second_reader")
        return Verdict(decision=book.otherwise, reason=DIFFERENT, parts=(*found.parts, doubt), shown=shown)
    decided_by = next((part.rule for part in found.parts if part.decision == found.decision and part.rule), None)
    offers = derive_offers(found, book, site, wanted) if found.decision == "ask" else ()
    if wanted == "outside" and offers:
        from toolyard.permissions.folders.outside_look import why_answer_is_not_enough

        if why_answer_is_not_enough(text, site):
            offers = ()
        offers = bound_to_folder(offers, folders_of(text, site), site.workspace)
    return Verdict(
        decision=found.decision, reason=found.reason, rule=decided_by, parts=found.parts, offers=offers, shown=shown
    )


def folders_of(text: str, site: CallSite) -> Sequence[str] | None:
    """All folders that the commands of a line run in, but for those that only change it; None where not certain."""
    if not MAY_MOVE.search(text):
        return (site.cwd,)
    line = ExpandedLine(read_line(text), site.cwd, site.workspace, site.shell)
    reading = line.reading()
    if any(command.name == "builtin" for command in reading.commands):  # which may be followed by one that does
        return None
    found: dict[str, None] = {}
    for part in reading.parts:
        if isinstance(part, SimpleCommand) and part.name in CHANGES_FOLDER:
            continue
        where, to = line.where(part.start), git_folders(part) if isinstance(part, SimpleCommand) else []
        if not where.certain or to is None:
            return None
        found |= dict.fromkeys(os.path.normpath(os.path.join(folder, *to)) for folder in where.folders)
    return tuple(found) or (site.cwd,)


def git_folders(command: SimpleCommand) -> list[str] | None:
    """The folders that git is told to go to before it does anything, one after the other; None where not certain."""
    named = GLOBALS.scan(command.words[1:]).values("C") if program_name(command.name) == "git" else []
    return [name for name in named if name is not None] if None not in named else None


def is_listed(found: LineVerdict) -> bool:
    """Whether the first command of a line may run by itself; if not, that is what there is to tell."""
    return next((part.decision != "deny" for part in found.parts if part.kind == "command"), True)


def without_secrets(verdict: Verdict, redact: Callable[[str], str]) -> Verdict:
    """The verdict as it may be shown and kept: known secrets taken out, and no rule offered that would hold one."""
    if verdict.decision == "allow":
        return verdict
    parts = tuple(replace(part, text=redact(part.text), reason=redact(part.reason)) for part in verdict.parts)
    holds_secret = any(redact(offer.shown) != offer.shown for offer in verdict.offers)
    offers = tuple(replace(offer, source=redact(offer.source)) for offer in verdict.offers)
    return replace(
        verdict,
        reason=redact(verdict.reason),
        parts=parts,
        offers=() if holds_secret else offers,
        shown=redact(verdict.shown),
    )


class ToolUse(CallSite, frozen=True, kw_only=True):
    """A call of a tool that runs no command line, as far as rules look at it."""

    arguments: JsonObject
    server: str = ""
    """Of which server the tool is."""
    named: Sequence[str] = ()
    """Files that it is about beside those that its arguments name."""
    read_only: bool = False
    is_own: bool = False
    """Whether it is the application's own: it reads what that keeps, or leads to calls that have verdicts."""
    only_looks: bool = False
    """Whether it wants no more than a sandbox in which nothing can be changed."""
    changes: bool = False
    """Whether it says that it changes the files that it names."""

    @property
    def paths(self) -> list[str]:
        """The files it is about, each as it is written and where it leads."""
        told = dict.fromkeys((*paths_of(self.arguments), *self.named))
        return [name for path in told for name in resolved(path, self.cwd)]


def decide_tool(request: PermissionRequest, book: RuleBook, site: CallSite) -> Verdict:
    hints = request.tool.hints
    plan = request.plan
    if book.bound:
        book = book.holding_in((site.cwd,), site.workspace)
    use = ToolUse(
        **asdict(site),
        arguments=plan.arguments,
        server=plan.server,
        named=plan.paths,
        read_only=hints.read_only,
        only_looks=plan.reach == "look",
        changes=plan.reach == "work" and bool(plan.paths),
        is_own=request.kind == OWN,
    )
    part = judge_tool(use, book)
    offers: tuple[Offer, ...] = ()
    # A rule for a tool is for all its arguments, which outside of the sandbox nothing bounds.
    if part.decision == "ask" and part.rule is None and not hints.destructive and plan.reach != "outside":
        rule = {"tool": site.tool, **({"server": plan.server} if plan.server else {})}
        offers = (Offer(rule=rule, text=text_of(rule), source=site.tool),)
    return Verdict(decision=part.decision, reason=part.reason, rule=part.rule, parts=(part,), offers=offers)


def judge_tool(use: ToolUse, book: RuleBook) -> Judged:
    """Deny before ask before allow, over the tool, its arguments and its paths."""
    for decision in AGAINST:
        if rule := rule_against(decision, use, book):
            return judged_tool(use.tool, decision, rule.why(), rule)
    touched = next((path for path in use.paths if any(is_inside(path, own) for own in use.protected)), None)
    if touched and not use.read_only and not book.trusts:
        return judged_tool(use.tool, "ask", f"'{touched}' holds the rules themselves")
    if use.changes and not book.trusts and (later := next(filter(LATER_RUN.search, use.paths), None)):
        return judged_tool(use.tool, "ask", f"'{later}' changes what later commands do")
    if rule := allowed_by(use, book):
        return judged_tool(use.tool, "allow", f"the rule '{rule.text}'", rule)
    if use.is_own:
        return judged_tool(use.tool, "allow", "it changes nothing by itself")
    if use.only_looks and book.usual_reach == "look":
        return judged_tool(use.tool, "allow", "it only looks, as all calls here may")
    if book.tools_otherwise == "allow":
        return judged_tool(use.tool, "allow", "it was configured, and no rule is against it")
    return judged_tool(use.tool, book.tools_otherwise, f"no rule allows it{'; ' + book.broken if book.broken else ''}")


def rule_against(decision: Decision, use: ToolUse, book: RuleBook) -> Rule | None:
    """A rule that one path, or all its arguments, run into."""
    if rule := book.whole_tool(decision, use.tool, use.server):
        return rule
    for path in use.paths:
        if rule := book.tool_path(decision, use.tool, path, use.workspace, use.server):
            return rule
    return next((rule for rule in book.by_arguments(decision, use.tool, use.server) if fits(rule, use)), None)


def allowed_by(use: ToolUse, book: RuleBook) -> Rule | None:
    """A rule that covers the whole call: every path of it, by each of its names."""
    if rule := book.whole_tool("allow", use.tool, use.server):
        return rule
    rules = [book.tool_path("allow", use.tool, path, use.workspace, use.server) for path in use.paths]
    if rules and all(rules):
        return rules[0]
    return next((rule for rule in book.by_arguments("allow", use.tool, use.server) if fits(rule, use)), None)


def paths_of(arguments: Json) -> list[str]:
    """The paths among a call's arguments, however deep; what only may be one counts: a rule has to cover it, too."""
    found: list[str] = []
    waiting: list[Json] = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
            for name, given in value.items():
                if name.replace("_", "").replace("-", "").lower() in PATH_ARGUMENTS:
                    found += [item for item in (given if isinstance(given, list) else [given]) if isinstance(item, str)]
    return found


def fits(rule: Rule, use: ToolUse) -> bool:
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
    return star_pattern(pattern.split("*"))


def judged_tool(tool: str, decision: Decision, reason: str, rule: Rule | None = None) -> Judged:
    return judged_as(decision, tool, "tool", reason, rule=rule)
