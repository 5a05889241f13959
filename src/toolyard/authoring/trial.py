"""What `preview` and `error` do when they are tried; `run` is left alone, since only its author knows what it does."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.faults import BadArguments
from toolyard.core.tool import CallContext, ToolResult
from toolyard.plugins.checks.findings import Finding, warning
from toolyard.plugins.checks.samples import sample_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.tool import JsonObject
    from toolyard.kinds.bash_script.script_text import ScriptText
    from toolyard.kinds.bash_script.tool import BashScriptTool
    from toolyard.process.child import ChildOutcome


OUTPUT_LIMIT = 65_536
RUN_BRANCH = re.compile(r"^[^#\n]*\brun[\"']?[ \t]*[|)]", re.MULTILINE)
PREVIEW_BRANCH = re.compile(r"^[^#\n]*\bpreview[\"']?[ \t]*[|)]", re.MULTILINE)
ERROR_BRANCH = re.compile(r"^[^#\n]*(?:\berror[\"']?[ \t]*[|)]|=[ \t]*[\"']?error\b|\berror[ \t]*\(\))", re.MULTILINE)


async def trial_findings(script: ScriptText, tool: BashScriptTool) -> list[Finding]:
    """Try both with arguments that fit the schema, in an empty folder."""
    schema = tool.schema
    if schema.args_mode == "comments":
        return []  # such a file has no subcommands
    decoder = ArgumentDecoder(schema.parameters, defaults=schema.defaults())
    arguments = decoder.decode(sample_arguments(schema.parameters))
    if isinstance(arguments, BadArguments):
        return []  # the schema asks for more than a sample can guess
    with tempfile.TemporaryDirectory(prefix="toolyard-check-") as folder:
        context = CallContext(call_id="check", cwd=Path(folder), config={}, output_limit=OUTPUT_LIMIT)
        plan = tool.plan(arguments, context)
        if isinstance(plan, ToolResult):
            return []
        shown = await tool.try_subcommand("preview", plan, context)
        said = await tool.try_subcommand("error", plan, context, code=1)
    return [*preview_findings(script, shown, arguments), *error_findings(script, said)]


def preview_findings(script: ScriptText, shown: ChildOutcome | None, arguments: JsonObject) -> Iterator[Finding]:
    """A preview is one line about any call that fits the schema."""
    if shown is None:
        return
    line = script.line_matching(PREVIEW_BRANCH) or 1
    tried = f"it was tried with {json.dumps(arguments, ensure_ascii=False)}"
    lines = shown.stdout.text.strip().splitlines()
    if shown.timed_out or shown.exit_code != 0:
        message = f"`preview` {ending(shown)}, so nobody sees what a call is about to do"
        yield warning(script.file, line, "preview_fails", message, hint=tried)
    elif not lines:
        message = "`preview` prints nothing, so nobody sees what a call is about to do"
        yield warning(script.file, line, "preview_empty", message, hint=f"print one line; {tried}")
    elif len(lines) > 1:
        message = f"`preview` prints {len(lines)} lines; only the first is shown"
        yield warning(script.file, line, "preview_lines", message, hint=f"print one line; {tried}")


def error_findings(script: ScriptText, said: ChildOutcome | None) -> Iterator[Finding]:
    """An `error` may decline, by exit or silence, but it should be there and be quick."""
    if said is None:
        return
    branch = script.line_matching(ERROR_BRANCH)
    if said.timed_out:
        hint = "`error CODE` should only print what to do differently"
        yield warning(script.file, branch or 1, "error_slow", f"`error 1` {ending(said)}", hint=hint)
    elif branch is None and (said.exit_code != 0 or not said.stdout.text.strip()):
        message = "there is no `error`: the model sees a failure's raw output"
        hint = "add a subcommand `error CODE` that prints what to do differently"
        yield warning(script.file, script.line_matching(RUN_BRANCH) or 1, "no_error", message, hint=hint)


def ending(outcome: ChildOutcome) -> str:
    """How a subcommand ended, with its last words."""
    if outcome.timed_out:
        return f"did not finish in {outcome.duration:.0f} seconds"
    words = outcome.stderr.text.strip().splitlines()
    return f"exited with status {outcome.exit_code}" + (f" ({words[-1][:200]})" if words else "")
