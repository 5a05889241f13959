"""From rules to a verdict: on a command line, with the second reader's word, or on a call of any other tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.cross_check import shfmt_agrees
from toolyard.core.visible_text import escaped
from toolyard.permissions.derive import derive_offers
from toolyard.permissions.judge import judge_line
from toolyard.permissions.places import Place
from toolyard.permissions.rule_index import RuleBook
from toolyard.permissions.rules import Origin, Rule, parse_rule
from toolyard.permissions.tool_rules import ToolUse, judge_tool, judged
from toolyard.permissions.verdict import Judged, Offer, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.config.settings import Preset
    from toolyard.core.events import Decision
    from toolyard.permissions.line_verdict import LineVerdict
    from toolyard.permissions.section import Section
    from toolyard.permissions.verdict import PermissionRequest


DIFFERENT = "a second reader of the line does not see the same commands"


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call would run."""

    tool: str
    cwd: str
    workspace: str
    protected: tuple[str, ...] = ()
    """Files that hold the rules themselves."""


def make_book(section: Section, more: list[Rule]) -> RuleBook:
    """The rules of a section with those of its preset, and further ones."""
    preset = PresetRules(trusts=True, tools_otherwise="allow")
    if section.is_configured:
        preset = preset_rules(section.preset, section.allowed_commands)
    return RuleBook(
        [*preset.rules, *section.rules, *more],
        trusts=preset.trusts,
        otherwise=preset.otherwise,
        tools_otherwise=preset.tools_otherwise,
        broken=section.broken,
    )


async def decide_request(request: PermissionRequest, book: RuleBook, where: Circumstances) -> Verdict:
    """The verdict on a call, as it may be shown and kept."""
    if request.plan.command is None:
        return decide_tool(request, book, where)
    return without_secrets(await decide_line(request.plan.command, book, where), request.redact)


def decide_tool(request: PermissionRequest, book: RuleBook, where: Circumstances) -> Verdict:
    """The verdict on a call that runs no command line."""
    use = ToolUse(
        tool=where.tool,
        arguments=request.plan.arguments,
        cwd=where.cwd,
        workspace=where.workspace,
        protected=where.protected,
        read_only=request.tool.hints.read_only,
    )
    part = judge_tool(use, book)
    offers: tuple[Offer, ...] = ()
    if part.decision == "ask" and part.rule is None and not request.tool.hints.destructive:
        offers = (Offer(rule={"tool": where.tool}, text=f"tool={where.tool}", source=where.tool),)
    return Verdict(decision=part.decision, reason=part.reason, rule=part.rule, parts=(part,), offers=offers)


async def decide_line(text: str, book: RuleBook, where: Circumstances) -> Verdict:
    """The verdict on a command line; beyond plain words, only if a second reader sees the same commands."""
    if rule := book.whole_tool("deny", where.tool) or book.whole_tool("ask", where.tool):
        part = judged(where.tool, rule.decision, rule.why(), rule)
        return Verdict(decision=rule.decision, reason=part.reason, rule=rule.text, parts=(part,), shown=escaped(text))
    found = judge_line(text, book, tool=where.tool, cwd=where.cwd, workspace=where.workspace, protected=where.protected)
    shown = escaped(text)
    if found.needs_second_reading and not await shfmt_agrees(text):
        doubt = Judged(text=shown, kind="doubt", decision=book.otherwise, reason=DIFFERENT, doubt="second_reader")
        return Verdict(decision=book.otherwise, reason=DIFFERENT, parts=(*found.parts, doubt), shown=shown)
    decided_by = next((part.rule for part in found.parts if part.decision == found.decision and part.rule), None)
    offers = offers_of(found, book, where) if found.decision == "ask" else ()
    return Verdict(
        decision=found.decision, reason=found.reason, rule=decided_by, parts=found.parts, offers=offers, shown=shown
    )


def offers_of(found: LineVerdict, book: RuleBook, where: Circumstances) -> tuple[Offer, ...]:
    place = Place(found.reading, where.cwd, where.workspace, where.protected)
    return derive_offers(found, book, place, where.tool)


