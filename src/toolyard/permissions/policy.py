"""The policy of an application: configured rules, presets and the user's grants, asked at every call.

What judges is imported when there is something to judge: most applications start with no rules and plain tools.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.reach import REACHES, is_beyond
from toolyard.permissions.verdict import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.config.settings import Preset
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject
    from toolyard.permissions.file_access import CallSite
    from toolyard.permissions.grants import GrantStore
    from toolyard.permissions.rules import Rule, RuleBook
    from toolyard.permissions.section import Section, Sections
    from toolyard.permissions.verdict import Answer, PermissionRequest, Verdict


NOTHING_KEEPS_IT_IN = "no sandbox can be had here, so only commands that look are allowed without asking"
MAY_RAISE_RIGHTS = re.compile(r"su|doas|pkexec|[\\'\"`$*?\[{]")
"""A line without any of these names no program that gives other rights, in no spelling."""
ALLOWED_TO = {reach: replace(ALLOWED, reach=reach) for reach in REACHES}
LIVE_SHELL = "shell_session"
"""The kind of tool whose shell outlives its commands."""


def shell_of(request: PermissionRequest) -> str:
    return f"{request.session}/{request.agent}/{request.tool.name}"


@cache
def looking_book() -> RuleBook:
    """The rules of commands that only look."""
    from toolyard.permissions.presets import make_book
    from toolyard.permissions.section import Section

    return make_book(Section(is_configured=True, preset="read-only"))


class RulePolicy:
    """Decides by rules; keeps the answers that are to hold for longer than once."""

    def __init__(self, sections: Sections, grants: GrantStore, *, protected: tuple[str, ...] = ()) -> None:
        self.sections = sections
        """May be replaced while calls are running: a configuration was read again."""
        self.grants = grants
        self._protected = (*protected, *map(str, grants.files))
        self._books: dict[tuple[str, str, str], tuple[object, RuleBook]] = {}
        self._session_rules: dict[str, list[Rule]] = {}
        self._session_presets: dict[str, Preset] = {}
        self._raised: dict[tuple[str, Preset], tuple[Section, Section]] = {}
        """For each agent and preset the section that it came from, and the one with that preset."""
        self._definitions = ShellDefinitions()

    def ask_timeout(self, agent: str) -> float:
        return self.sections.of(agent).ask_timeout

    def set_preset(self, session: str, preset: Preset | None) -> None:
        """From now on a conversation has another preset than the configuration says; None for what that says."""
        if preset is None:
            self._session_presets.pop(session, None)
        else:
            self._session_presets[session] = preset

    def problems(self) -> list[Problem]:
        problem = self.grants.load().problem
        return [problem] if problem else []

    def end_session(self, session: str) -> None:
        """A conversation is over, and what was answered and set for it alone."""
        self._session_presets.pop(session, None)
        self._session_rules.pop(session, None)

    async def decide(self, request: PermissionRequest) -> Verdict:
        section, wanted = self.section(request.agent, request.session), request.plan.reach
        if not section.is_configured and wanted in (None, "work", "look") and not self._has_rules(request.session):
            command = request.plan.command
            if command is None or not MAY_RAISE_RIGHTS.search(command):
                return ALLOWED_TO[(wanted or "work") if request.confined else "outside"]
        from toolyard.permissions.reach import usual_reach, with_reach

        usual = usual_reach(section)
        verdict = await self._decide(request, section, beyond=wanted is not None and is_beyond(wanted, usual))
        return with_reach(verdict, request, usual)

    async def _decide(self, request: PermissionRequest, section: Section, *, beyond: bool) -> Verdict:
        from toolyard.permissions.decide import decide_request

        site = self._site(request)
        book = self.book(request.agent, site.workspace, request.session)
        if beyond and request.plan.reach is not None:
            book = book.reaching(request.plan.reach)
        verdict = await decide_request(request, book, site)
        if verdict.decision == "allow" and (book.refuses or not book.trusts_tool(site.tool)):
            verdict = self._unless_redefined(request, verdict, book)
        if verdict.decision == "allow" and verdict.rule is None and not section.is_configured:
            return replace(verdict, reason=ALLOWED.reason, rule=ALLOWED.rule)
        if verdict.decision == "allow" and section.is_configured and not request.kept_in:
            return await self._without_sandbox(request, verdict, site)
        return verdict

    def section(self, agent: str, session: str = "") -> Section:
        """What holds for an agent's calls in a conversation."""
        section, preset = self.sections.of(agent), self._session_presets.get(session)
        if preset is None:
            return section
        known = self._raised.get((agent, preset))
        if known is None or known[0] is not section:
            known = self._raised[agent, preset] = (section, replace(section, preset=preset, is_configured=True))
        return known[1]

    def _has_rules(self, session: str) -> bool:
        """Whether something was granted, or answered for a session."""
        return bool(self.grants.load().grants or self._session_rules.get(session))

    def approved(self, request: PermissionRequest) -> None:
        """Note what a line that a person let pass leaves behind in its session."""
        if request.kind == LIVE_SHELL and request.plan.command is not None:
            self._definitions.learn(shell_of(request), request.plan.command)
        elif request.kind == LIVE_SHELL and request.plan.arguments.get("restart"):
            self._definitions.forget(shell_of(request))

    def _unless_redefined(self, request: PermissionRequest, verdict: Verdict, book: RuleBook) -> Verdict:
        """The verdict, unless a word of the line is no longer what the rules are about."""
        if request.kind != LIVE_SHELL:
            return verdict
        if request.plan.command is None:
            self.approved(request)
            return verdict
        from toolyard.bash.syntax.parse import read_line
        from toolyard.permissions.judge import judged_as

        command = request.plan.command
        words = (
            words[0].value for part in read_line(command).commands for words in (*part.wrapped, part.words) if words
        )
        name = self._definitions.changed_among(shell_of(request), words)
        if name is None:
            return verdict
        why = f"an earlier command gave '{name}' another meaning in this session"
        part = judged_as(book.otherwise, command, "doubt", why, doubt="meaning")
        return replace(verdict, decision=book.otherwise, reason=why, rule=None, parts=(*verdict.parts, part))

    async def _without_sandbox(self, request: PermissionRequest, verdict: Verdict, site: CallSite) -> Verdict:
        """An allow rule never means "outside of the sandbox": where there is none, only looking is allowed unasked."""
        from toolyard.permissions.decide import decide_request

        trusts = self.section(request.agent, request.session).preset == "trusted"
        if request.plan.command is None or trusts:
            return verdict
        if (await decide_request(request, looking_book(), site)).decision == "allow":
            return verdict
        return replace(verdict, decision="ask", reason=f"{NOTHING_KEEPS_IT_IN} ({verdict.reason})")

    def remember(self, request: PermissionRequest, verdict: Verdict, answer: Answer) -> str:
        """Keep what was offered, for this session or for good; says what was kept."""
        if not verdict.offers:
            return "nothing can be kept for longer than this call"
        texts = ", ".join(f"'{offer.text}'" for offer in verdict.offers)
        reach = answer.reach or verdict.reach
        rules = [{**offer.rule, "reach": reach} for offer in verdict.offers]
        if answer.scope == "session":
            self._keep_for_session(request.session, rules)
            return f"{texts} allowed for this session"
        workspace = self._site(request).workspace
        for offer, rule in zip(verdict.offers, rules, strict=True):
            self.grants.add("allow", rule, workspace=workspace, source=offer.source, by="answered with always")
        return f"{texts} allowed from now on"

    def book(self, agent: str, workspace: str, session: str = "") -> RuleBook:
        from toolyard.permissions.presets import make_book

        section, granted = self.section(agent, session), self.grants.load()
        session_rules = self._session_rules.get(session, [])
        known = self._books.get((agent, workspace, session))
        state = (section, granted, len(session_rules))
        if known is None or known[0] != state:
            rules = [*granted.rules(workspace, self.grants.file), *session_rules]
            known = self._books[agent, workspace, session] = (state, make_book(section, rules))
        return known[1]

    def _keep_for_session(self, session: str, rules: Sequence[JsonObject]) -> None:
        from toolyard.permissions.rules import RuleOrigin, valid_rules

        kept = valid_rules(rules, "allow", RuleOrigin(label="allowed for this session"))
        self._session_rules.setdefault(session, []).extend(kept)

    def _site(self, request: PermissionRequest) -> CallSite:
        from toolyard.permissions.file_access import CallSite

        workspace = os.path.abspath(request.workspace or request.plan.cwd or ".")
        return CallSite(
            tool=request.tool.name,
            cwd=os.fspath(request.plan.cwd or workspace),
            workspace=workspace,
            protected=self._protected,
        )


