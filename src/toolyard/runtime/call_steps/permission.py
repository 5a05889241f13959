"""Permit: the rules' verdict on a call, and what a person makes of what they leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.core.reach import nearest_of
from toolyard.permissions.verdict import ALLOWED, LooksAgain, PermissionRequest, RemembersAnswers, nothing_works
from toolyard.runtime.call_steps.conditions import CallChanged
from toolyard.runtime.client_link import client_link

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolyard.core.tool import ClientLink, JsonObject, ToolCall
    from toolyard.permissions.verdict import Approver, Verdict
    from toolyard.runtime.call_steps.conditions import CallHooks, CallServices, CallSettings, ReadyCall

ALLOWED_OUTSIDE = replace(ALLOWED, reach="outside", usual_reach="outside")
"""Of a tool that works in the application itself or elsewhere, where no sandbox is."""


class Permission(msgspec.Struct, frozen=True):
    """Who may be asked about the calls of a conversation, and under which rules."""

    services: CallServices
    settings: CallSettings
    hooks: CallHooks

    def request(self, call: ToolCall, ready: ReadyCall, preview: Callable[[], Awaitable[str]]) -> PermissionRequest:
        """What the rules, and a person, get to know of a call."""
        settings, confined = self.settings, ready.tool.confined
        sandbox = self.services.sandboxes.get("work") if confined else None
        own, shown = sandbox.temporary() if sandbox else ((), ())
        return PermissionRequest(
            call_id=call.id,
            tool=ready.tool.spec,
            kind=ready.tool.kind,
            plan=ready.plan,
            preview=preview,
            agent=settings.agent,
            session=settings.session,
            callers=self.hooks.callers,
            workspace=settings.cwd,
            kept_in=not (sandbox and sandbox.is_missing),
            kept=sandbox.keeps if sandbox else "not",
            temporary=own,
            temporary_places=sandbox.temporary_places() if sandbox else (),
            not_temporary=shown,
            works_inside=sandbox.common.inside.is_under_way if sandbox else nothing_works,
            redact=self.services.redactor.redact,
        )

    def without_rules(self, ready: ReadyCall) -> Verdict | None:
        """What holds where nobody has made a rule; None where there is something to decide."""
        ruleless, settings, plan = self.services.ruleless, self.settings, ready.plan
        if ruleless is None or self.hooks.callers or plan.doubt:
            return None
        verdict = ruleless.without_rules(plan, settings.agent, settings.session)
        return ALLOWED_OUTSIDE if verdict and not ready.tool.confined else verdict

    async def verdict(self, request: PermissionRequest, ready: ReadyCall) -> Verdict:
        """What the rules say, and what the tool itself doubts."""
        verdict = await self.services.permissions.decide(request)
        if ready.plan.doubt and verdict.decision != "deny":  # also where nobody has made a rule
            kept = verdict.offers if verdict.decision == "ask" else ()
            verdict = replace(verdict, decision="ask", reason=ready.plan.doubt, rule=None, offers=kept)
        if not ready.tool.confined:  # it works in the application itself or elsewhere, where no sandbox is
            verdict = replace(verdict, reach="outside", usual_reach="outside")
        return verdict

    async def why_ask_now(self, request: PermissionRequest) -> str | None:
        """Why a line that a rule let run outside, unasked, is not to run as things are by now."""
        policy = self.services.permissions
        return await policy.why_ask_now(request) if isinstance(policy, LooksAgain) else None

    async def ask(self, request: PermissionRequest, verdict: Verdict) -> Verdict:
        """What a person, or whoever stands in for one, makes of what the rules leave open."""
        from toolyard.permissions.approval import ask

        policy = self.services.permissions
        if verdict.reach != verdict.usual_reach:
            await request.preview()  # a tool may have to take something along, which is what was there when it asked
        answer = await ask(self._approver, request, verdict, self._patience(request))
        if answer.instead is not None and not answer.allowed:
            raise CallChanged(answer.instead)
        reason = answer.reason if answer.allowed else f"{answer.reason} (asked because of {verdict.reason})"
        reach = nearest_of(verdict.reach, answer.reach) if answer.reach else verdict.reach
        if answer.allowed and isinstance(policy, RemembersAnswers):
            policy.approved(request, replace(verdict, reach=reach))
        if answer.allowed and answer.scope != "once" and isinstance(policy, RemembersAnswers):
            reason = f"{reason}; {policy.remember(request, verdict, answer)}"
        return replace(verdict, decision="allow" if answer.allowed else "deny", reason=reason, reach=reach)

    async def fill(self, request: PermissionRequest, message: str, form: JsonObject) -> JsonObject | None:
        """Let a person fill in a form that the tool wants, by whoever is asked about calls."""
        from toolyard.permissions.approval import ask_to_fill

        return await ask_to_fill(self._approver, request, message, form, self._patience(request))

    def client_link(self, call_id: str) -> ClientLink | None:
        """The program that the call comes from, if whoever is asked is one."""
        services = self.services
        return client_link(
            self._approver,
            call_id,
            session=self.settings.session,
            redactor=services.redactor,
            audit=services.audit,
        )

    @property
    def _approver(self) -> Approver:
        return self.hooks.approver or self.services.approver

    def _patience(self, request: PermissionRequest) -> float | None:
        """How long a question waits for its answer."""
        policy = self.services.permissions
        return policy.ask_timeout(request.agent) if isinstance(policy, RemembersAnswers) else None
