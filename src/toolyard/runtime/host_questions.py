"""Asking about a host that the configuration does not name, while the connection to it waits."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from toolyard.core.tool import JsonInput, Plan, ToolSpec
from toolyard.permissions.verdict import NETWORK, Judged, Offer, PermissionRequest, Verdict
from toolyard.process.sandbox.network.hosts import PORTS, AllowedHosts
from toolyard.process.sandbox.network.proxy import HostAnswer, HostRule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolyard.permissions.policy import RulePolicy
    from toolyard.permissions.verdict import Answer, Approver


ONCE_HOLDS, NO_HOLDS = 300.0, 30.0
"""How long an answer holds, in seconds, since programs connect again and again for one thing."""
SPEC = ToolSpec(name=NETWORK, description="Reach a host from the sandbox.", input=JsonInput(schema={"type": "object"}))


def nobody_to_ask(host: str) -> HostAnswer:
    return HostAnswer(allowed=False, reason=f"it is not named, and nobody is there to ask; {name_it(host)}")


def name_it(host: str) -> str:
    """What to write to reach a host; for a registry, the group that it is in."""
    from toolyard.process.sandbox.packages.host_groups import group_with

    return f"name {group_with(host) or 'it'} in sandbox.hosts to allow it"


class HostQuestions:
    """Decides on hosts by rules, by what was answered, and by asking; many connections to one host ask once."""

    def __init__(
        self,
        policy: RulePolicy,
        approver: Approver | None,
        *,
        agent: str,
        session: str,
        workspace: Path,
        hide: Callable[[str], str],
    ) -> None:
        self._policy = policy
        self._approver = approver
        self._agent, self._session, self._workspace = agent, session, workspace
        self._hide = hide
        """Takes secrets out of what is asked, of which no rule is kept then."""
        self._answers: dict[tuple[str, int], tuple[HostAnswer, float]] = {}
        self._asking: dict[tuple[str, int], asyncio.Task[HostAnswer]] = {}

    async def decide(self, host: str, port: int) -> HostAnswer:
        if found := self._by_rules(host, port) or self._answered(host, port):
            return found
        if self._approver is None:
            return nobody_to_ask(host)
        key = (host, port)
        if key not in self._asking:
            self._asking[key] = asyncio.ensure_future(self._ask(self._approver, host, port))
            self._asking[key].add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(self._asking[key])

    def rule_for(self, host: str, port: int) -> HostRule | None:
        """The rule that is against a host, or wants somebody to be asked about it."""
        book = self._policy.book(self._agent, str(self._workspace), self._session)
        if rule := AllowedHosts(book.hosts("deny")).find_against(host, port):
            return HostRule(decision="deny", reason=f"the rule 'deny host={rule.text}' is against it")
        if rule := AllowedHosts(book.hosts("ask")).find_against(host, port):
            return HostRule(decision="ask", reason=f"the rule 'ask host={rule.text}'")
        return None

    def _by_rules(self, host: str, port: int) -> HostAnswer | None:
        book = self._policy.book(self._agent, str(self._workspace), self._session)
        if found := self.rule_for(host, port):
            return HostAnswer(allowed=False, reason=found.reason) if found.decision == "deny" else None
        if rule := AllowedHosts(book.hosts("allow")).find(host, port):
            return HostAnswer(allowed=True, reason=f"allowed by the rule 'host={rule.text}'")
        return None

    def _answered(self, host: str, port: int) -> HostAnswer | None:
        answer, until = self._answers.get((host, port), (None, 0.0))
        return answer if time.monotonic() < until else None

    async def _ask(self, approver: Approver, host: str, port: int) -> HostAnswer:
        from toolyard.permissions.approval import ask

        request, verdict = self._question(host, port)
        answer = await ask(approver, request, verdict, self._policy.ask_timeout(self._agent))
        if answer.allowed and answer.scope != "once":
            self._policy.remember(request, verdict, answer)
        found = HostAnswer(allowed=answer.allowed, reason=self._reason(answer, host))
        self._answers[host, port] = (found, time.monotonic() + (ONCE_HOLDS if answer.allowed else NO_HOLDS))
        return found

    def _reason(self, answer: Answer, host: str) -> str:
        return answer.reason if answer.allowed else f"{answer.reason}; {name_it(host)}"

    def _question(self, host: str, port: int) -> tuple[PermissionRequest, Verdict]:
        place = self._hide(f"{host}:{port}")

        async def preview() -> str:
            return f"connect to {place}"

        request = PermissionRequest(
            call_id=f"host {place}",
            tool=SPEC,
            kind=NETWORK,
            plan=Plan(arguments={"host": self._hide(host), "port": port}),
            preview=preview,
            agent=self._agent,
            session=self._session,
            workspace=self._workspace,
            redact=self._hide,
        )
        rule = self.rule_for(host, port)
        because = (
            f"about which {rule.reason} wants you to be asked" if rule else "which the configuration does not name"
        )
        why = f"a program in the sandbox wants to reach {place}, {because}"
        name = host if port in PORTS else place
        offers = (Offer(rule={"host": name}, text=f"host={name}", source=place),) if place == f"{host}:{port}" else ()
        part = Judged(text=place, kind=NETWORK, decision="ask", reason=why, doubt="host")
        return request, Verdict(decision="ask", reason=why, parts=(part,), offers=offers)
