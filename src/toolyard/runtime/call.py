"""The one path of every call, step by step.

find → decode → plan → preview → permit → checkpoint → run → limit → redact → audit → result

No kind of tool can leave a step out, because no kind knows of the path: a tool has a spec, a plan, a preview and a run,
and everything around them is here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from toolyard.core.content import checked, text_and_attachments
from toolyard.core.reach import nearest_of
from toolyard.core.tool import CallContext, JsonInput, ToolResult
from toolyard.permissions.verdict import ALLOWED, AllowAll, PermissionRequest, RemembersAnswers, Verdict, answer_always
from toolyard.process.output import limit_text
from toolyard.process.waiting import printed_before
from toolyard.runtime.audit.log import AuditUnavailable
from toolyard.runtime.audit.record import outcome_record, plan_record, verdict_record
from toolyard.runtime.call_events import CallEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolyard.core.arguments.decoder import ArgumentDecoder
    from toolyard.core.events import Observer
    from toolyard.core.problems import Problem
    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject, Plan, Tool, ToolCall, ToolSpec
    from toolyard.permissions.verdict import Approver, PermissionPolicy
    from toolyard.process.sandbox.sandbox import Sandbox
    from toolyard.runtime.audit.log import AuditLog
    from toolyard.runtime.redaction import Redactor

log = logging.getLogger("toolyard.calls")
CANCELLED = "The call was cancelled."
STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")
"""What no plain text has in it."""
NOT_IN_NAMES = re.compile(r"[^\w-]")
ROOM_FOR_A_NOTE = 512
TEXT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


class ToolFinder(Protocol):
    """Where tools are looked up by name."""

    async def find(self, name: str) -> Tool | None:
        """The tool of that name as it is now."""

    def names(self) -> Sequence[str]:
        """The names there are, for a helpful answer to one there is not."""

    def failure(self, name: str) -> Problem | None:
        """Why there is no tool of that name, if it is one that could not be loaded."""


class Checkpointer(Protocol):
    """Keeps states of a workspace, and whatever else must be kept before a call runs."""

    async def before(self, call: ToolCall, spec: ToolSpec, plan: Plan, reach: Reach) -> None:
        """A call was permitted and is about to run; what this raises ends it."""


class CallHooks(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation adds to the path of its calls."""

    approver: Approver | None = None
    """Who is asked instead of the application's own."""
    checkpoints: Checkpointer | None = None
    callers: tuple[tuple[str, str], ...] = ()
    """The agents, with their sessions, on whose behalf the calls are made."""


NO_HOOKS = CallHooks()


class CallSettings(msgspec.Struct, kw_only=True):
    """The conditions of a call that do not depend on the tool."""

    session: str
    cwd: Path
    """Where calls work: the folder that is given here, with `working_directory` of the configuration below it."""
    config: JsonObject
    output_limit: int
    spill_folder: Path | None = None
    reads_on: bool = False
    """Whether the agent has the tool that reads on in long output."""
    tidy_outputs: Callable[[], None] = lambda: None
    """Drops what is kept whole and is too old, or too much; done after each call that adds to it."""
    agent: str = "default"

    def __post_init__(self) -> None:
        # The one place where it is resolved: every kind of tool, and permissions, take the folder from here.
        configured = self.config.get("working_directory")
        if isinstance(configured, str) and configured:
            self.cwd = self.cwd / configured


class CallServices:
    """What the calls of one agent have in common."""

    def __init__(
        self,
        *,
        tools: ToolFinder,
        audit: AuditLog,
        redactor: Redactor,
        permissions: PermissionPolicy | None = None,
        approver: Approver | None = None,
        sandboxes: Mapping[Reach, Sandbox | None] | None = None,
    ) -> None:
        self.tools = tools
        self.audit = audit
        self.redactor = redactor
        self.permissions = permissions or AllowAll()
        self.approver = approver or answer_always(allowed=False, reason="nobody is there to ask")
        self.sandboxes = sandboxes or {}
        """What keeps the children of tools in, by how far they may reach."""
        self._decoders: WeakKeyDictionary[Tool, ArgumentDecoder] = WeakKeyDictionary()

    def decoder_for(self, tool: Tool) -> ArgumentDecoder:
        """The tool's decoder, made once for each version of the tool."""
        decoder = self._decoders.get(tool)
        if decoder is None:
            from toolyard.core.arguments.decoder import ArgumentDecoder

            shape = tool.spec.input
            if isinstance(shape, JsonInput):
                decoder = ArgumentDecoder(shape.schema, defaults=shape.defaults)
            else:
                decoder = ArgumentDecoder(TEXT_SCHEMA)
            self._decoders[tool] = decoder
        return decoder


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What a call that was found and fits is about to do."""

    tool: Tool
    context: CallContext
    plan: Plan


class CallEnded(Exception):
    """A step of the path ends the call."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result


