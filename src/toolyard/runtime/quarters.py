"""Where an application's processes run: tools in the sandbox that the configuration wants, and git outside of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from toolyard.plugins.workshops import Crews
from toolyard.process.child import Children
from toolyard.runtime.audit import AuditUnavailable
from toolyard.runtime.sandboxing import sandbox_for

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.config.configuration import Configuration
    from toolyard.process.proxy import Decision
    from toolyard.runtime.audit import AuditLog

__all__ = ["Quarters", "choose_sandbox"]


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
        sandbox = sandbox_for(configuration, sessions=self._sessions, cache=self._cache, cwd=os.getcwd())
        if before and before.tools.sandbox == sandbox and not before.tools.is_stale():
            return before
        if sandbox:
            sandbox.on_decision = self._record_connection
        return Crews(tools=self._new(Children(sandbox)), fetchers=before.fetchers if before else self._new(Children()))

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

    def _new(self, children: Children) -> Children:
        self._in_use.append(children)
        return children

    def _record_connection(self, decision: Decision) -> None:
        """Where hosts are named, every wish to reach one is on record."""
        record = {"event": "network", "session": self._session, "host": decision.host, "port": decision.port}
        outcome = {"decision": "allow" if decision.allowed else "deny", "reason": decision.reason}
        with contextlib.suppress(AuditUnavailable):
            self._audit.write(record | outcome)


async def choose_sandbox(children: Children) -> None:
    """The first time on a machine it is tried what a sandbox can do here, which takes a moment."""
    if children.sandbox and not children.sandbox.is_chosen and not children.sandbox.is_known():
        await asyncio.to_thread(children.sandbox.choose)
