"""A command as a tool: one `bash -c` for each call, both streams and the exit code, and nothing left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.bash.syntax.full_screen import NEEDS_A_TERMINAL, full_screen_program
from toolyard.core.text import LONGEST_TIMEOUT, LONGEST_WORD, as_word, first_line, joined
from toolyard.core.tool import Hints, JsonInput, Plan, ToolResult, ToolSpec, Truncation
from toolyard.errors import CannotStart, NoSandbox
from toolyard.kinds.shell.limits_text import with_limits
from toolyard.kinds.shell.reach_arguments import ASKS_REACH, REACH_PROPERTIES, wanted_reach
from toolyard.process.child import ChildRequest
from toolyard.process.environment import NON_INTERACTIVE, as_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolyard.core.tool import CallContext, JsonObject
    from toolyard.process.child import ChildOutcome
    from toolyard.process.output import Captured
    from toolyard.process.runner import Runner

TIMED_OUT = -1
MORE_TIME = "Give a higher `timeout` in seconds if it needs longer."
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "The command line for bash."},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 5,
            "description": "How many seconds the command may take.",
        },
        **REACH_PROPERTIES,
    },
    "required": ["command"],
    "additionalProperties": False,
}


class ShellCommandTool:
    """The one-shot shell. An exit code is an answer, not a failure; only running out of time is one."""

    kind = "shell_command"
    confined = True
    asks_reach = ASKS_REACH
    spec = ToolSpec(
        name="shell",
        description="Run a command in bash and get its standard output, standard error and exit code. "
        "Every call is a new shell; standard input is empty, and what still runs when the shell ends is ended.",
        input=JsonInput(schema=SCHEMA),
        hints=Hints(destructive=True),
    )

    def __init__(self, runner: Runner, bash: str) -> None:
        self.spec = with_limits(self.spec, runner.policy)
        self._runner = runner
        self._bash = bash

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """The command line; a refusal when the system cannot hand bash such a command."""
        command: str = arguments["command"]
        if reason := why_not_passed(command):
            text = f"Invalid arguments for '{self.spec.name}':\n- command: {reason}"
            return ToolResult(text=text, failure="invalid_arguments")
        reach, why = wanted_reach(arguments)
        return Plan(
            reach=reach,
            why_reach=why,
            arguments=arguments,
            argv=bash_argv(self._bash, command),
            command=command,
            cwd=context.cwd,
            env_keys=self._runner.passed_names(),
        )

    async def preview(self, plan: Plan, context: CallContext) -> str:  # noqa: ARG002 - the interface
        """The command's first line, with a sign when it has more."""
        return first_line(plan.command or "")

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Run it to the end of its shell or of its time."""
        timeout: float = plan.arguments["timeout"]
        if program := full_screen_program(plan.command or ""):
            return without_screen(program)
        try:
            outcome = await self._runner.children[context.reach].run(self._request(plan, context, timeout))
        except NoSandbox:
            raise
        except CannotStart as error:
            text = f"Error: the command could not be started: {error} ({plan.cwd})"
            return ToolResult(text=text, failure="crash")
        return out_of_time(outcome, timeout) if outcome.timed_out else ended(outcome)

    def _request(self, plan: Plan, context: CallContext, timeout: float) -> ChildRequest:
        environment = self._runner.environment.current()
        return ChildRequest(
            argv=plan.argv,
            cwd=plan.cwd or context.cwd,
            env=environment,
            extra_env={name: value for name, value in NON_INTERACTIVE.items() if as_bytes(name) not in environment},
            timeout=min(timeout, LONGEST_TIMEOUT),
            limits=self._runner.limits,
            output_limit=context.output_limit // 2,  # there are two streams, and both are in the text
            spill_to=context.spill_to,
            spill_errors_to=context.spill_errors_to,
            on_output=context.emit,
        )


def bash_argv(bash: str, command: str) -> list[str]:
    """No start-up file, which a bash below sshd would read even so; a command that begins with `-` is no option.

    The last word is `$0`: it stands before what bash complains of, wherever bash is installed.
    """
    return [bash, "--norc", "-c", "--", command, "bash"]


def ended(outcome: ChildOutcome) -> ToolResult:
    """The shell's own end, whatever its exit code."""
    stdout, stderr, code = outcome.stdout.text, outcome.stderr.text, outcome.exit_code
    context = joined(*sections(stdout, stderr), f"exit code: {code}")
    data = {"exitCode": code, "stdout": stdout, "stderr": stderr, "context": context}
    return result_of(outcome, code, data)


def out_of_time(outcome: ChildOutcome, timeout: float) -> ToolResult:
    """The streams count as empty; what was printed until then is kept beside them, since it often says why."""
    stdout, stderr = outcome.stdout.text, outcome.stderr.text
    context = joined(f"Command timed out after {as_word(timeout)} seconds", *sections(stdout, stderr))
    data = {
        "exitCode": TIMED_OUT,
        "stdout": "",
        "stderr": "",
        "context": context,
        "partialStdout": stdout,
        "partialStderr": stderr,
    }
    return result_of(outcome, TIMED_OUT, data, context + "\n" + MORE_TIME)


def without_screen(program: str) -> ToolResult:
    """The answer of a program that would wait before a screen until its time is over."""
    said = f"{program}: {NEEDS_A_TERMINAL}\n"
    context = "\n".join((*sections("", said), "exit code: 1"))
    data = {"exitCode": 1, "stdout": "", "stderr": said, "context": context}
    return ToolResult(text=context, exit_code=1, bytes_out=len(said), data=data)


def sections(stdout: str, stderr: str) -> Iterable[str]:
    """Each stream that has anything, under its name and untrimmed."""
    return (f"{title}:\n{text}" for title, text in (("stdout", stdout), ("stderr", stderr)) if text)


def result_of(outcome: ChildOutcome, code: int, data: JsonObject, text: str | None = None) -> ToolResult:
    return ToolResult(
        text=text or data["context"],
        failure="timeout" if outcome.timed_out else None,
        exit_code=code,
        signal=outcome.signal,
        bytes_out=outcome.printed_bytes,
        truncated=left_out(outcome.stdout, outcome.stderr),
        data=data,
    )


def left_out(*streams: Captured) -> Truncation | None:
    """What is missing of all streams together; the text of each says where the whole of it is."""
    cuts = [stream.truncated for stream in streams if stream.truncated]
    if not cuts:
        return None
    kept = next((cut for cut in cuts if cut.kept_at), cuts[0])
    return Truncation(
        omitted_bytes=sum(cut.omitted_bytes for cut in cuts),
        omitted_lines=sum(cut.omitted_lines for cut in cuts),
        kept_at=kept.kept_at,
        starts_at=kept.starts_at,
    )


def why_not_passed(command: str) -> str | None:
    """Why the system cannot hand a command to bash."""
    if "\0" in command:
        return "it holds a NUL character, which no command line can carry; let printf '\\0' write one"
    try:
        size = len(command.encode("utf-8"))
    except UnicodeEncodeError:
        return "it holds what is no UTF-8 text: half a UTF-16 character, or a byte of another encoding"
    if size > LONGEST_WORD:
        return f"it is too long ({size} bytes; at most {LONGEST_WORD} fit); write it to a file in parts and run that"
    return None