class CallChanged(Exception):
    """A person wants the call with other arguments."""

    def __init__(self, arguments: JsonObject) -> None:
        self.arguments = arguments


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
        self._hooks = hooks
        self.result: ToolResult | None = None
        self._services = services
        self._settings = settings
        self._events = CallEvents(call.id, observer, services.redactor) if observer else None
        self._started = time.monotonic()
        self._ready: Ready | None = None
        self._verdict: Verdict | None = None
        self._preview: str | None = None
        self._recorded: dict[str, Any] | None = None
        self._changed: JsonObject | None = None
        """The arguments that a person gave it."""
        self._unrecorded = False
        """Whether the call was refused because it could not be recorded."""

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

    async def _get_permission(self) -> None:
        """Until the call may run or ends here; a person may change it instead, and it is looked at anew."""
        while True:
            tool = await self._find()
            self._ready = ready = self._plan(tool, self._decode(tool))
            self._preview = None
            await self._show_preview()
            try:
                return await self._permit(ready)
            except CallChanged as changed:
                self._change(changed.arguments)

    def _change(self, arguments: JsonObject) -> None:
        self.call = replace(self.call, arguments=arguments)
        self._changed = arguments

    async def preview(self) -> str | ToolResult:
        """Find, decode, plan and preview, and nothing more."""
        try:
            tool = await self._find()
            self._ready = self._plan(tool, self._decode(tool))
            return await self._get_preview()
        except CallEnded as ended:
            return ended.result

    async def execute(self) -> ToolResult:
        """Checkpoint, run, limit, redact, audit."""
        if self._ready is None:
            raise RuntimeError("execute comes after a prepare that set no result")
        try:
            self._ready = ready = await self._confirm(self._ready)
            await self._checkpoint(ready)
            self._record_start(ready)
            return self._finish(self._limit(await self._run(ready)))
        except CallEnded as ended:
            return self._finish(ended.result)
        except asyncio.CancelledError as error:
            self.cancel(error)
            raise
        except Exception as error:
            return self._finish(self._crashed(error))

    def cancel(self, error: asyncio.CancelledError | None = None) -> ToolResult:
        """End the call as cancelled, with what it had printed, unless it has ended already."""
        if self.result:
            return self.result
        result, printed = ToolResult(text=CANCELLED, failure="cancelled"), printed_before(error)
        if printed and printed.text:
            text = f"{CANCELLED} Output so far:\n{printed.text}"
            result = replace(result, text=text, bytes_out=printed.total_bytes, truncated=printed.truncated)
        return self._finish(self._limit(result))

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

    def _plan(self, tool: Tool, arguments: JsonObject) -> Ready:
        context = self._context()
        plan = tool.plan(arguments, context)
        if isinstance(plan, ToolResult):
            raise CallEnded(plan)
        if self._events:
            self._events.started(tool.spec.name, arguments)
        return Ready(tool=tool, context=context, plan=plan)

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
            spill_to=settings.spill_folder / file_name(self.call.id) if settings.spill_folder else None,
            given=self.call.arguments,
            timeout=self.call.timeout,
            ask_person=self._ask_person,
        )

    async def _ask_person(self, message: str, form: JsonObject) -> JsonObject | None:
        """Let a person fill in a form that the tool wants, by whoever is asked about calls."""
        from toolyard.permissions.approval import ask_to_fill

        if self._ready is None:
            return None
        policy, request = self._services.permissions, self._request(self._ready)
        timeout = policy.ask_timeout(request.agent) if isinstance(policy, RemembersAnswers) else None
        return await ask_to_fill(self._hooks.approver or self._services.approver, request, message, form, timeout)

    async def _show_preview(self) -> None:
        """Somebody watches: say what is about to happen. Nobody: the preview waits until permission needs it."""
        if self._events:
            self._events.preview(await self._get_preview())

    async def _get_preview(self) -> str:
        if self._preview is None and self._ready:
            text = await self._ready.tool.preview(self._ready.plan, self._ready.context)
            self._preview = self._services.redactor.redact(text)
        return self._preview or ""

    async def _permit(self, ready: Ready) -> None:
        """Go on with the reach that the rules, or a person, let the call have."""
        request = self._request(ready)
        verdict = await self._services.permissions.decide(request)
        if verdict.decision == "allow" and ready.plan.doubt and verdict.rule != ALLOWED.rule:
            verdict = replace(verdict, decision="ask", reason=ready.plan.doubt, rule=None, offers=())
        if not ready.tool.confined:  # it works in the application itself or elsewhere, where no sandbox is
            verdict = replace(verdict, reach="outside", usual_reach="outside")
        self._let_reach(ready, verdict)
        if verdict.decision == "ask":
            if self._events:
                self._events.asked(verdict)
            verdict = await self._ask(request, verdict)
            self._let_reach(ready, verdict)
        if self._events:
            self._events.decided(verdict)
        if verdict.decision == "deny":
            raise CallEnded(ToolResult(text=f"The call was not allowed: {verdict.reason}", failure="denied"))

    def _let_reach(self, ready: Ready, verdict: Verdict) -> None:
        """From now on the call runs as far as the verdict says; what a question shows is what that would do."""
        self._verdict = verdict
        before = self._ready.context if self._ready else ready.context
        if (verdict.reach, verdict.usual_reach) != (before.reach, before.usual_reach):
            context = replace(before, reach=verdict.reach, usual_reach=verdict.usual_reach)
            self._ready = replace(ready, context=context)
            self._preview = None

    def _request(self, ready: Ready) -> PermissionRequest:
        settings, sandbox = self._settings, self._services.sandboxes.get("work")
        own, shown = sandbox.temporary() if sandbox and ready.tool.confined else ((), ())
        return PermissionRequest(
            call_id=self.call.id,
            tool=ready.tool.spec,
            kind=ready.tool.kind,
            plan=ready.plan,
            preview=self._get_preview,
            agent=settings.agent,
            session=settings.session,
            callers=self._hooks.callers,
            workspace=settings.cwd,
            kept_in=not (sandbox and ready.tool.confined and sandbox.is_missing),
            kept=sandbox.keeps if sandbox and ready.tool.confined else "not",
            temporary=own,
            not_temporary=shown,
            redact=self._services.redactor.redact,
        )

    async def _ask(self, request: PermissionRequest, verdict: Verdict) -> Verdict:
        """What a person, or whoever stands in for one, makes of what the rules leave open."""
        from toolyard.permissions.approval import ask

        policy = self._services.permissions
        if verdict.reach != verdict.usual_reach:
            await self._get_preview()  # a tool may have to take something along, which is what was there when it asked
        timeout = policy.ask_timeout(request.agent) if isinstance(policy, RemembersAnswers) else None
        answer = await ask(self._hooks.approver or self._services.approver, request, verdict, timeout)
        if answer.instead is not None and not answer.allowed:
            raise CallChanged(answer.instead)
        reason = answer.reason if answer.allowed else f"{answer.reason} (asked because of {verdict.reason})"
        reach = nearest_of(verdict.reach, answer.reach) if answer.reach else verdict.reach
        if answer.allowed and isinstance(policy, RemembersAnswers):
            policy.approved(request, replace(verdict, reach=reach))
        if answer.allowed and answer.scope != "once" and isinstance(policy, RemembersAnswers):
            reason = f"{reason}; {policy.remember(request, verdict, answer)}"
        return replace(verdict, decision="allow" if answer.allowed else "deny", reason=reason, reach=reach)

    async def _confirm(self, ready: Ready) -> Ready:
        """A tool that runs one call after the other may be elsewhere by now; permission was for where it was."""
        if ready.tool.spec.hints.parallel:
            return ready
        plan = ready.tool.plan(ready.plan.arguments, ready.context)
        if isinstance(plan, ToolResult):
            raise CallEnded(plan)
        if plan.cwd == ready.plan.cwd:
            return ready
        self._ready = replace(ready, plan=plan)
        try:
            await self._permit(self._ready)
        except CallChanged as changed:
            self._change(changed.arguments)
            await self._get_permission()
        return self._ready

    async def _checkpoint(self, ready: Ready) -> None:
        if ready.tool.confined and (sandbox := self._sandbox_of(ready)) and (reason := sandbox.refusal()):
            raise CallEnded(ToolResult(text=f"The call was not run: {reason}", failure="denied"))
        if self._hooks.checkpoints:
            await self._hooks.checkpoints.before(self.call, ready.tool.spec, ready.plan, ready.context.reach)

    async def _run(self, ready: Ready) -> ToolResult:
        """Run it. Nothing that a tool made may be obeyed later outside; if something had to be moved, that is said."""
        sandbox = self._sandbox_of(ready) if ready.tool.confined else None
        refused_before = sandbox.refused_hosts if sandbox else 0
        work = self._services.sandboxes.get("work")
        if work:
            await work.exchange_repositories()
        result = await ready.tool.run(ready.plan, ready.context)
        if self._events:
            self._events.output_ended()
        if sandbox and has_failed(result):
            result = self._explained(result, sandbox, refused_before)
        if work:
            await work.exchange_repositories()
        moved = work.sweep() if work else {}
        notes = [f"[{path} would be obeyed outside the sandbox, so it was {put(to)}]" for path, to in moved.items()]
        notes += work.take_notes() if work else []
        return replace(result, text="\n".join([result.text, *notes])) if notes else result

    def _explained(self, result: ToolResult, sandbox: Sandbox, refused_before: int) -> ToolResult:
        """The result with a line on what the sandbox stopped, if it did."""
        if sandbox.is_missing or self._verdict is None:
            return result
        from toolyard.runtime.sandbox_notes import CallSurroundings, notes_on

        refused = sandbox.refusals_since(refused_before)
        around = CallSurroundings(
            reach=self._verdict.reach,
            policy=sandbox.policy,
            refused=refused,
            refused_sockets=sandbox.take_refused_sockets(),
            nested=sandbox.layout.nested,
            writable=[*sandbox.layout.writable(), *sandbox.temporary()[0]],
            own_environment=sys.prefix if sys.prefix != sys.base_prefix else "",
            has_mounts=sandbox.name.partition(" ")[0] != "landlock",
        )
        notes = notes_on(result, around)
        return replace(result, text="\n".join([result.text, *notes])) if notes else result

    def _limit(self, result: ToolResult) -> ToolResult:
        """No kind's text has what a model cannot read in it, or is longer than the limit, but for the line that says
        what a kind left out itself; nor has a result more attached, or anything else, than it says.
        """
        if result.attachments:
            text, attachments = text_and_attachments(checked(result.content))
            result = replace(result, text=text, attachments=attachments)
        seen = result.text
        if STRANGE.search(seen):
            from toolyard.core.screen_text import readable  # seldom needed, and slow to import

            seen = readable(seen)
        if result.truncated and result.truncated.kept_at and self._settings.reads_on:
            from toolyard.runtime.output_reader import note_of

            place = f"the whole is in {result.truncated.kept_at}"
            seen = seen.replace(f"; {place} ...]", f"; {place}; {note_of(result.truncated)} ...]")
        text, truncation = limit_text(seen, self._settings.output_limit + ROOM_FOR_A_NOTE)
        if truncation is None and seen is result.text:
            return result
        return replace(result, text=text, truncated=result.truncated or truncation)

    def _finish(self, result: ToolResult) -> ToolResult:
        """Redact, record and tell the one result."""
        if self._changed is not None:
            arguments = msgspec.json.encode(self._changed).decode()
            note = f"[A person changed this call; its arguments were {arguments}]"
            result = replace(result, text=f"{note}\n{result.text}")
        if self._services.redactor.knows_any:
            self._redact_files()
            result = self._services.redactor.redact_result(result)
        if result.truncated and result.truncated.kept_at:
            self._settings.tidy_outputs()
        self.result = result
        duration = time.monotonic() - self._started
        if not self._unrecorded:
            self._record_end(result, duration)
        if self._events:
            self._events.finished(result, duration)
        return result

    def _redact_files(self) -> None:
        """Also what is kept whole and the result does not tell of, as where a tool failed or was cancelled."""
        context = self._ready.context if self._ready else None
        for file in (context.spill_to, context.spill_errors_to) if context else ():
            if file and os.path.lexists(file):
                self._services.redactor.redact_file(file)

    def _record_start(self, ready: Ready) -> None:
        """Nothing runs that is not on record first, unless policy lets it."""
        try:
            self._recorded = self._record(ready)
            self._services.audit.write({"event": "start", **self._recorded})
        except AuditUnavailable as error:
            self._unrecorded = True
            raise CallEnded(ToolResult(text=f"The call was not run: {error}", failure="denied")) from error

    def _record_end(self, result: ToolResult, duration: float) -> None:
        recorded = self._recorded or self._record(self._ready)
        if self._ready:
            recorded["sandbox"] = self._sandbox_name(self._ready)  # only now it is sure which one could be built
        try:
            self._services.audit.write({"event": "end", **recorded, **outcome_record(result, duration)})
        except AuditUnavailable:
            log.error("call %s ended but its end could not be recorded", self.call.id)

    def _record(self, ready: Ready | None) -> dict[str, Any]:
        """What the audit says of the call, before and after."""
        redactor = self._services.redactor
        record: dict[str, Any] = {"session": self._settings.session, "call_id": self.call.id, "tool": self.call.name}
        if ready:
            record |= plan_record(ready.tool, ready.plan, self._settings.cwd, self._sandbox_name(ready), redactor)
        if self._verdict:
            sandbox = self._services.sandboxes.get(self._verdict.reach)
            kept_in = sandbox is not None and not sandbox.is_missing
            record |= verdict_record(self._verdict, redactor, kept_in=kept_in)
        return record

    def _sandbox_of(self, ready: Ready) -> Sandbox | None:
        """What keeps the call in."""
        return self._services.sandboxes.get(ready.context.reach)

    def _sandbox_name(self, ready: Ready) -> str:
        """What keeps a call in; one whose tool runs in the application itself, or that was let out, says so."""
        if self._services.sandboxes.get("work") is None:
            return "off"
        sandbox = self._sandbox_of(ready)
        return sandbox.name if sandbox and ready.tool.confined else "none"

    def _crashed(self, error: Exception) -> ToolResult:
        """Something broke that no step foresaw: the traceback goes to the log, a sentence to the model."""
        trace = self._services.redactor.redact("".join(traceback.format_exception(error)))
        log.error("call of '%s' crashed\n%s", self.call.name, trace)
        text = f"The tool '{self.call.name}' could not be run: {type(error).__name__}: {error}"
        return ToolResult(text=text, failure="crash")


