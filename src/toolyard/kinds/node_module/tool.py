"""A tool of a Node package: called in the package's own host, streamed, limited and stopped when it must be."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.core.content import TextPart, part_of, text_and_attachments, text_of
from toolyard.core.text import call_line, one_line, seconds
from toolyard.core.tool import Hints, JsonInput, Plan, ToolResult, ToolSpec
from toolyard.core.wire.content_forms import part_of_mcp
from toolyard.errors import NoSandbox, ProcessError
from toolyard.kinds.node_module.hosts import TimedOut
from toolyard.process.json_rpc import RpcError, RpcLost, RpcResult
from toolyard.process.output import Captured, HeadTail
from toolyard.process.waiting import cancelled_with

if TYPE_CHECKING:
    from toolyard.core.content import Part
    from toolyard.core.tool import CallContext, Failure, JsonObject
    from toolyard.kinds.node_module.hosts import HostReply, NodeHosts
    from toolyard.kinds.node_module.listing import ListedTool
    from toolyard.kinds.node_module.package import DeclaredTool


THROWN = 1
"""With which Node itself ends when nobody catches an error."""


class NodeModuleTool:
    """One tool of one version of a package."""

    kind = "node_module"
    confined = True

    def __init__(self, *, listed: ListedTool, declared: DeclaredTool, hosts: NodeHosts) -> None:
        self.listed = listed
        self._declared = declared
        self._hosts = hosts
        self.spec = ToolSpec(
            name=listed.id,
            description=listed.description,
            input=JsonInput(schema=listed.parameters),
            timeout=hosts.timeout,
            hints=Hints(read_only=listed.read_only, destructive=listed.destructive, parallel=listed.parallel),
        )

    @property
    def entry(self) -> str:
        return self._declared.entry

    @property
    def file(self) -> Path:
        return Path(self._hosts.package.root, self._declared.entry)

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """Which module is called with what; a command line has no part in it."""
        return Plan(
            arguments=arguments,
            argv=[self._hosts.node, str(self.file), self.spec.name],
            cwd=context.cwd,
            env_keys=self._hosts.runner.passed_names(),
        )

    async def preview(self, plan: Plan, context: CallContext) -> str:
        """The first line of what the module's own `preview` gives; without one, the call itself."""
        if not self.listed.preview:
            return call_line(self.spec.name, plan.arguments)
        try:
            reply = await self._ask("tools/preview", plan, context)
        except ProcessError:
            return ""
        return one_line(text_of(parts_of(reply.result))) if isinstance(reply, RpcResult) else ""

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Call it; what it yields is heard while it runs."""
        output = Output(context)
        try:
            reply = await self._ask("tools/call", plan, context, output=output)
        except asyncio.CancelledError as error:
            raise cancelled_with(output.answer(None)) from error
        except NoSandbox:
            raise
        except ProcessError as error:
            return self._failed(f"could not be run: {error}", output, failure="crash")
        match reply:
            case RpcResult(result=result):
                return self._answered(result, output)
            case RpcError(message=message):
                return self._failed(f"could not be run: {message}", output, failure="crash")
            case RpcLost() as lost:
                return self._lost(lost, output)
            case TimedOut():
                limit = seconds(context.timeout or self._hosts.timeout)
                return self._failed(f"timed out after {limit}", output, failure="timeout")

    async def _ask(self, method: str, plan: Plan, context: CallContext, *, output: Output | None = None) -> HostReply:
        config = {key: context.config[key] for key in self.listed.config_keys if key in context.config}
        about = {"toolyard/config": config, "toolyard/callId": context.call_id}
        return await self._hosts.ask(
            method,
            {"name": self.spec.name, "arguments": plan.arguments, "_meta": about},
            cwd=str(plan.cwd or context.cwd),
            reach="look" if method == "tools/preview" else context.reach,
            on_progress=output.take if output else None,
            subject=f"a call of '{self.spec.name}'",
            timeout=context.timeout,
        )

    def _answered(self, result: JsonObject, output: Output) -> ToolResult:
        parts = parts_of(result)
        text, attachments = text_and_attachments(parts)
        if result.get("_meta", {}).get("toolyard/thrown"):
            return self._failed(f"failed: {text}", output, failure="exit_code", exit_code=THROWN)
        captured = output.answer(text if any(isinstance(part, TextPart) for part in parts) else None)
        failed = result.get("isError") is True
        return ToolResult(
            text=captured.text,
            failure="exit_code" if failed else None,
            exit_code=THROWN if failed else 0,
            bytes_out=captured.total_bytes,
            truncated=captured.truncated,
            attachments=attachments,
        )

    def _lost(self, lost: RpcLost, output: Output) -> ToolResult:
        """The host ended under the call: by itself, as any process may, or because of another call."""
        words = f"was lost with its Node host: {lost.reason}\nThe next call starts a new host."
        how: Failure = "crash" if lost.exit_code is None else "exit_code"
        return self._failed(words, output, failure=how, exit_code=lost.exit_code, signal=lost.signal)

    def _failed(self, words: str, output: Output, **how: Any) -> ToolResult:
        """What went wrong, and what it had streamed by then."""
        streamed = output.answer(None)
        below = f"\noutput:\n{streamed.text}" if streamed.text.strip() else ""
        text = f"Error: '{self.spec.name}' {words}{below}"
        return ToolResult(text=text, bytes_out=streamed.total_bytes, truncated=streamed.truncated, **how)


class Output:
    """What comes of a call before its answer, kept in bounded memory."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._streamed: HeadTail | None = None
        self._sent_ahead: HeadTail | None = None

    def take(self, progress: JsonObject) -> None:
        """A piece of what is streamed, or of an answer that is too long for one message."""
        text = str(progress.get("message", ""))
        if (progress.get("_meta") or {}).get("toolyard/answer"):
            self._sent_ahead = self._add(self._sent_ahead, text)
            return
        self._streamed = self._add(self._streamed, text)
        if self._context.emit:
            self._context.emit("stdout", text)

    def answer(self, text: str | None) -> Captured:
        """The final text: the answer itself, or else what was sent ahead of it, or else what was streamed."""
        kept = self._add(None, text) if text is not None else self._sent_ahead or self._streamed
        return kept.finish() if kept else Captured(text="", total_bytes=0)

    def _add(self, kept: HeadTail | None, text: str) -> HeadTail:
        kept = kept or HeadTail(self._context.output_limit, spill_to=self._context.spill_to)
        kept.add(text.encode("utf-8", "replace"))
        return kept


def parts_of(result: JsonObject) -> list[Part]:
    """The parts of an answer: MCP's, and bytes that are what their content makes them, or else text."""
    return [part_of_bytes(form) or part_of_mcp(form) for form in result.get("content", ())]


def part_of_bytes(form: JsonObject) -> Part | None:
    if form.get("type") != "bytes":
        return None
    data = base64.b64decode(form["data"])
    return part_of(data) or TextPart(text=data.decode("utf-8", "replace"))
