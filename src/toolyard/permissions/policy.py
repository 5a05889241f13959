"""The policy of an application: configured rules, presets and the user's grants, asked at every call.

What judges is imported when there is something to judge: most applications start with no rules and plain tools.
"""

from __future__ import annotations

import os
from functools import cache, cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.reach import REACHES, is_beyond, nearest_of
from toolyard.core.regexes import late_pattern
from toolyard.core.visible_text import escaped
from toolyard.permissions.grants import ANSWERED, WITHOUT_REACH
from toolyard.permissions.verdict import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.settings import Preset
    from toolyard.core.events import Decision
    from toolyard.core.problems import Problem
    from toolyard.core.reach import Kept, Reach
    from toolyard.core.tool import JsonObject, Plan
    from toolyard.permissions.expansion.shell_state import ShellFacts, ShellStates
    from toolyard.permissions.file_access import CallSite
    from toolyard.permissions.grants import GrantStore
    from toolyard.permissions.rules import Rule, RuleBook
    from toolyard.permissions.section import Section, Sections
    from toolyard.permissions.verdict import Answer, PermissionRequest, Verdict


ONLY_INSIDE = (
    "is a folder for temporary files that is there only inside of the sandbox; outside, another one has that name: "
    "go back to the workspace first, by a line of its own"
)
NOTHING_KEEPS_IT_IN = "no sandbox can be had here, so only commands that look are allowed without asking"
MAY_RAISE_RIGHTS = late_pattern(r"su|doas|pkexec|[\\'\"`$*?\[{]")
"""A line without any of these names no program that gives other rights, in no spelling."""
ALLOWED_TO = {reach: replace(ALLOWED, reach=reach) for reach in REACHES}
STRICTNESS: tuple[Decision, ...] = ("allow", "ask", "deny")
LIVE_SHELL = "shell_session"
"""The kind of tool whose shell outlives its commands."""


def shell_of(request: PermissionRequest) -> str:
    return f"{request.session}/{request.agent}/{request.tool.name}"


def stricter(one: Verdict, other: Verdict) -> Verdict:
    """The verdict of two that lets less happen, and no further than both."""
    found = max(one, other, key=lambda verdict: STRICTNESS.index(verdict.decision))
    usual = nearest_of(one.usual_reach, other.usual_reach)
    return replace(found, reach=nearest_of(one.reach, other.reach), usual_reach=usual)


@cache
def looking_book() -> RuleBook:
    """The rules of commands that only look."""
    from toolyard.permissions.presets import make_book
    from toolyard.permissions.section import Section

    return make_book(Section(is_configured=True, preset="read-only"))


@cache
def closed_book() -> RuleBook:
    """The rules of commands that only look, where a sandbox wholly holds."""
    from toolyard.permissions.presets import make_book
    from toolyard.permissions.section import Section

    return make_book(Section(is_configured=True, preset="read-only"), kept="wholly")


def disagrees_on_reach(verdict: Verdict) -> bool:
    """Whether all that is asked about is how far parts of a line reach, each of which might have run alone."""
    return verdict.decision == "ask" and {part.doubt for part in verdict.parts if part.decision == "ask"} == {"reach"}


def touches_files(verdict: Verdict) -> bool:
    """Whether a line does more than to give variables a value, which may be the name of a file."""
    return any(part.kind != "assignment" and not part.text.startswith("export ") for part in verdict.parts)


async def may_close(request: PermissionRequest, verdict: Verdict, book: RuleBook, site: CallSite) -> bool:
    """Whether a line that names temporary files, and no more than looks, can do so in a closed look.

    All reaches share these files, and a line that nobody vouches for may have made one a link, or make it one
    meanwhile. In a closed look a link leads to nothing that the line could not name.
    """
    from toolyard.permissions.decide import decide_request
    from toolyard.permissions.reach import PRESET

    is_presets = all(part.rule is None or str(part.origin).startswith(PRESET) for part in verdict.parts)
    if not (book.closes and book.confines and is_presets) or book.refuses:
        return False
    return (await decide_request(request, closed_book(), site)).decision == "allow"


async def outside_here(request: PermissionRequest, verdict: Verdict, site: CallSite) -> Verdict:
    """What becomes of a line outside of the sandbox, after a look at the folder that it would run in."""
    if request.plan.command is None or verdict.decision == "deny":
        return verdict
    from toolyard.permissions.folders.call_folder import is_only_inside
    from toolyard.permissions.folders.outside_look import why_answer_is_not_enough, why_not_unasked
    from toolyard.permissions.verdict import Judged

    if is_only_inside(site.cwd, site.own):
        reason = request.redact(f"'{escaped(site.cwd)}' {ONLY_INSIDE}")
        return replace(verdict, decision="deny", reason=reason, rule=None, offers=())
    if verdict.decision == "ask":
        return verdict
    by_answer = any(getattr(part.origin, "is_answer", False) for part in verdict.parts)
    why = why_answer_is_not_enough(request.plan.command, site) if by_answer else None
    why = why or await why_not_unasked(request.plan.command, site, request.works_inside)
    if why is None:
        return verdict
    why = request.redact(why)
    part = Judged(text=request.redact(verdict.shown), kind="doubt", decision="ask", reason=why, doubt="changed")
    return replace(verdict, decision="ask", reason=why, rule=None, parts=(*verdict.parts, part), offers=())


