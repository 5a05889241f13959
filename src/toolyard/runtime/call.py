"""The one path of every call, step by step.

find → decode → plan → preview → permit → checkpoint → run → limit → redact → audit → result

No kind of tool can leave a step out, because no kind knows of the path: a tool has a spec, a plan, a preview and a run,
and everything around them is here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
import traceback
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.lossless_json import encode_json
from toolyard.core.tool import CallContext, ToolResult
from toolyard.errors import NoSandbox
from toolyard.runtime.call_events import CallEvents
from toolyard.runtime.call_steps.conditions import NO_HOOKS, CallChanged, CallEnded, ReadyCall
from toolyard.runtime.call_steps.permission import Permission
from toolyard.runtime.call_steps.recording import CallRecord
from toolyard.runtime.call_steps.results import cancelled_result, limited, not_loaded, not_run, unknown_tool
from toolyard.runtime.call_steps.running import run_tool

if TYPE_CHECKING:
    from toolyard.core.events import Observer
    from toolyard.core.tool import JsonObject, Plan, Tool, ToolCall
    from toolyard.permissions.verdict import PermissionRequest, Verdict
    from toolyard.runtime.call_steps.conditions import CallHooks, CallServices, CallSettings

log = logging.getLogger("toolyard.calls")
NOT_IN_NAMES = re.compile(r"[^\w-]")


class PendingCall:
    """One call on its way: `prepare`, then `execute`; `result` is set exactly once, at its end."""

    def __init__(
        self,
        services: CallServices,
        call: ToolCall,
        settings: CallSettings,
        observer: Observer | None,
        hooks: CallHooks = NO_HOOKS,
    ) -> None:
        self.call = call
        self.result: ToolResult | None = None
        self._hooks = hooks
        self._services = services
        self._settings = settings
        self._permission = Permission(services, settings, hooks)
        self._record = CallRecord(services, settings)
        self._events = CallEvents(call.id, observer, services.redactor) if observer else None
        self._started = time.monotonic()
        self._ready: ReadyCall | None = None
        self._verdict: Verdict | None = None
        self._preview: str | None = None
        self._holding = contextlib.ExitStack()
        """What keeps calls inside from beginning while this one runs outside, and nobody was asked."""
        self._was_asked = False
        self._changed: JsonObject | None = None
        """The arguments that a person gave it."""

    @property
    def parallel(self) -> bool:
        """Whether the tool may run beside others."""
        return self._ready is None or self._ready.tool.spec.hints.parallel

    async def prepare(self) -> None:
        """Find, decode, plan, preview, permit; sets the result when the call ends here."""
        try:
            await self._get_permission()
        except CallEnded as ended:
            self._finish(ended.result)
        except asyncio.CancelledError as error:
            self.cancel(error)
            raise
        except Exception as error:  # the one broad catch: here and in `execute` a call ends, whatever broke
            self._finish(self._crashed(error))

    async def execute(self) -> ToolResult:
        """Checkpoint, run, limit, redact, audit."""
        if self._ready is None:
            raise RuntimeError("execute comes after a prepare that set no result")
        try:
            self._hold_others(self._ready)
            self._ready = ready = await self._confirm(self._ready)
            if ready.plan.doubt and self._services.tools.doubt(ready.tool) in ready.plan.doubt:
                self._services.tools.let_run(ready.tool)
            await self._checkpoint(ready)
            self._record.start(self.call, ready, self._verdict)
            result = await run_tool(ready, self._services)
            if self._events:
                self._events.output_ended()
            return self._finish(limited(result, self._settings, self._services.redactor))
        except CallEnded as ended:
            return self._finish(ended.result)
        except NoSandbox as error:  # which is known only now, as on a full disk
            return self._finish(not_run(str(error)))
        except asyncio.CancelledError as error:
            self.cancel(error)
            raise
        except Exception as error:
            return self._finish(self._crashed(error))
        finally:
            self._holding.close()

    async def preview(self) -> str | ToolResult:
        """Find, decode, plan and preview, and nothing more."""
        try:
            tool = await self._find()
            self._ready = self._plan(tool, self._decode(tool))
            return await self._get_preview()
        except CallEnded as ended:
            return ended.result

    def cancel(self, error: asyncio.CancelledError | None = None) -> ToolResult:
        """End the call as cancelled, with what it had printed, unless it has ended already."""
        return self.result or self._finish(limited(cancelled_result(error), self._settings, self._services.redactor))

    async def _get_permission(self) -> None:
        """Until the call may run or ends here; a person may change it instead, and it is looked at anew."""
        while True:
            tool = await self._find()
            self._ready = ready = self._plan(tool, self._decode(tool))
            self._preview = None
            if self._events:  # somebody watches; if nobody does, the preview waits until permission needs it
                self._events.preview(await self._get_preview())
            try:
                return await self._permit(ready)
            except CallChanged as changed:
                self._change(changed.arguments)

    def _change(self, arguments: JsonObject) -> None:
        self.call = replace(self.call, arguments=arguments)
        self._changed = arguments

    async def _find(self) -> Tool:
        tool = await self._services.tools.find(self.call.name)
        if tool is None:
            if failed := self._services.tools.failure(self.call.name):
                raise CallEnded(not_loaded(self.call.name, failed))
            raise CallEnded(unknown_tool(self.call.name, self._services.tools.names()))
        return tool

    def _decode(self, tool: Tool) -> JsonObject:
        arguments = self._services.decoder_for(tool).decode(self.call.arguments)
        if not isinstance(arguments, dict):
            raise CallEnded(ToolResult(text=arguments.describe(tool.spec.name), failure="invalid_arguments"))
        return arguments

    def _plan(self, tool: Tool, arguments: JsonObject) -> ReadyCall:
        context = self._context()
        plan = self._planned(tool, arguments, context)
        if self._events:
            self._events.started(tool.spec.name, arguments)
        return ReadyCall(tool=tool, context=context, plan=plan)

    def _planned(self, tool: Tool, arguments: JsonObject, context: CallContext) -> Plan:
        plan = tool.plan(arguments, context)
        if isinstance(plan, ToolResult):
            raise CallEnded(plan)
        doubt = self._services.tools.doubt(tool)
        return replace(plan, doubt=f"{doubt}; {plan.doubt}" if plan.doubt else doubt) if doubt else plan

    def _context(self) -> CallContext:
        settings = self._settings
        return CallContext(
            call_id=self.call.id,
            cwd=settings.cwd,
            config=settings.config,
            output_limit=settings.output_limit,
            session=settings.session,
            agent=settings.agent,
            emit=self._events.output if self._events else None,
            spill_folder=settings.spill_folder,
            spill_name=file_name(self.call.id, self._services.next_name()),
            redactor=self._services.redactor,
            given=self.call.arguments,
            timeout=self.call.timeout,
            by_person=self.call.by_person,
            ask_person=self._ask_person,
            client=self._permission.client_link(self.call.id),
        )

    async def _ask_person(self, message: str, form: JsonObject) -> JsonObject | None:
        """Let a person fill in a form that the tool wants."""
        return await self._permission.fill(self._request(self._ready), message, form) if self._ready else None

    async def _get_preview(self) -> str:
        if self._preview is None and self._ready:
            text = await self._ready.tool.preview(self._ready.plan, self._ready.context)
            self._preview = self._services.redactor.redact(text)
        return self._preview or ""

    def _request(self, ready: ReadyCall) -> PermissionRequest:
        return self._permission.request(self.call, ready, self._get_preview)

    async def _permit(self, ready: ReadyCall) -> None:
        """Go on with the reach that the rules, or a person, let the call have."""
        verdict = self._permission.without_rules(ready) or await self._by_rules(ready)
        self._let_reach(ready, verdict)
        if self._events:
            self._events.decided(verdict)
        if verdict.decision == "deny":
            raise CallEnded(ToolResult(text=f"The call was not allowed: {verdict.reason}", failure="denied"))

    async def _by_rules(self, ready: ReadyCall) -> Verdict:
        request = self._request(ready)
        verdict = await self._permission.verdict(request, ready)
        if verdict.decision != "ask":
            return verdict
        self._let_reach(ready, verdict)
        if self._events:
            self._events.asked(request, verdict)
        self._holding.close()  # a person may take long
        self._was_asked = True
        return await self._permission.ask(request, verdict)

    def _let_reach(self, ready: ReadyCall, verdict: Verdict) -> None:
        """From now on the call runs as far as the verdict says; what a question shows is what that would do."""
        self._verdict = verdict
        before = self._ready.context if self._ready else ready.context
        if (verdict.reach, verdict.usual_reach) != (before.reach, before.usual_reach):
            context = replace(before, reach=verdict.reach, usual_reach=verdict.usual_reach)
            self._ready = replace(ready, context=context)
            self._preview = None

    async def _confirm(self, ready: ReadyCall) -> ReadyCall:
        """A tool that runs one call after the other may be elsewhere by now; permission was for where it was.

        Nor need what a rule lets run outside be what it was: calls before this one may have changed it.
        """
        if self._runs_outside_unasked(ready) and await self._permission.why_ask_now(self._request(ready)):
            ready = await self._permit_again(ready)
        if ready.tool.spec.hints.parallel:
            return ready
        plan = self._planned(ready.tool, ready.plan.arguments, ready.context)
        return ready if plan.cwd == ready.plan.cwd else await self._permit_again(replace(ready, plan=plan))

    async def _permit_again(self, ready: ReadyCall) -> ReadyCall:
        self._ready = ready
        try:
            await self._permit(ready)
        except CallChanged as changed:
            self._change(changed.arguments)
            await self._get_permission()
        return self._ready

    def _runs_outside_unasked(self, ready: ReadyCall) -> bool:
        is_line = ready.plan.command is not None and ready.tool.confined
        return is_line and ready.context.reach == "outside" and not self._was_asked

    def _hold_others(self, ready: ReadyCall) -> None:
        """Let no call begin inside while a rule alone lets this one run outside: it obeys what lies in its folder."""
        work = self._services.sandboxes.get("work")
        if work is not None and self._runs_outside_unasked(ready):
            self._holding.enter_context(work.common.inside.held())

    async def _checkpoint(self, ready: ReadyCall) -> None:
        if (sandbox := ready.sandbox(self._services)) and (reason := sandbox.refusal()):
            raise CallEnded(not_run(reason))
        if self._hooks.checkpoints:
            await self._hooks.checkpoints.before(self.call, ready.tool.spec, ready.plan, ready.context.reach)

    def _finish(self, result: ToolResult) -> ToolResult:
        """Redact, record and tell the one result."""
        if self._changed is not None:
            arguments = encode_json(self._changed).decode()
            note = f"[A person changed this call; its arguments were {arguments}]"
            result = replace(result, text=f"{note}\n{result.text}")
        redactor = self._services.redactor
        result = redactor.redact_result(result) if redactor.knows_any else result
        if result.truncated and result.truncated.kept_at:
            self._settings.tidy_outputs()
        self.result = result
        duration = time.monotonic() - self._started
        self._record.end(self.call, self._ready, self._verdict, result, duration)
        if self._events:
            self._events.finished(result, duration)
        self._ready = None  # its context knows us: left in a circle, every call would wait for Python's collector
        return result

    def _crashed(self, error: Exception) -> ToolResult:
        """Something broke that no step foresaw: the traceback goes to the log, a sentence to the model."""
        trace = self._services.redactor.redact("".join(traceback.format_exception(error)))
        log.error("call of '%s' crashed\n%s", self.call.name, trace)
        text = f"The tool '{self.call.name}' could not be run: {type(error).__name__}: {error}"
        return ToolResult(text=text, failure="crash")


def file_name(call_id: str, unique: str) -> str:
    """A name that no other call has, whose id comes from a model and may come again.

    Only harmless characters of the id become part of it.
    """
    return f"{NOT_IN_NAMES.sub('_', call_id[:100])}-{unique}.out"
