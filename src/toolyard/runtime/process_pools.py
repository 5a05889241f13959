"""Who runs an application's processes: children in the sandbox of each reach, and children outside."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from toolyard.core.problems import Problem
from toolyard.core.reach import REACHES
from toolyard.plugins.host import Processes
from toolyard.process.child import Children
from toolyard.process.common_folder import CommonFolder
from toolyard.runtime.audit.log import AuditUnavailable
from toolyard.runtime.sandbox_policy import build_runner, looking, open_roots, sandbox_problems, tools_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolyard.core.reach import Reach
    from toolyard.process.sandbox.network.proxy import AskHost, ConnectionAttempt, RuleForHost
    from toolyard.process.sandbox.sandbox import Sandbox
    from toolyard.runtime.audit.log import AuditLog
    from toolyard.runtime.sandbox_policy import SandboxInputs


LOOKS: tuple[Reach, ...] = ("closed", "look")


class ProcessPools:
    """Makes the processes of a configuration, and closes those of the one before when they have nothing left to do."""

    def __init__(
        self,
        *,
        audit: AuditLog,
        session: str,
        hide: Callable[[str], str] = str,
        ask_host: AskHost | None = None,
        rule_for_host: RuleForHost | None = None,
    ) -> None:
        self._audit = audit
        self._session = session
        self._hide = hide
        """Takes secrets out of what is recorded."""
        self._ask_host, self._rule_for_host = ask_host, rule_for_host
        self._in_use: list[Children] = []
        self._common = CommonFolder()

    def open(self, inputs: SandboxInputs, before: Processes | None) -> Processes:
        """Those from before a reload, unless they are to be kept in otherwise."""
        sandbox = tools_sandbox(inputs, self._common)
        if sandbox:
            sandbox.connections.on_decision = self._record_connection
            sandbox.connections.ask_host = self._ask_host
            sandbox.connections.rule_for_host = self._rule_for_host
        known: Mapping[Reach, Children] = before.children if before else {}
        outside = self._children(None, known.get("outside"))
        children: dict[Reach, Children] = dict.fromkeys(REACHES, outside)
        if sandbox:
            children["work"] = self._children(sandbox, known.get("work"))
            for reach in LOOKS:
                look = looking(sandbox, closed=reach == "closed")
                look.connections.on_decision = self._record_connection
                children[reach] = self._children(look, known.get(reach))
        build = build_runner(sandbox, allow_remote=inputs.configuration.policy.allow_remote)
        return Processes(children=children, build=build)

    def problems(self, inputs: SandboxInputs, now: Processes) -> Iterator[Problem]:
        """What is wrong with the sandbox; one that is required and cannot be had stops every call."""
        yield from sandbox_problems(inputs)
        sandbox = now.children["work"].sandbox
        if sandbox:
            yield from open_roots(inputs, sandbox)
        if sandbox and not sandbox.policy.damaged and not sandbox.layout.open_roots and (reason := sandbox.refusal()):
            hint = 'install bubblewrap, or say what you can do without in "sandbox": {"properties": […]}'
            where = inputs.configuration.document.position(("sandbox", "mode"))
            yield Problem(code="sandbox_unavailable", message=reason, hint=hint, where=where)

    def note_rest(self) -> None:
        """Before something is read: where nothing runs, its owner may have changed it, and nobody else."""
        for children in self._in_use:
            children.note_rest()

    async def retire(self, *, except_for: Processes) -> None:
        """Close all others, except those that still do something."""
        kept = list(except_for.children.values())
        for children in [one for one in self._in_use if one not in kept and not one.is_busy]:
            self._in_use.remove(children)
            await children.aclose()

    async def aclose(self) -> None:
        while self._in_use:
            await self._in_use.pop().aclose()
        self._common.remove()

    def _children(self, sandbox: Sandbox | None, before: Children | None) -> Children:
        if before and before.sandbox == sandbox and not before.is_stale():
            return before
        self._in_use.append(Children(sandbox))
        return self._in_use[-1]

    def _record_connection(self, decision: ConnectionAttempt) -> None:
        """Where hosts are named, every wish to reach one is on record."""
        record = {
            "event": "network",
            "session": self._session,
            "host": self._hide(decision.host),
            "port": decision.port,
        }
        outcome = {"decision": "allow" if decision.allowed else "deny", "reason": self._hide(decision.reason)}
        with contextlib.suppress(AuditUnavailable):
            self._audit.write(record | outcome)
