"""Python code as a tool: called in the loop or in a thread, limited in time, its exceptions results."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from toolyard.core.content import text_and_attachments
from toolyard.core.problems import Problem
from toolyard.core.text import call_line, one_line, seconds
from toolyard.core.tool import Hints, JsonInput, Plan, TextInput, ToolResult, ToolSpec
from toolyard.errors import ToolError
from toolyard.kinds.python_function.returned import as_text, parts_of
from toolyard.kinds.python_function.signatures.signature import Signature, read_signature
from toolyard.plugins.author_code.context import ToolContext
from toolyard.plugins.author_code.crashes import crash_text
from toolyard.plugins.author_code.output import Outlet
from toolyard.plugins.author_code.running import OutOfTime, Raised, Returned, is_async, run_authored
from toolyard.process.output import Captured, HeadTail
from toolyard.process.waiting import cancelled_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolyard.core.tool import CallContext, Failure, Json, JsonObject

log = logging.getLogger("toolyard.plugins")


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the author's code, ready to be made."""

    call: Callable[[], Any]
    in_loop: bool


class PythonCallee(Protocol):
    """The author's code behind a tool."""

    def convert(self, arguments: JsonObject) -> Any:
        """The arguments as the code wants them; raises `ValueError` when they cannot be that."""

    async def ready(self, arguments: Any, context: ToolContext) -> Work:
        """The call that is to be made."""

    async def preview(self, arguments: Any, context: ToolContext) -> Work | None:
        """The call that says in a line what `ready` would do; None when the author wrote none."""


class PythonTool:
    """One tool that is written in Python and runs in this process."""

    kind = "python"
    confined = False

    def __init__(
        self, *, spec: ToolSpec, callee: PythonCallee, code: Callable[..., Any], roots: Sequence[str] = ()
    ) -> None:
        self.spec = spec
        self.code = code
        """What the author wrote."""
        self._callee = callee
        self._roots = tuple(roots)
        """The folders of the author's own files, for tracebacks."""

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """The arguments in the types of the function; a refusal when they do not become that."""
        try:
            prepared = self._callee.convert(arguments)
        except ValueError as error:
            text = f"Invalid arguments for '{self.spec.name}':\n- {error}"
            return ToolResult(text=text, failure="invalid_arguments")
        return Plan(arguments=arguments, cwd=context.cwd, prepared=prepared)

    async def preview(self, plan: Plan, context: CallContext) -> str:
        """What the author's own preview says, or the call itself."""
        call = self._context(plan, context, None)
        outlet = Outlet(None, late=log.debug)
        try:
            work = await self._callee.preview(plan.prepared, call)
            if work is None:
                return call_line(self.spec.name, plan.arguments)
            ended = await self._run(work, outlet, call, self.spec.timeout)
            value = ended.value if isinstance(ended, Returned) else None
            return one_line(value.text if isinstance(value, Captured) else str(value or ""))
        finally:
            outlet.close()

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Run it; what it prints is partial output, what it returns the answer."""
        outlet = Outlet(context.emit, late=log.debug, limit=context.output_limit, spill_to=context.spill_to)
        call = self._context(plan, context, outlet)
        try:
            ready = await self._callee.ready(plan.prepared, call)
            ended = await self._run(ready, outlet, call, self._limit(context))
        except asyncio.CancelledError as cancelled:
            raise cancelled_with(outlet.answer(), outlet.close()) from cancelled
        finally:
            printed = outlet.close()
        match ended:
            case Returned(value=value):
                return succeeded(value, printed, context)
            case Raised(error=error):
                log.info("tool '%s' failed", self.spec.name, exc_info=error)
                return failed(self.spec.name, error, self._roots, context)
            case OutOfTime():
                return timed_out(self.spec.name, self._limit(context) or 0, printed.text, context)

    async def _run(
        self, work: Work, outlet: Outlet, call: ToolContext, limit: float | None
    ) -> Returned | Raised | OutOfTime:
        return await run_authored(
            work.call, in_loop=work.in_loop, outlet=outlet, timeout=limit, cancelled=call.cancelled
        )

    def _limit(self, context: CallContext) -> float | None:
        return context.timeout or self.spec.timeout

    def _context(self, plan: Plan, context: CallContext, outlet: Outlet | None) -> ToolContext:
        limit = self._limit(context)
        return ToolContext(
            call_id=context.call_id,
            tool_name=self.spec.name,
            cwd=plan.cwd or context.cwd,
            config=context.config,
            deadline=None if limit is None else time.monotonic() + limit,
            output=outlet.emit if outlet else None,
        )


class FunctionCallee:
    """A plain function."""

    def __init__(
        self, function: Callable[..., Any], signature: Signature, *, preview: Callable[..., Any] | None = None
    ) -> None:
        self._function = function
        self._signature = signature
        self._preview = preview

    def convert(self, arguments: JsonObject) -> dict[str, Any]:
        return self._signature.convert(arguments)

    async def ready(self, arguments: Any, context: ToolContext) -> Work:
        return self._work(self._function, arguments, context, in_loop=self._is_async)

    @cached_property
    def _is_async(self) -> bool:
        """Asked at every call, and takes longer than many functions."""
        return is_async(self._function)

    async def preview(self, arguments: Any, context: ToolContext) -> Work | None:
        """The call of the preview, which takes the same arguments."""
        if self._preview is None:
            return None
        return self._work(self._preview, arguments, context, in_loop=is_async(self._preview))

    def _work(self, function: Callable[..., Any], arguments: Any, context: ToolContext, *, in_loop: bool) -> Work:
        return Work(call=lambda: self._signature.call(function, arguments, context), in_loop=in_loop)


class TextCallee(FunctionCallee):
    """A function that takes one free text."""

    def convert(self, arguments: JsonObject) -> dict[str, Any]:
        """The text under the name of the function's own parameter."""
        (name,) = self._signature.parameters
        return {name: arguments["input"]}


