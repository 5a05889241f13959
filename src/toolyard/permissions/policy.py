"""The policy of an application: configured rules, presets and the user's grants, asked at every call."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolyard.permissions.derive import derive_offers
from toolyard.permissions.judge import judge_line
from toolyard.permissions.places import Place
from toolyard.permissions.presets import PresetRules, preset_rules
from toolyard.permissions.rulebook import RuleBook
from toolyard.permissions.rules import Origin, Rule, parse_rule
from toolyard.permissions.tool_rules import ToolUse, judge_tool, judged
from toolyard.permissions.verdict import Judged, Offer, Verdict
from toolyard.shell.second_reading import agrees
from toolyard.shell.visible_text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.permissions.grants import GrantStore
    from toolyard.permissions.judge import LineVerdict
    from toolyard.permissions.section import Section
    from toolyard.permissions.verdict import Answer, PermissionRequest

__all__ = ["Circumstances", "RulePolicy", "decide_line"]

UNCONFIGURED = "no permission rules are configured"
DIFFERENT = "a second reader of the line does not see the same commands"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Where a line would run."""

    tool: str
    cwd: str
    workspace: str
    protected: tuple[str, ...] = ()


class RulePolicy:
    """Decides by rules; keeps the answers that are to hold for longer than once."""

    def __init__(
        self,
        section_for: Callable[[str], Section],
        grants: GrantStore,
        *,
        protected: tuple[str, ...] = (),
    ) -> None:
        self._section_for = section_for
        self._grants = grants
        self._protected = protected
        self._books: dict[tuple[str, str, str], tuple[object, RuleBook]] = {}
        self._session_rules: dict[str, list[Rule]] = {}

    def ask_timeout(self, agent: str) -> float:
        """How long a question about an agent's call waits."""
        return self._section_for(agent).ask_timeout

    async def decide(self, request: PermissionRequest) -> Verdict:
        """Allow, deny, or leave it to a person."""
        where = self._circumstances(request)
        book = self.book(request.agent, where.workspace, request.session)
        if request.plan.command is None:
            return self._tool(request, book, where)
        if rule := book.whole_tool("deny", where.tool) or book.whole_tool("ask", where.tool):
            part = judged(where.tool, rule.decision, rule.why(), rule)
            return Verdict(decision=rule.decision, reason=part.reason, rule=rule.text, parts=(part,))
        verdict = await decide_line(request.plan.command, book, where)
        if verdict.decision == "allow" and not self._section_for(request.agent).is_configured:
            return replace(verdict, reason=UNCONFIGURED, rule="allow-all")
        return without_secrets(verdict, request.redact)

    def remember(self, request: PermissionRequest, verdict: Verdict, answer: Answer) -> str:
        """Keep what was offered, for this session or for good; says what was kept."""
        if not verdict.offers:
            return "nothing can be kept for longer than this call"
        texts = ", ".join(f"'{offer.text}'" for offer in verdict.offers)
        if answer.scope == "session":
            rules = [rule for offer in verdict.offers if (rule := session_rule(offer))]
            self._session_rules.setdefault(request.session, []).extend(rules)
            self._books.clear()
            return f"{texts} allowed for this session"
        workspace = self._circumstances(request).workspace
        for offer in verdict.offers:
            self._grants.add(
                "allow", offer.rule, workspace=workspace, source=request.redact(offer.source), by="answered always"
            )
        return f"{texts} allowed from now on"

    def book(self, agent: str, workspace: str, session: str = "") -> RuleBook:
        """All rules that hold for an agent's calls in a workspace."""
        section, granted = self._section_for(agent), self._grants.load()
        state = (id(section), id(granted), len(self._session_rules.get(session, ())))
        known = self._books.get((agent, workspace, session))
        if known is None or known[0] != state:
            rules = granted.rules(workspace, self._grants.file) + self._session_rules.get(session, [])
            known = self._books[agent, workspace, session] = (state, make_book(section, rules))
        return known[1]

    def _tool(self, request: PermissionRequest, book: RuleBook, where: Circumstances) -> Verdict:
        use = ToolUse(
            tool=where.tool,
            arguments=request.plan.arguments,
            cwd=where.cwd,
            workspace=where.workspace,
            protected=where.protected,
            read_only=request.tool.hints.read_only,
        )
        part = judge_tool(use, book)
        if part.decision == "allow" and part.rule is None and not self._section_for(request.agent).is_configured:
            return Verdict(decision="allow", reason=UNCONFIGURED, rule="allow-all", parts=(part,))
        offers: tuple[Offer, ...] = ()
        if part.decision == "ask" and part.rule is None and not request.tool.hints.destructive:
            offers = (Offer(rule={"tool": where.tool}, text=f"tool={where.tool}", source=where.tool),)
        return Verdict(decision=part.decision, reason=part.reason, rule=part.rule, parts=(part,), offers=offers)

    def _circumstances(self, request: PermissionRequest) -> Circumstances:
        workspace = os.fspath(request.workspace or request.plan.cwd or ".")
        return Circumstances(
            tool=request.tool.name,
            cwd=os.fspath(request.plan.cwd or workspace),
            workspace=os.path.abspath(workspace),
            protected=self._protected,
        )


def make_book(section: Section, more: list[Rule]) -> RuleBook:
    """The rules of a section with those of its preset, and further ones."""
    if section.is_configured:
        preset = preset_rules(section.preset, section.allowed_commands)
    else:
        preset = PresetRules(trusts=True, tools_otherwise="allow")
    return RuleBook(
        [*preset.rules, *section.rules, *more],
        trusts=preset.trusts,
        otherwise=preset.otherwise,
        tools_otherwise=preset.tools_otherwise,
        broken=section.broken,
    )


async def decide_line(text: str, book: RuleBook, where: Circumstances) -> Verdict:
    """The verdict on a command line; beyond plain words, only if a second reader sees the same commands."""
    found = judge_line(text, book, tool=where.tool, cwd=where.cwd, workspace=where.workspace, protected=where.protected)
    if found.needs_second_reading and not await agrees(text):
        doubt = Judged(
            text=escaped(text), kind="doubt", decision=book.otherwise, reason=DIFFERENT, doubt="second_reader"
        )
        return Verdict(decision=book.otherwise, reason=DIFFERENT, parts=(*found.parts, doubt), shown=escaped(text))
    rule = next((part.rule for part in found.parts if part.decision == found.decision and part.rule), None)
    offers = offers_of(found, book, where) if found.decision == "ask" else ()
    return Verdict(
        decision=found.decision, reason=found.reason, rule=rule, parts=found.parts, offers=offers, shown=escaped(text)
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
    return replace(
        verdict,
        reason=redact(verdict.reason),
        parts=parts,
        offers=() if holds_secret else verdict.offers,
        shown=redact(verdict.shown),
    )


def session_rule(offer: Offer) -> Rule | None:
    rule = parse_rule(offer.rule, "allow", Origin(label="allowed for this session"))
    return rule if isinstance(rule, Rule) else None
