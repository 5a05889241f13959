"""A bash file as a tool: `bash FILE preview|run|error …`, streamed, limited and killed when it must be."""

from __future__ import annotations

import re
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from toolyard.core.text import LONGEST_TIMEOUT, TIMED_OUT, as_word, call_line, limit_hit, one_line, seconds
from toolyard.core.tool import JsonInput, Plan, ToolResult, ToolSpec
from toolyard.errors import CannotStart, NoSandbox
from toolyard.kinds.bash_script.arguments import CannotPass, PassedArguments, checked, pass_arguments
from toolyard.process.child import ChildOutcome, ChildRequest

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolyard.core.content import Part
    from toolyard.core.reach import Reach
    from toolyard.core.tool import CallContext, Json, JsonObject
    from toolyard.kinds.bash_script.comments.script import CommentTool
    from toolyard.kinds.bash_script.schema import BashSchema
    from toolyard.kinds.bash_script.settings import BashSettings
    from toolyard.process.runner import Runner


Subcommand: TypeAlias = Literal["preview", "run", "error"]


class BashScriptTool:
    """One version of one tool file."""

    kind = "bash_script"
    confined = True

    def __init__(
        self,
        *,
        path: str,
        source: bytes,
        schema: BashSchema,
        runner: Runner,
        bash: str,
        settings: BashSettings,
    ) -> None:
        self.path = path
        """Where the file is that runs, which is a copy when an edit broke the tool's own."""
        self.source = source
        self.schema = schema
        self._runner = runner
        self._bash = bash
        self._settings = settings
        self.spec = ToolSpec(
            name=schema.id,
            description=schema.description,
            input=JsonInput(schema=schema.parameters, defaults=schema.defaults()),
            timeout=self._settings.bash_timeout_seconds,
        )

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """The command line of `run`; a refusal when a command line cannot carry the arguments."""
        passed = self._pass(arguments)
        if isinstance(passed, CannotPass):
            text = f"Invalid arguments for '{self.spec.name}':\n{passed.reason}"
            return ToolResult(text=text, failure="invalid_arguments")
        return Plan(
            arguments=arguments,
            argv=self._argv("run", passed, None),
            cwd=context.cwd,
            env_keys=self._env_keys(context),
            prepared=passed,
        )

    async def preview(self, plan: Plan, context: CallContext) -> str:
        """The first line that `preview` prints; empty when it fails."""
        if self._comments:
            return call_line(self.spec.name, plan.arguments)
        outcome = await self.try_subcommand("preview", plan, context)
        failed = outcome is None or outcome.exit_code != 0 or outcome.timed_out
        return "" if failed or outcome is None else one_line(outcome.stdout.text)

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Run it; a failure's text is what `error` makes of it, or what the tool printed."""
        try:
            outcome = await self._invoke("run", plan, context, timeout=self._limit(context), listen=True)
        except NoSandbox:
            raise
        except CannotStart as error:
            return ToolResult(text=self._explain(error, plan), failure="crash")
        attachments = await self._attachments(outcome, plan, context)
        if outcome.exit_code == 0 and not outcome.timed_out:
            return ToolResult(
                text=outcome.stdout.text,
                exit_code=0,
                bytes_out=outcome.printed_bytes,
                truncated=outcome.stdout.truncated,
                attachments=attachments,
            )
        return replace(await self._failed(outcome, plan, context), attachments=attachments)

    async def try_subcommand(
        self, subcommand: Literal["preview", "error"], plan: Plan, context: CallContext, *, code: int | None = None
    ) -> ChildOutcome | None:
        """Run `preview` or `error` by itself; None when it cannot even start."""
        try:
            return await self._invoke(subcommand, plan, context, timeout=self._settings.bash_timeout_seconds, code=code)
        except CannotStart:
            return None

    async def _attachments(self, outcome: ChildOutcome, plan: Plan, context: CallContext) -> tuple[Part, ...]:
        """What it named on descriptor 3."""
        if not outcome.attached.total_bytes:
            return ()
        from toolyard.process.attached_files import attached_parts

        env, children = self._runner.environment.current(), self._runner.children[context.reach]
        return await attached_parts(outcome, children, cwd=plan.cwd or context.cwd, env=env)

    async def _failed(self, outcome: ChildOutcome, plan: Plan, context: CallContext) -> ToolResult:
        code = TIMED_OUT if outcome.timed_out else outcome.exit_code
        text = await self._error_text(code, outcome.timed_out, plan, context)
        return ToolResult(
            text=text or self._default_text(code, outcome, self._limit(context)),
            failure="timeout" if outcome.timed_out else "exit_code",
            exit_code=code,
            signal=outcome.signal,
            bytes_out=outcome.printed_bytes,
            truncated=None if text else outcome.stdout.truncated,
        )

    async def _error_text(self, code: int, timed_out: bool, plan: Plan, context: CallContext) -> str:
        """What the file's own `error` makes of a failure; empty when it has none or nothing to say."""
        if self._comments:
            return ""
        try:
            outcome = await self._invoke(
                "error",
                plan,
                context,
                timeout=self._settings.bash_error_timeout_seconds,
                code=code,
                timed_out=timed_out,
            )
        except CannotStart:
            return ""
        useful = outcome.exit_code == 0 and not outcome.timed_out and outcome.stdout.text.strip()
        return outcome.stdout.text if useful else ""

    async def _invoke(
        self,
        subcommand: Subcommand,
        plan: Plan,
        context: CallContext,
        *,
        timeout: float,
        listen: bool = False,
        code: int | None = None,
        timed_out: bool = False,
    ) -> ChildOutcome:
        passed = plan.prepared
        # A preview comes before any verdict: it must not change anything.
        reach: Reach = "look" if subcommand == "preview" else context.reach
        return await self._runner.children[reach].run(
            ChildRequest(
                argv=plan.argv if subcommand == "run" else self._argv(subcommand, passed, code),
                cwd=plan.cwd or context.cwd,
                env=self._runner.environment.current(),
                extra_env=self._variables(context, timed_out=timed_out),
                stdin=passed.stdin,
                timeout=timeout,
                limits=self._runner.limits,
                output_limit=context.output_limit,
                spill_to=context.spill_to if listen else None,
                on_output=context.emit if listen else None,
                streams=("stdout", "stderr") if self._settings.bash_stream_stderr else ("stdout",),
                takes_attachments=subcommand == "run",
            )
        )

    def _argv(self, subcommand: Subcommand, passed: PassedArguments, code: int | None) -> list[str]:
        if self._comments:
            return list(passed.words)
        codes = [] if code is None else [str(code)]
        return [self._bash, self.path, subcommand, *codes, *passed.words]

    def _pass(self, arguments: JsonObject) -> PassedArguments | CannotPass:
        if self._comments:
            return pass_to_comments(self._bash, self.path, self._comments, arguments, self._runner.withheld())
        return pass_arguments(self.schema, arguments)

    @cached_property
    def _comments(self) -> CommentTool | None:
        """The declarations in the file's comments, for a file that has no subcommands."""
        if self.schema.args_mode != "comments":
            return None
        from toolyard.kinds.bash_script.comments.script import CommentScript, parse_comments

        parsed = parse_comments(self.source.decode("utf-8", "replace"))
        return parsed.tool(self.schema.function) if isinstance(parsed, CommentScript) else None

    def _variables(self, context: CallContext, *, timed_out: bool) -> dict[str, str]:
        extra = {"AGENT_TOOL_PYTHON": sys.executable, **self._config_variables(context)}
        if self._comments:
            from toolyard.kinds.bash_script.comments.program import COMMENT_ENVIRONMENT

            extra |= COMMENT_ENVIRONMENT
        if timed_out:
            extra |= {
                "AGENT_TOOL_TIMED_OUT": "1",
                "AGENT_TOOL_TIMEOUT_SECONDS": f"{self._limit(context):g}",
            }
        return extra

    def _config_variables(self, context: CallContext) -> dict[str, str]:
        """The scalars that the file asks for, as variables."""
        if not self.schema.config_keys:
            return {}
        return {
            f"AGENT_TOOL_CONFIG_{upper_snake(key)}": as_word(value)
            for key in self.schema.config_keys
            if isinstance(value := context.config.get(key), str | int | float) and fits_variable(value)
        }

    def _env_keys(self, context: CallContext) -> list[str]:
        """The names of variables that the tool gets by name, for the audit."""
        return sorted((*self._config_variables(context), *self._runner.passed_names()))

    def _limit(self, context: CallContext) -> float:
        return min(context.timeout or self._settings.bash_timeout_seconds, LONGEST_TIMEOUT)

    def _default_text(self, code: int, outcome: ChildOutcome, limit: float) -> str:
        name = self.spec.name
        if outcome.timed_out:
            first = f"Error: '{name}' timed out after {seconds(limit)} (exit code {code})"
        elif outcome.signal is not None:
            first = (
                f"Error: '{name}' was ended by signal {outcome.signal}{limit_hit(outcome.signal)} (exit code {code})"
            )
        else:
            first = f"Error: '{name}' failed with exit code {code}"
        streams = (("stderr", outcome.stderr.text), ("stdout", outcome.stdout.text))
        return "\n".join((first, *(f"{title}:\n{text}" for title, text in streams if text.strip())))

    def _explain(self, error: CannotStart, plan: Plan) -> str:
        place = plan.cwd if "directory:" in str(error) else self.path
        return f"Error: '{self.spec.name}' could not be started: {error} ({place})"


def pass_to_comments(
    bash: str, path: str, tool: CommentTool, arguments: JsonObject, withheld: Collection[str]
) -> PassedArguments | CannotPass:
    """A whole command line, since the script's own functions are called."""
    from toolyard.kinds.bash_script.comments.program import program_argv

    return checked(program_argv(bash, Path(path), tool, arguments, withheld))


def upper_snake(key: str) -> str:
    """`smtpUser`, `smtp-user` and `smtp_user` are all SMTP_USER."""
    return re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)).upper()


def fits_variable(value: Json) -> bool:
    """Whether a variable can hold it: not with a NUL, nor with half a character."""
    return not isinstance(value, str) or re.search("[\0\ud800-\udfff]", value) is None
