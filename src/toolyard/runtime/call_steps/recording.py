"""Audit: what is written of a call before it runs and after it ended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from toolyard.core.tool import ToolResult
from toolyard.runtime.audit.log import AuditUnavailable
from toolyard.runtime.audit.record import outcome_record, plan_record, verdict_record
from toolyard.runtime.call_steps.conditions import CallEnded

if TYPE_CHECKING:
    from toolyard.core.tool import ToolCall
    from toolyard.permissions.verdict import Verdict
    from toolyard.runtime.call_steps.conditions import CallServices, CallSettings, ReadyCall

log = logging.getLogger("toolyard.calls")


class CallRecord:
    """The two lines of one call."""

    def __init__(self, services: CallServices, settings: CallSettings) -> None:
        self._services = services
        self._settings = settings
        self._started: dict[str, Any] | None = None
        self._is_refused = False
        """Whether the call was refused because it could not be recorded."""

    def start(self, call: ToolCall, ready: ReadyCall, verdict: Verdict | None) -> None:
        """Nothing runs that is not on record first, unless policy lets it."""
        try:
            self._started = self._describe(call, ready, verdict)
            self._services.audit.write({"event": "start", **self._started})
        except AuditUnavailable as error:
            self._is_refused = True
            raise CallEnded(ToolResult(text=f"The call was not run: {error}", failure="denied")) from error

    def end(
        self, call: ToolCall, ready: ReadyCall | None, verdict: Verdict | None, result: ToolResult, duration: float
    ) -> None:
        """How it ended; of a call that never ran, also what it was."""
        if self._is_refused:
            return
        record = self._started or self._describe(call, ready, verdict)
        if ready:
            record["sandbox"] = self._sandbox_name(ready)  # only now it is sure which one could be built
        try:
            self._services.audit.write({"event": "end", **record, **outcome_record(result, duration)})
        except AuditUnavailable:
            log.error("call %s ended but its end could not be recorded", call.id)

    def _describe(self, call: ToolCall, ready: ReadyCall | None, verdict: Verdict | None) -> dict[str, Any]:
        record: dict[str, Any] = {"session": self._settings.session, "call_id": call.id, "tool": call.name}
        if ready:
            record |= plan_record(ready.tool, ready.plan, self._settings.cwd, self._sandbox_name(ready))
        if verdict:
            sandbox = self._services.sandboxes.get(verdict.reach)
            kept_in = sandbox is not None and not sandbox.is_missing
            record |= verdict_record(verdict, kept_in=kept_in)
        return self._services.redactor.redact_record(record)

    def _sandbox_name(self, ready: ReadyCall) -> str:
        """What keeps a call in; one whose tool runs in the application itself, or that was let out, says so."""
        if self._services.sandboxes.get("work") is None:
            return "off"
        sandbox = ready.sandbox(self._services)
        return sandbox.name if sandbox else "none"
