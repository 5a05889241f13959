"""A command of a `tools.json` manifest as a tool: arguments as JSON on standard input, an answer in JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.core.json_values import refuse_constant
from toolyard.core.text import LONGEST_TIMEOUT, TIMED_OUT, call_line, encode_json, limit_hit
from toolyard.core.tool import JsonInput, Plan, ToolResult, ToolSpec, Truncation
from toolyard.errors import CannotStart, NoSandbox
from toolyard.kinds.manifest.program import Program, explain_start, program_problem
from toolyard.process.child import ChildRequest
from toolyard.process.environment import exact_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.tool import CallContext, Json, JsonObject
    from toolyard.process.child import ChildOutcome
    from toolyard.process.output import Captured
    from toolyard.process.runner import Runner

ALWAYS_PASSED = ("PATH", "HOME")


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a manifest, after its check."""

    name: str
    description: str = ""
    schema: JsonObject | None = None
    program: Program
    arguments: Sequence[str] = ()
    """Fixed words after the program; what a call says goes to standard input."""
    timeout: float | None = None
    env: Sequence[str] = ()
    """Names of variables that reach the program when they are set."""


class ManifestCommandTool:
    """One entry of a manifest."""

    kind = "manifest_command"
    confined = True

    def __init__(self, entry: ManifestEntry, runner: Runner, timeout: float) -> None:
        self.entry = entry
        self._runner = runner
        self._timeout = min(entry.timeout or timeout, LONGEST_TIMEOUT)
        self.spec = ToolSpec(
            name=entry.name,
            description=entry.description,
            input=JsonInput(schema=entry.schema or {}, verbatim=entry.schema is not None),
            timeout=self._timeout,
        )

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan:
        """The command line, the names of its variables, and its standard input."""
        passed = exact_environment(self.entry.env)
        return Plan(
            arguments=arguments,
            argv=[self.entry.program.path, *self.entry.arguments],
            cwd=context.cwd,
            env_keys=[name.decode() for name in passed],
            prepared=standard_input(arguments if context.given is None else context.given),
        )

    async def preview(self, plan: Plan, context: CallContext) -> str:  # noqa: ARG002 - the interface
        """The name and the arguments; a manifest's command has no other way to say what it will do."""
        return call_line(self.spec.name, plan.arguments)

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Run it; what it printed is the answer, what it complained of the error."""
        if fault := program_problem(self.entry.program):
            refused = fault.code == "manifest_program_outside"
            return ToolResult(text=error_text(fault.message), failure="denied" if refused else "crash")
        try:
            request, children = self._request(plan, context), self._runner.children[context.reach]
            outcome = await children.run(request)
        except NoSandbox:
            raise
        except CannotStart as error:
            return ToolResult(text=error_text(explain_start(error, plan.argv[0], plan.cwd)), failure="crash")
        result = succeeded(outcome) if outcome.exit_code == 0 and not outcome.timed_out else failed(outcome)
        if not outcome.attached.total_bytes:
            return result
        from toolyard.process.attached_files import attached_parts

        attachments = await attached_parts(outcome, children, cwd=request.cwd, env=request.env)
        return replace(result, attachments=attachments)

    def _request(self, plan: Plan, context: CallContext) -> ChildRequest:
        return ChildRequest(
            argv=plan.argv,
            cwd=plan.cwd or context.cwd,
            env=exact_environment((*ALWAYS_PASSED, *plan.env_keys)),
            stdin=plan.prepared,
            timeout=min(self.entry.timeout or context.timeout or self._timeout, LONGEST_TIMEOUT),
            limits=self._runner.limits,
            output_limit=context.output_limit,
            spill_to=context.spill_to,
            on_output=context.emit,
            streams=("stdout",),
            takes_attachments=True,
        )


def standard_input(given: JsonObject | str) -> bytes:
    """The arguments exactly as they were written; as JSON where they never were text; an empty object for nothing."""
    text = given if isinstance(given, str) else encode_json(dict(given))
    # Half a UTF-16 character fits into no UTF-8; as an escape it means the same where it must stand, inside a string.
    return text.encode("utf-8", "backslashreplace") if text.strip() else b"{}"


def succeeded(outcome: ChildOutcome) -> ToolResult:
    return ToolResult(
        text=success_text(outcome.stdout.text),
        exit_code=0,
        bytes_out=outcome.printed_bytes,
        truncated=outcome.stdout.truncated,
    )


def failed(outcome: ChildOutcome) -> ToolResult:
    """A failure in the one form that the model knows; running out of time comes before whatever else went wrong."""
    late = outcome.timed_out
    return ToolResult(
        text=TIMED_OUT_TEXT if late else failure_text(outcome.stderr.text, ending(outcome)),
        failure="timeout" if late else "exit_code",
        exit_code=TIMED_OUT if late else outcome.exit_code,
        signal=outcome.signal,
        bytes_out=outcome.printed_bytes,
        truncated=None if late else left_out(outcome.stderr),
    )


def ending(outcome: ChildOutcome) -> str:
    """How a command that said nothing ended."""
    if outcome.signal is not None:
        return f"ended by signal {outcome.signal}{limit_hit(outcome.signal)}"
    return f"exit status {outcome.exit_code}"


def left_out(stderr: Captured) -> Truncation | None:
    """What a model does not get to read of a long complaint."""
    text = stderr.text.strip()
    if len(text) <= LONGEST_ERROR:
        return stderr.truncated
    before = stderr.truncated.omitted_lines if stderr.truncated else 0
    return Truncation(
        omitted_bytes=stderr.total_bytes - len(text[:LONGEST_ERROR].encode("utf-8")),
        omitted_lines=before + text.count("\n", LONGEST_ERROR),
    )


LONGEST_ERROR = 1000
"""Characters of standard error that a model gets to read."""
NOTHING = "{}"
NO_JSON = object()
OUTSIDE_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[ \t\r\n]+|[:,]')
SPACED = {":": ": ", ",": ", "}


def success_text(stdout: str) -> str:
    """What was printed, trimmed; JSON on one line; never nothing."""
    text = stdout.strip()
    if ("\n" in text or "\r" in text) and parsed(text) is not NO_JSON:
        return on_one_line(text)
    return text or NOTHING


def failure_text(stderr: str, otherwise: str) -> str:
    """What standard error says, as an `error`; what already is one is passed on; silence is told `otherwise`."""
    said = stderr.strip()
    value = parsed(said)
    if not isinstance(value, dict) or "error" not in value:
        return error_text(said or otherwise)
    line = on_one_line(said) if "\n" in said or "\r" in said else said
    error = value["error"]
    return line if len(line) <= LONGEST_ERROR else error_text(error if isinstance(error, str) else json.dumps(error))


def error_text(message: str) -> str:
    """A message as the object that a model expects, cut to what it gets to read."""
    whole = message[:LONGEST_ERROR].encode("utf-8", "replace").decode("utf-8")  # half a UTF-16 character is no text
    return json.dumps({"error": whole}, ensure_ascii=False)


def on_one_line(text: str) -> str:
    """A JSON text without its line ends and indentation; numbers and strings stay as they were written."""
    return OUTSIDE_STRINGS.sub(lambda found: printed(found[0]), text)


def printed(token: str) -> str:
    return token if token.startswith('"') else SPACED.get(token, "")


def parsed(text: str) -> Json:
    """The value of a strict JSON text, its numbers as text, so that none is too large; NO_JSON when it is none."""
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return NO_JSON


DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=refuse_constant)
TIMED_OUT_TEXT = error_text("tool timed out")
