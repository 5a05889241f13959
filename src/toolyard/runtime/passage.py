"""One call on its way along the path, step by step."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.core.events import (
    CallFinished,
    CallStarted,
    OutputChunk,
    PermissionAsked,
    PermissionDecided,
    PreviewReady,
)
from toolyard.core.tool import CallContext, ToolResult
from toolyard.permissions.verdict import PermissionRequest, RemembersAnswers, Verdict
from toolyard.process.output import limit_text
from toolyard.runtime.audit.log import AuditUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.core.events import Event, Observer
    from toolyard.core.tool import JsonObject, Plan, Stream, Tool, ToolCall
    from toolyard.runtime.invoke import Invoker
    from toolyard.runtime.redaction import StreamRedactor


log = logging.getLogger("toolyard.calls")
ROOM_FOR_A_NOTE = 512


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a call that do not depend on the tool."""

    session: str
    cwd: Path
    config: JsonObject
    output_limit: int
    spill_folder: Path | None = None
    agent: str = "default"
    workspace: Path | None = None
    """The folder that calls should not leave; the working directory when it is not given."""


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What a call that was found and fits is about to do."""

    tool: Tool
    context: CallContext
    plan: Plan


class Refused(Exception):
    """A step of the path ends the call."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result


class Passage:
    """Carries one call through `prepare` and `execute`; `result` is set exactly once, at its end."""

    def __init__(self, path: Invoker, call: ToolCall, settings: CallSettings, observer: Observer | None) -> None:
        self.call = call
        self.result: ToolResult | None = None
        self._path = path
        self._settings = settings
        self._observer = observer
        self._started = time.monotonic()
        self._ready: Ready | None = None
        self._verdict: Verdict | None = None
        self._preview: str | None = None
        self._recorded: dict[str, Any] | None = None
        self._unrecorded = False
        """Whether the call was refused because it could not be recorded."""
        self._outlets: dict[Stream, StreamRedactor] = {}

    @property
    def parallel(self) -> bool:
        """Whether the tool may run beside others."""
        return self._ready is None or self._ready.tool.spec.hints.parallel

    async def prepare(self) -> None:
        """Find, decode, preview, permit; sets the result when the call ends here."""
        try:
            self._ready = ready = await self._decode(await self._find())
            await self._show_preview()
            self._verdict = await self._permit(ready)
        except Refused as refusal:
            self._finish(refusal.result)
        except asyncio.CancelledError:
            self.cancel()
            raise
        except Exception as error:  # the one broad catch: here and in `execute` a call ends, whatever broke
            self._finish(self._crashed(error))

    async def preview(self) -> str | ToolResult:
        """Find, decode and preview, and nothing more."""
        try:
            self._ready = await self._decode(await self._find())
            return await self._get_preview()
        except Refused as refusal:
            return refusal.result

    async def execute(self) -> ToolResult:
        """Checkpoint, run, limit, redact, audit."""
        if self._ready is None:
            raise RuntimeError("execute comes after a prepare that set no result")
        try:
            self._ready = await self._confirm(self._ready)
            return self._finish(await self._run(self._ready))
        except Refused as refusal:
            return self._finish(refusal.result)
        except asyncio.CancelledError:
            self.cancel()
            raise
        except Exception as error:
            return self._finish(self._crashed(error))

    def cancel(self) -> ToolResult:
        """End the call as cancelled, unless it has ended already."""
        return self.result or self._finish(ToolResult(text="The call was cancelled.", failure="cancelled"))

    async def _find(self) -> Tool:
        tool = await self._path.tools.find(self.call.name)
        if tool is None:
            raise Refused(unknown_tool(self.call.name, self._path.tools.names()))
        return tool

    async def _decode(self, tool: Tool) -> Ready:
        arguments = self._path.decoder_for(tool).decode(self.call.arguments)
        if not isinstance(arguments, dict):
            raise Refused(ToolResult(text=arguments.describe(tool.spec.name), failure="invalid_arguments"))
        context = self._context()
        plan = tool.plan(arguments, context)
        if isinstance(plan, ToolResult):
            raise Refused(plan)
        if self._observer:
            shown = self._path.redactor.redact_all(arguments)
            self._tell(CallStarted(call_id=self.call.id, tool=tool.spec.name, arguments=shown))
        return Ready(tool=tool, context=context, plan=plan)

    def _context(self) -> CallContext:
        settings = self._settings
        return CallContext(
            call_id=self.call.id,
            cwd=settings.cwd,
            config=settings.config,
            output_limit=settings.output_limit,
            emit=self._emit if self._observer else None,
            spill_to=settings.spill_folder / f"{file_name(self.call.id)}.out" if settings.spill_folder else None,
            given=self.call.arguments,
        )

    async def _show_preview(self) -> None:
        """Somebody watches: say what is about to happen. Nobody: the preview waits until permission needs it."""
        if self._observer:
            self._tell(PreviewReady(call_id=self.call.id, preview=await self._get_preview()))

    async def _get_preview(self) -> str:
        if self._preview is None and self._ready:
            text = await self._ready.tool.preview(self._ready.plan, self._ready.context)
            self._preview = self._path.redactor.redact(text)
        return self._preview or ""

    async def _confirm(self, ready: Ready) -> Ready:
        """A tool that runs one call after the other may be elsewhere by now; permission was for where it was."""
        if ready.tool.spec.hints.parallel:
            return ready
        plan = ready.tool.plan(ready.plan.arguments, ready.context)
        if isinstance(plan, ToolResult):
            raise Refused(plan)
        if plan.cwd == ready.plan.cwd:
            return ready
        ready = replace(ready, plan=plan)
        self._verdict = await self._permit(ready)
        return ready

    def _request(self, ready: Ready) -> PermissionRequest:
        settings, sandbox = self._settings, self._path.sandbox
        return PermissionRequest(
            call_id=self.call.id,
            tool=ready.tool.spec,
            kind=ready.tool.kind,
            plan=ready.plan,
            preview=self._get_preview,
            agent=settings.agent,
            session=settings.session,
            workspace=settings.workspace or settings.cwd,
            kept_in=not (sandbox and is_confined(ready.tool) and sandbox.is_missing),
            redact=self._path.redactor.redact,
        )

    async def _permit(self, ready: Ready) -> Verdict:
        request = self._request(ready)
        verdict = await self._path.permissions.decide(request)
        if verdict.decision == "ask":
            self._tell(PermissionAsked(call_id=self.call.id, reason=self._path.redactor.redact(verdict.reason)))
            verdict = await self._ask(request, verdict)
        if self._observer:
            reason = self._path.redactor.redact(verdict.reason)
            self._tell(PermissionDecided(call_id=self.call.id, decision=verdict.decision, reason=reason))
        if verdict.decision == "deny":
            self._verdict = verdict
            raise Refused(ToolResult(text=f"The call was not allowed: {verdict.reason}", failure="denied"))
        return verdict

    async def _ask(self, request: PermissionRequest, verdict: Verdict) -> Verdict:
        """What a person, or whoever stands in for one, makes of what the rules leave open."""
        from toolyard.permissions.approval import ask

        policy = self._path.permissions
        timeout = policy.ask_timeout(request.agent) if isinstance(policy, RemembersAnswers) else None
        answer = await ask(self._path.approver, request, verdict, timeout)
        reason = answer.reason if answer.allowed else f"{answer.reason} (asked because of {verdict.reason})"
        if answer.allowed and isinstance(policy, RemembersAnswers):
            policy.approved(request)
        if answer.allowed and answer.scope != "once" and isinstance(policy, RemembersAnswers):
            reason = f"{reason}; {policy.remember(request, verdict, answer)}"
        return replace(verdict, decision="allow" if answer.allowed else "deny", reason=reason)

    async def _run(self, ready: Ready) -> ToolResult:
        if (sandbox := self._path.sandbox) and is_confined(ready.tool) and (reason := sandbox.refusal()):
            raise Refused(ToolResult(text=f"The call was not run: {reason}", failure="denied"))
        await self._path.checkpoints.before(self.call, ready.tool.spec, ready.plan)
        try:
            self._recorded = self._record()
            self._path.audit.write({"event": "start", **self._recorded})
        except AuditUnavailable as error:
            self._unrecorded = True
            raise Refused(ToolResult(text=f"The call was not run: {error}", failure="denied")) from error
        result = await ready.tool.run(ready.plan, ready.context)
        for outlet in self._outlets.values():
            outlet.finish()
        return self._swept(self._limit(result))

    def _swept(self, result: ToolResult) -> ToolResult:
        """Nothing that a tool made may be obeyed later outside; if something had to be moved, that is said."""
        moved = self._path.sandbox.sweep() if self._path.sandbox else {}
        notes = [f"[{path} would be obeyed outside the sandbox, so it was moved to {to}]" for path, to in moved.items()]
        return replace(result, text="\n".join([result.text, *notes])) if notes else result

    def _crashed(self, error: Exception) -> ToolResult:
        """Something broke that no step foresaw: the traceback goes to the log, a sentence to the model."""
        trace = self._path.redactor.redact("".join(traceback.format_exception(error)))
        log.error("call of '%s' crashed\n%s", self.call.name, trace)
        text = f"The tool '{self.call.name}' could not be run: {type(error).__name__}: {error}"
        return ToolResult(text=text, failure="crash")

    def _limit(self, result: ToolResult) -> ToolResult:
        """No kind's text is longer than the limit, but for the line that says what a kind left out itself."""
        text, truncation = limit_text(result.text, self._settings.output_limit + ROOM_FOR_A_NOTE)
        return replace(result, text=text, truncated=result.truncated or truncation) if truncation else result

    def _finish(self, result: ToolResult) -> ToolResult:
        """Redact, record and tell the one result."""
        if self._path.redactor.knows_any:
            result = self._redacted(result)
        self.result = result
        duration = time.monotonic() - self._started
        if not self._unrecorded:
            self._record_end(result, duration)
        if self._observer:
            self._tell(CallFinished(call_id=self.call.id, result=result, duration=duration))
        return result

    def _record_end(self, result: ToolResult, duration: float) -> None:
        recorded = self._recorded or self._record()
        if self._ready:
            recorded["sandbox"] = self._sandbox_of(self._ready.tool)  # only now it is sure which one could be built
        try:
            self._path.audit.write({"event": "end", **recorded, **outcome_record(result, duration)})
        except AuditUnavailable:
            log.error("call %s ended but its end could not be recorded", self.call.id)

    def _record(self) -> dict[str, Any]:
        """What the audit says of the call, before and after."""
        record: dict[str, Any] = {"session": self._settings.session, "call_id": self.call.id, "tool": self.call.name}
        if self._ready:
            record.update(self._planned(self._ready))
        if self._verdict:
            verdict = self._verdict
            redact = self._path.redactor.redact
            rule = redact(verdict.rule) if verdict.rule else verdict.rule
            record.update(decision=verdict.decision, rule=rule, reason=redact(verdict.reason))
        return record

    def _planned(self, ready: Ready) -> dict[str, Any]:
        plan, redactor = ready.plan, self._path.redactor
        record: dict[str, Any] = {
            "kind": ready.tool.kind,
            "cwd": str(plan.cwd or self._settings.cwd),
            "envKeys": plan.env_keys,
            "sandbox": self._sandbox_of(ready.tool),
        }
        if plan.command is not None:
            record["command"] = redactor.redact(plan.command)
        else:
            record["argv"] = [redactor.redact(word) for word in plan.argv] if redactor.knows_any else plan.argv
        return record

    def _sandbox_of(self, tool: Tool) -> str:
        """What keeps a tool in; one that runs in the application itself, or elsewhere, says so."""
        if self._path.sandbox is None:
            return "off"
        return self._path.sandbox.name if is_confined(tool) else "none"

    def _redacted(self, result: ToolResult) -> ToolResult:
        """The result without secrets: in its text, in the data beside it, and in the file that has the whole."""
        redactor = self._path.redactor
        cut = result.truncated is not None
        if result.truncated and result.truncated.kept_at:
            redactor.redact_file(result.truncated.kept_at)
        text = redactor.redact_cut(result.text) if cut else redactor.redact(result.text)
        return replace(result, text=text, data=result.data and redactor.redact_all(result.data))

    def _emit(self, stream: Stream, text: str) -> None:
        """Pass partial output on, less secrets."""
        if stream not in self._outlets:
            self._outlets[stream] = self._path.redactor.stream(
                lambda piece: self._tell(OutputChunk(call_id=self.call.id, stream=stream, text=piece))
            )
        self._outlets[stream].feed(text)

    def _tell(self, event: Event) -> None:
        """An observer that breaks must not break the call."""
        if self._observer:
            try:
                self._observer(event)
            except Exception:
                log.exception("an observer failed on %s", type(event).__name__)


def is_confined(tool: Tool) -> bool:
    """Whether a tool does its work in children; one that does it in the application itself has `confined = False`."""
    return bool(getattr(tool, "confined", True))


def unknown_tool(name: str, known: Any) -> ToolResult:
    """Name the nearest, or all when they are few."""
    import difflib

    close = difflib.get_close_matches(name, known, n=3)
    if close:
        help_text = f"Did you mean {' or '.join(repr(other) for other in close)}?"
    else:
        help_text = f"Known tools: {', '.join(known)}." if known else "No tools are loaded."
    return ToolResult(text=f"There is no tool named '{name}'. {help_text}", failure="unknown_tool")


def outcome_record(result: ToolResult, duration: float) -> dict[str, Any]:
    return {
        "failure": result.failure,
        "exit": result.exit_code,
        "signal": result.signal,
        "timed_out": result.failure == "timeout",
        "ms": round(duration * 1000, 3),
        "bytes_out": result.bytes_out,
        "truncated": result.truncated is not None,
    }


def file_name(call_id: str) -> str:
    """A call id comes from a model; only harmless characters of it become part of a path."""
    return "".join(char if char.isalnum() or char in "-_" else "_" for char in call_id)[:100]