def put(to: str) -> str:
    """What became of something that was swept away: its new path, or what was done with it."""
    return f"moved to {to}" if to.startswith("/") else to


def has_failed(result: ToolResult) -> bool:
    """Whether something in it went wrong that the sandbox may have caused."""
    return result.failure in ("exit_code", "timeout") or bool(result.exit_code)


def not_loaded(name: str, problem: Problem) -> ToolResult:
    """The tool would be there, but for a fault that its author or the user has to mend."""
    place = f"{problem.where}: " if problem.where else ""
    return ToolResult(text=f"The tool '{name}' could not be loaded: {place}{problem.sentence}", failure="unknown_tool")


def unknown_tool(name: str, known: Sequence[str]) -> ToolResult:
    """Name the nearest, or all when they are few."""
    import difflib

    close = difflib.get_close_matches(name, known, n=3)
    if close:
        help_text = f"Did you mean {' or '.join(repr(other) for other in close)}?"
    else:
        help_text = f"Known tools: {', '.join(known)}." if known else "No tools are loaded."
    return ToolResult(text=f"There is no tool named '{name}'. {help_text}", failure="unknown_tool")


def file_name(call_id: str) -> str:
    """A name that no other call has, whose id comes from a model and may come again.

    Only harmless characters of the id become part of it.
    """
    return f"{NOT_IN_NAMES.sub('_', call_id[:100])}-{os.urandom(4).hex()}.out"