def function_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = 60,
    hints: Hints = Hints(),  # noqa: B008 - it is frozen
    text: TextInput | None = None,
    preview: Callable[..., Any] | None = None,
    roots: Sequence[str] = (),
) -> PythonTool | Problem:
    """A typed function as a tool; with `text` it takes one free text instead of an object."""
    signature = read_signature(function)
    if isinstance(signature, Problem):
        return signature
    if text and len(signature.parameters) != 1:
        message = "a tool of free text takes one argument, the text"
        return Problem(code="plugin_signature", message=message, hint="take one parameter of type str")
    taken: JsonInput | TextInput = text or signature.input
    spec = ToolSpec(
        name=name or function.__name__,
        description=signature.description if description is None else description,
        input=taken,
        timeout=timeout,
        hints=hints,
    )
    callee = (TextCallee if text else FunctionCallee)(function, signature, preview=preview)
    return PythonTool(spec=spec, callee=callee, code=function, roots=roots)


def succeeded(value: Any, printed: Captured, context: CallContext) -> ToolResult:
    """The answer of a tool that came to its end; one that returned nothing answers with what it printed."""
    if isinstance(value, ToolResult):
        return value
    kept = printed if value is None else value
    if isinstance(kept, Captured):
        return ToolResult(text=kept.text, bytes_out=kept.total_bytes, truncated=kept.truncated)
    if (parts := parts_of(value)) is not None:
        text, attachments = text_and_attachments(parts)
        return replace(answer(text, context), attachments=attachments)
    text, data = as_text(value)
    return answer(text, context, data=data)


def failed(name: str, error: BaseException, roots: Sequence[str], context: CallContext) -> ToolResult:
    """A tool that raised: what it says of itself, or how it broke."""
    if isinstance(error, ToolError):
        return answer(f"Error: {error}", context, failure="exit_code", exit_code=error.exit_code)
    return answer(f"Error: '{name}' crashed: {crash_text(error, roots)}", context, failure="crash")


def timed_out(name: str, limit: float, printed: str, context: CallContext) -> ToolResult:
    """A tool that did not end; what it had printed often says why."""
    text = f"Error: '{name}' timed out after {seconds(limit)}"
    return answer(f"{text}\noutput so far:\n{printed}" if printed.strip() else text, context, failure="timeout")


def answer(
    text: str,
    context: CallContext,
    *,
    failure: Failure | None = None,
    exit_code: int | None = None,
    data: Mapping[str, Json] | None = None,
) -> ToolResult:
    """A result within the limit, also as data; the whole goes to the spill file where there is one."""
    if len(text) <= context.output_limit and text.isascii():  # most answers: so many bytes, and nothing to be left out
        return ToolResult(text=text, failure=failure, exit_code=exit_code, bytes_out=len(text), data=data)
    kept = HeadTail(context.output_limit, spill_to=context.spill_to)
    kept.add_text(text)
    captured = kept.finish()
    return ToolResult(
        text=captured.text,
        failure=failure,
        exit_code=exit_code,
        bytes_out=captured.total_bytes,
        truncated=captured.truncated,
        data=None if captured.truncated else data,
    )