NAME = r"[^\s;&|<>()$`'\"\\=]+"
FUNCTION = re.compile(rf"(?:^|[\s;&|({{])(?:function\s+({NAME})|({NAME})\s*\(\s*\))")
ALIAS = re.compile(r"(?:^|[\s;&|({])alias\s+([^;&|\n]*)")
ALIASED = re.compile(rf"(?:^|\s)['\"]?({NAME})=")
REPLACED = re.compile(rf"\b(?:enable\s+-n|hash\s+-p\s+\S+)\s+({NAME})")
UNDEFINED = re.compile(rf"\b(?:unset\s+-f|unalias)\s+((?:{NAME}\s*)+)")


class ShellDefinitions:
    """For each live shell, the names that functions and aliases gave another meaning, so that no rule is about them."""

    def __init__(self) -> None:
        self._changed: dict[str, set[str]] = {}

    def learn(self, shell: str, text: str) -> None:
        changed = self._changed.setdefault(shell, set())
        for found in UNDEFINED.finditer(text):
            names = found[1].split()
            changed.difference_update(changed.copy() if "-a" in names else names)
        changed.update(defined_in(text))

    def forget(self, shell: str) -> None:
        """The shell was started anew."""
        self._changed.pop(shell, None)

    def changed_among(self, shell: str, names: Iterable[str | None]) -> str | None:
        changed = self._changed.get(shell)
        return next((name for name in names if name in changed), None) if changed else None


def defined_in(text: str) -> set[str]:
    """The names that a line gives another meaning, as far as the line itself says."""
    found = {match[1] or match[2] for match in FUNCTION.finditer(text)}
    for aliases in ALIAS.finditer(text):
        found.update(match[1] for match in ALIASED.finditer(aliases[1]))
    found.update(match[1] for match in REPLACED.finditer(text))
    return found
