"""Where an application's processes run: tools and builds in the sandboxes that the configuration wants, git outside."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from toolyard.core.problems import Problem
from toolyard.plugins.workshops import Crews
from toolyard.process.child import Children
from toolyard.runtime.audit.log import AuditUnavailable
from toolyard.runtime.sandbox_policy import Surroundings, builders_beside, sandbox_problems, tools_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.config.configuration import Configuration
    from toolyard.process.sandbox.proxy import ConnectionAttempt
    from toolyard.process.sandbox.sandbox import Sandbox
    from toolyard.runtime.audit.log import AuditLog


class Quarters:
    """Makes crews for a configuration, and closes those of the one before when they have done what they were doing."""

    def __init__(self, *, sessions: Path, cache: Path, audit: AuditLog, session: str) -> None:
        self._sessions = sessions
        self._cache = cache
        self._audit = audit
        self._session = session
        self._in_use: list[Children] = []

    def crews(self, configuration: Configuration, before: Crews | None) -> Crews:
        """Who runs processes now: those from before a reload, unless they are to be kept in otherwise."""
        sandbox = tools_sandbox(self._around(configuration))
        if sandbox:
            sandbox.on_decision = self._record_connection
        return Crews(
            tools=self._crew(sandbox, before.tools if before else None),
            builders=builders_beside(sandbox, allow_remote=configuration.policy.allow_remote),
            fetchers=self._crew(None, before.fetchers if before else None),
        )

    def problems(self, configuration: Configuration, crews: Crews) -> Iterator[Problem]:
        """What is wrong with the sandbox; one that is required and cannot be had stops every call."""
        yield from sandbox_problems(self._around(configuration))
        sandbox = crews.tools.sandbox
        if sandbox and not sandbox.policy.damaged and (reason := sandbox.refusal()):
            hint = 'install bubblewrap, or say what you can do without in "sandbox": {"properties": […]}'
            where = configuration.document.position(("sandbox", "mode"))
            yield Problem(code="sandbox_unavailable", message=reason, hint=hint, where=where)

    async def retire(self, *, except_for: Crews) -> None:
        """Close all others, except those that still do something."""
        kept = except_for.all()
        for children in [one for one in self._in_use if one not in kept and not one.is_busy]:
            self._in_use.remove(children)
            await children.aclose()

    async def aclose(self) -> None:
        """End every process."""
        while self._in_use:
            await self._in_use.pop().aclose()

    def _around(self, configuration: Configuration) -> Surroundings:
        return Surroundings(configuration, sessions=self._sessions, cache=self._cache, cwd=os.getcwd())

    def _crew(self, sandbox: Sandbox | None, before: Children | None) -> Children:
        if before and before.sandbox == sandbox and not before.is_stale():
            return before
        self._in_use.append(Children(sandbox))
        return self._in_use[-1]

    def _record_connection(self, decision: ConnectionAttempt) -> None:
        """Where hosts are named, every wish to reach one is on record."""
        record = {"event": "network", "session": self._session, "host": decision.host, "port": decision.port}
        outcome = {"decision": "allow" if decision.allowed else "deny", "reason": decision.reason}
        with contextlib.suppress(AuditUnavailable):
            self._audit.write(record | outcome)
