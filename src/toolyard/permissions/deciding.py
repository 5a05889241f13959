"""From rules to a verdict: on a command line, with the second reader's word, or on a call of any other tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.permissions.derive import derive_offers
from toolyard.permissions.judge import judge_line
from toolyard.permissions.places import Place
from toolyard.permissions.presets import PresetRules, preset_rules
from toolyard.permissions.rulebook import RuleBook
from toolyard.permissions.tool_rules import ToolUse, judge_tool, judged
from toolyard.permissions.verdict import Judged, Offer, Verdict
from toolyard.shell.second_reading import agrees
from toolyard.shell.visible_text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.permissions.line_verdict import LineVerdict
    from toolyard.permissions.rules import Rule
    from toolyard.permissions.section import Section
    from toolyard.permissions.verdict import PermissionRequest

__all__ = ["Circumstances", "decide_line", "decide_request", "make_book"]

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
    if found.needs_second_reading and not await agrees(text):
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