def without_secrets(verdict: Verdict, redact: Callable[[str], str]) -> Verdict:
    """The verdict as it may be shown and kept: known secrets taken out, and no rule offered that would hold one."""
    if verdict.decision == "allow":
        return verdict
    parts = tuple(replace(part, text=redact(part.text), reason=redact(part.reason)) for part in verdict.parts)
    holds_secret = any(redact(offer.text) != offer.text for offer in verdict.offers)
    offers = tuple(replace(offer, source=redact(offer.source)) for offer in verdict.offers)
    return replace(
        verdict,
        reason=redact(verdict.reason),
        parts=parts,
        offers=() if holds_secret else offers,
        shown=redact(verdict.shown),
    )


LOOKING = """
    ls **; cat **; head **; tail **; wc **; grep **; egrep **; fgrep **; rg **; find **; fd **; stat **; file **; du
    **; df **; pwd **; cd **; tree **; readlink **; realpath **; basename **; dirname **; diff **; cmp **; comm **;
    cut **; tr **; sort **; uniq **; nl **; tac **; rev **; fold **; fmt **; paste **; join **; column **; od **;
    hexdump **; xxd **; strings **; md5sum **; sha1sum **; sha256sum **; sha512sum **; cksum **; base64 **; jq **;
    sed **; awk **; echo **; printf **; true; false; :; test **; [ **; which **; type **; command -v **; read **;
    seq **; expr **; sleep **; date **; id; whoami; uname **; hostname; uptime; nproc; free **; ps; ps aux; ps -ef;
    wait; jobs; exit **; break; continue; git status **; git log **; git diff **; git show **; git blame **; git
    grep **; git ls-files **; git ls-tree **; git rev-parse **; git rev-list **; git describe **; git shortlog **;
    git cat-file **; git show-ref **; git merge-base **; git branch; git branch -a; git branch -v; git branch -vv;
    git branch --list **; git branch --show-current; git tag; git tag --list **; git tag -l **; git remote; git
    remote -v; git stash list; git worktree list; git config --get **; git config --list; git --version; python
    --version; python3 --version; node --version; npm --version; go version; cargo --version; rustc --version; ruby
    --version; java -version; gcc --version; make --version; bash --version; docker --version; uv --version; set -e; set
    -eu; set -euo pipefail; set -o pipefail; set +e
"""
WORKING = "mkdir **; touch **; cp **; tee **; git add **"
TYPING: dict[str, Any] = {"tool": "bash_job", "arguments": {"action": "write"}}
"""What is typed into a running program may be a command of its."""
ALLOWLIST = ("ls", "cat", "echo", "pwd", "grep", "find", "wc", "head", "tail")


class PresetRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset stands for."""

    rules: list[Rule] = msgspec.field(default_factory=list)
    trusts: bool = False
    otherwise: Decision = "ask"
    tools_otherwise: Decision = "ask"


def preset_rules(preset: Preset, allowed_commands: Sequence[str] | None = None) -> PresetRules:
    """The rules of a preset, and what holds where none of them speaks."""
    origin = Origin(label=f"preset {preset}")
    match preset:
        case "ask-everything":
            return PresetRules()
        case "trusted":
            return PresetRules(trusts=True, tools_otherwise="allow")
        case "allowlist":
            names = ALLOWLIST if allowed_commands is None else allowed_commands
            rules = made([f"{name} **" for name in names], "allow", origin, confined=False)
            return PresetRules(
                rules=[*rules, *made([TYPING], "deny", origin)], otherwise="deny", tools_otherwise="allow"
            )
        case "read-only":
            return PresetRules(rules=[*made(split(LOOKING), "allow", origin), *made([TYPING], "ask", origin)])
        case "workspace":
            rules = made([*split(LOOKING), *split(WORKING), {"write": "**"}], "allow", origin)
            return PresetRules(rules=[*rules, *made([TYPING], "ask", origin)], tools_otherwise="allow")


def split(text: str) -> list[str]:
    return [pattern.strip() for pattern in text.replace("\n", " ").split(";")]


def made(values: Sequence[Any], decision: Decision, origin: Origin, *, confined: bool = True) -> list[Rule]:
    rules = [parse_rule(value, decision, origin, confined=confined) for value in values]
    return [rule for rule in rules if isinstance(rule, Rule)]
