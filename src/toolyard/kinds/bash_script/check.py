"""What is wrong with a bash tool file: every fault at once, and what is legal but will hurt.

`preview` and `error` are tried; `run` is left alone, since only its author knows what it does.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.arguments.decoder import ArgumentDecoder
from toolyard.core.arguments.faults import BadArguments
from toolyard.core.tool import CallContext, ToolResult
from toolyard.kinds.bash_script.schema import FUNCTION
from toolyard.kinds.bash_script.script_text import PARAMETERS, ScriptText, read_script
from toolyard.kinds.bash_script.tool import BashScriptTool
from toolyard.plugins.checks.findings import error, warning, with_line
from toolyard.plugins.checks.samples import sample_arguments
from toolyard.plugins.checks.spec import properties_of, spec_findings
from toolyard.process.child import ChildRequest
from toolyard.process.environment import ParentEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.bash_script.schema import BashSchema
    from toolyard.kinds.bash_script.source import BashFileSource
    from toolyard.plugins.checks.spec import SpecPart
    from toolyard.process.child import ChildOutcome

CONSEQUENCES = {
    "line_ends": ("bash_syntax", "bash_schema_exit_status", "bash_schema_not_json"),
    "bash_syntax": ("bash_schema_exit_status", "bash_schema_not_json"),
}
SYNTAX_MESSAGE = re.compile(r": line (\d+): (syntax error.*|unexpected .*|warning: here-document .*)")
SET_LINE = re.compile(r"^[ \t]*set[ \t]+(-.*)$", re.MULTILINE)
OUTPUT_LIMIT = 65_536
RUN_BRANCH = re.compile(r"^[^#\n]*\brun[\"']?[ \t]*[|)]", re.MULTILINE)
PREVIEW_BRANCH = re.compile(r"^[^#\n]*\bpreview[\"']?[ \t]*[|)]", re.MULTILINE)
ERROR_BRANCH = re.compile(r"^[^#\n]*(?:\berror[\"']?[ \t]*[|)]|=[ \t]*[\"']?error\b|\berror[ \t]*\(\))", re.MULTILINE)


async def check_file(source: BashFileSource, timeout: float) -> list[Problem]:
    """All that can be said of one file; what only follows from another finding would lead to the wrong place."""
    script = read_script(source.file)
    findings = [with_line(problem, source.file) for problem in source.problems]
    findings += text_findings(script)
    findings += await syntax_findings(source, script, timeout)
    for tool in (tool for plugin in source.plugins() for tool in plugin.tools):
        if isinstance(tool, BashScriptTool):
            findings += schema_findings(script, tool)
            findings += await trial_findings(script, tool)
    follows = {code for found in findings for code in CONSEQUENCES.get(found.code, ())}
    return [found for found in findings if found.code not in follows]


async def syntax_findings(source: BashFileSource, script: ScriptText, timeout: float) -> list[Problem]:
    """What bash itself says of the file without running it."""
    if not source.file.is_file():
        return []
    request = ChildRequest(
        argv=[source.host.required("bash").path, "-n", str(source.file)],
        cwd=source.file.parent,
        env=ParentEnvironment().with_extra({"LC_ALL": "C"}),
        timeout=timeout,
    )
    said = (await source.host.children("look").run(request)).stderr.text
    last = len(script.text.splitlines())  # where the file ends too early, bash names the line after it
    hint = f"see it for yourself: bash -n {source.file}"
    return [
        error(source.file, min(int(number), last), "bash_syntax", message.removeprefix("warning: "), hint=hint)
        for number, message in SYNTAX_MESSAGE.findall(said)
    ]


def text_findings(script: ScriptText) -> Iterator[Problem]:
    """What can be read off the text."""
    text = script.text
    if text and (missing := missing_options(text)):
        options = "-euo pipefail" if len(missing) == 3 else " ".join(missing)
        message = f"`set {options}` is missing: failures inside the script pass unseen"
        line = script.line_matching(SET_LINE) or 1
        yield warning(script.file, line, "strict_mode", message, hint="begin the script with `set -euo pipefail`")
    if "\r\n" in text:
        hint = f"convert them: sed -i 's/\\r$//' {script.file}"
        yield error(script.file, script.line_with("\r\n"), "line_ends", "the file has Windows line ends", hint=hint)


def missing_options(text: str) -> list[str]:
    """Those of errexit, nounset and pipefail that are set nowhere, in any spelling."""
    settings = " ".join(SET_LINE.findall(text))
    letters = "".join(re.findall(r"(?<!\S)-([a-zA-Z]+)", settings))
    wanted = (("-e", "e", "errexit"), ("-u", "u", "nounset"), ("-o pipefail", None, "pipefail"))
    return [
        option
        for option, letter, name in wanted
        if not re.search(rf"\b{name}\b", settings) and (letter is None or letter not in letters)
    ]


class ScriptPlaces:
    """Where a script says what, in its schema or in its comments."""

    def __init__(self, script: ScriptText) -> None:
        self._script = script

    @property
    def file(self) -> Path:
        return self._script.file

    def line_of(self, part: SpecPart) -> int:
        """By its place in the schema, else by the words that stand there."""
        match part:
            case "name":
                return self._script.line(("id",), '"id"')
            case "description":
                return self._script.line((*FUNCTION, "description"), "@describe", '"function"')
            case "parameters":
                return self._script.line(PARAMETERS, '"parameters"')
            case "required":
                return self._script.line((*PARAMETERS, "required"), '"required"')

    def property_line(self, name: str) -> int:
        return self._script.property_line(name)

    def default_line(self, name: str, *, in_schema: bool) -> int:
        return (None if in_schema else self._script.place_line(name)) or self._script.property_line(name)


def schema_findings(script: ScriptText, tool: BashScriptTool) -> Iterator[Problem]:
    yield from spec_findings(ScriptPlaces(script), tool.spec)
    for name, shape in properties_of(tool.spec.input).items():
        yield from passing_findings(script, tool.schema, name, shape)


def passing_findings(script: ScriptText, schema: BashSchema, name: str, shape: Json) -> Iterator[Problem]:
    """Arguments that will not arrive as the author thinks."""
    mode, kinds = schema.args_mode, types_of(shape)
    line = script.property_line(name)
    by_json = 'read it with a JSON parser, or use "args_mode": "json"'
    if mode == "flags" and "object" in kinds:
        message = f"'{name}' is an object and arrives as JSON text"
        yield warning(script.file, line, "object_in_flags", message, hint=by_json)
    if mode == "positional" and kinds & {"object", "array"}:
        kind = "an object" if "object" in kinds else "an array"
        message = f"'{name}' is {kind} and arrives as JSON text"
        yield warning(script.file, line, "list_in_positional", message, hint=by_json)
    if mode == "positional" and name not in {place.name for place in schema.positional}:
        message = f"'{name}' is not in 'positional' and never reaches the script"
        yield warning(script.file, line, "not_passed", message, hint=f'add {{"name": "{name}"}} to "positional"')


def types_of(shape: Json) -> set[Json]:
    kinds = shape.get("type") if isinstance(shape, dict) else None
    return set(kinds) if isinstance(kinds, list) else {kinds}


async def trial_findings(script: ScriptText, tool: BashScriptTool) -> list[Problem]:
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


def preview_findings(script: ScriptText, shown: ChildOutcome | None, arguments: JsonObject) -> Iterator[Problem]:
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


def error_findings(script: ScriptText, said: ChildOutcome | None) -> Iterator[Problem]:
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
    if outcome.timed_out:
        return f"did not finish in {outcome.duration:.0f} seconds"
    words = outcome.stderr.text.strip().splitlines()
    return f"exited with status {outcome.exit_code}" + (f" ({words[-1][:200]})" if words else "")