def rule_for(offered: JsonObject, reach: Reach) -> JsonObject:
    """A rule that was offered, for the reach that a call was let have; only outside its folder matters."""
    kept = {key: value for key, value in offered.items() if key != "folder" or reach == "outside"}
    return kept if reach == WITHOUT_REACH else {**kept, "reach": reach}


def with_whole_folder(rule: JsonObject, workspace: str) -> JsonObject:
    if rule.get("reach") != "outside":
        return rule
    return {**rule, "folder": os.path.normpath(os.path.join(os.path.realpath(workspace), rule.get("folder", ".")))}


class RulePolicy:
    """Decides by rules; keeps the answers that are to hold for longer than once."""

    def __init__(self, sections: Sections, grants: GrantStore, *, protected: tuple[str, ...] = ()) -> None:
        self.sections = sections
        """May be replaced while calls are running: a configuration was read again."""
        self.grants = grants
        self._protected = (*protected, *map(str, grants.files))
        self._books: dict[tuple[str, str, str, Kept], tuple[object, RuleBook]] = {}
        self._session_rules: dict[str, list[Rule]] = {}
        self._session_presets: dict[str, Preset] = {}
        self._raised: dict[tuple[str, Preset], tuple[Section, Section]] = {}
        """For each agent and preset the section that it came from, and the one with that preset."""
        self._last_site: tuple[object, CallSite] | None = None

    @cached_property
    def _shells(self) -> ShellStates:
        from toolyard.permissions.expansion.shell_state import ShellStates

        return ShellStates()

    def ask_timeout(self, agent: str) -> float:
        return self.sections.of(agent).ask_timeout

    def set_preset(self, session: str, preset: Preset | None) -> None:
        """From now on a conversation has another preset than the configuration says; None for what that says."""
        if preset is None:
            self._session_presets.pop(session, None)
        else:
            self._session_presets[session] = preset

    def session_preset(self, session: str) -> Preset | None:
        return self._session_presets.get(session)

    def problems(self) -> list[Problem]:
        problem = self.grants.load().problem
        return [problem] if problem else []

    def end_session(self, session: str) -> None:
        """A conversation is over, and what was answered and set for it alone."""
        self._session_presets.pop(session, None)
        self._session_rules.pop(session, None)
        self._books = {key: book for key, book in self._books.items() if key[2] != session}
        if "_shells" in vars(self):
            self._shells.forget_all_of(f"{session}/")

    async def decide(self, request: PermissionRequest) -> Verdict:
        """By the rules of who calls, and of all on whose behalf: the strictest of them counts."""
        verdict = await self._decide_for(request, request.agent, request.session)
        for agent, session in request.callers:
            verdict = stricter(verdict, await self._decide_for(request, agent, session))
        if verdict.decision == "allow" and verdict is not ALLOWED_TO[verdict.reach]:  # without rules nothing is learned
            self.approved(request, verdict)
        return verdict

    def without_rules(self, plan: Plan, agent: str, session: str) -> Verdict | None:
        """What holds where nobody has made a rule, which is said without looking any closer; None elsewhere."""
        wanted, command = plan.reach, plan.command
        if self.section(agent, session).is_configured or wanted not in (None, "work", "look"):
            return None
        if self._has_rules(session) or (command is not None and MAY_RAISE_RIGHTS.search(command)):
            return None
        return ALLOWED_TO[wanted or "work"]

    async def _decide_for(self, request: PermissionRequest, agent: str, session: str) -> Verdict:
        if verdict := self.without_rules(request.plan, agent, session):
            return verdict
        from toolyard.permissions.reach import with_reach

        section, wanted = self.section(agent, session), request.plan.reach
        site = self._site(request).noting_own()
        book = self.book(agent, site.workspace, session, kept=request.kept)
        verdict = await self._decide(request, section, book.reaching(wanted), site)
        verdict = with_reach(verdict, wanted, book.usual_reach)
        if verdict.reach == "outside" and site.own.folders:  # there temporary files are everybody's
            verdict = await self._decide(request, section, book.reaching(wanted), site.without_own())
            verdict = with_reach(verdict, wanted, book.usual_reach)
        elif disagrees_on_reach(verdict) and await may_close(request, verdict, book, site):
            found = await self._decide(request, section, closed_book(), site)
            return with_reach(found, None, book.usual_reach)
        elif (
            verdict.decision == "allow"
            and verdict.reach != "closed"
            and site.own.held
            and not book.trusts
            and touches_files(verdict)
        ):
            if await may_close(request, verdict, book, site):
                return replace(verdict, reach="closed")
            verdict = await self._decide(request, section, book.reaching(wanted), site.heeding_links())
            verdict = with_reach(verdict, wanted, book.usual_reach)
        return await outside_here(request, verdict, self._site(request)) if verdict.reach == "outside" else verdict

    async def _decide(self, request: PermissionRequest, section: Section, book: RuleBook, site: CallSite) -> Verdict:
        from toolyard.permissions.decide import decide_request

        verdict = await decide_request(request, book, site)
        if verdict.decision == "allow" and verdict.rule is None and not section.is_configured:
            verdict = replace(verdict, reason=ALLOWED.reason, rule=ALLOWED.rule)
        elif verdict.decision == "allow" and section.is_configured and not request.kept_in:
            verdict = await self._without_sandbox(request, section, verdict, site)
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

    def approved(self, request: PermissionRequest, verdict: Verdict) -> None:
        """Note what a line that was let pass leaves behind in its session."""
        if request.kind == LIVE_SHELL and request.plan.command is not None:
            elsewhere, less = verdict.reach != verdict.usual_reach, is_beyond(verdict.usual_reach, verdict.reach)
            self._shells.learn(shell_of(request), request.plan.command, elsewhere=elsewhere, less=less)
        elif request.kind == LIVE_SHELL and request.plan.arguments.get("restart"):
            self._shells.forget(shell_of(request))

    async def _without_sandbox(
        self, request: PermissionRequest, section: Section, verdict: Verdict, site: CallSite
    ) -> Verdict:
        """An allow rule never means "outside of the sandbox": where there is none, only looking is allowed unasked."""
        from toolyard.permissions.decide import decide_request

        if request.plan.command is None or section.preset == "trusted":
            return verdict
        if (await decide_request(request, looking_book(), site)).decision == "allow":
            return verdict
        return replace(verdict, decision="ask", reason=f"{NOTHING_KEEPS_IT_IN} ({verdict.reason})")

    async def why_ask_now(self, request: PermissionRequest) -> str | None:
        """Why a line that a rule lets run outside has to be asked about by now."""
        from toolyard.permissions.folders.outside_look import why_not_unasked

        command = request.plan.command
        return None if command is None else await why_not_unasked(command, self._site(request), request.works_inside)

    def remember(self, request: PermissionRequest, verdict: Verdict, answer: Answer) -> str:
        """Keep what was offered, for this session or for good; says what was kept."""
        if not verdict.offers:
            return "nothing can be kept for longer than this call"
        texts = ", ".join(f"'{offer.shown}'" for offer in verdict.offers)
        reach, workspace = answer.reach or verdict.reach, self._site(request).workspace
        rules = [rule_for(offer.rule, reach) for offer in verdict.offers]
        if answer.scope == "session":
            # Others on whose behalf it is made may work in another folder, so it is named whole.
            kept = [{"reach": reach, **with_whole_folder(rule, workspace)} for rule in rules]
            for session in (request.session, *(session for _, session in request.callers)):
                self._keep_for_session(session, kept)
            return f"{texts} allowed for this session"
        for offer, rule in zip(verdict.offers, rules, strict=True):
            self.grants.add("allow", rule, workspace=workspace, source=offer.source, by=ANSWERED)
        return f"{texts} allowed from now on"

    def book(self, agent: str, workspace: str, session: str = "", *, kept: Kept = "not") -> RuleBook:
        """All rules for an agent's calls that are kept in so well."""
        from toolyard.permissions.presets import make_book

        section, granted = self.section(agent, session), self.grants.load()
        session_rules = self._session_rules.get(session, [])
        known = self._books.get((agent, workspace, session, kept))
        state = (section, granted, len(session_rules))
        if known is None or known[0] != state:
            rules = [*granted.rules(workspace, self.grants.file), *session_rules]
            known = self._books[agent, workspace, session, kept] = (state, make_book(section, rules, kept=kept))
        return known[1]

    def _keep_for_session(self, session: str, rules: Sequence[JsonObject]) -> None:
        from toolyard.permissions.rules import RuleOrigin, kept_rules

        kept = kept_rules(rules, "allow", RuleOrigin(label="allowed for this session", is_answer=True))
        self._session_rules.setdefault(session, []).extend(kept)

    def _site(self, request: PermissionRequest) -> CallSite:
        """Where a call would run; most are made where the one before was."""
        from toolyard.permissions.expansion.shell_state import FRESH

        shell = self._shells.of(shell_of(request)) if request.kind == LIVE_SHELL else FRESH
        workspace = os.path.abspath(request.workspace or request.plan.cwd or ".")
        folders = (request.temporary, request.temporary_places, request.not_temporary)
        told = (request.tool.name, request.plan.cwd, workspace, folders, shell)
        if self._last_site is None or self._last_site[0] != told:
            self._last_site = (told, self._new_site(request, workspace, shell))
        return self._last_site[1]

    def _new_site(self, request: PermissionRequest, workspace: str, shell: ShellFacts) -> CallSite:
        from toolyard.permissions.file_access import CallSite
        from toolyard.permissions.paths import OwnFolders

        return CallSite(
            tool=request.tool.name,
            cwd=os.fspath(request.plan.cwd or workspace),
            workspace=workspace,
            protected=self._protected,
            own=OwnFolders(request.temporary, request.not_temporary, request.temporary_places),
            shell=shell,
        )
