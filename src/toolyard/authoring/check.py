"""`tool check`: every fault of a tool file at once, and what is legal but will hurt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from toolyard.authoring.samples import sample_arguments
from toolyard.authoring.workbench import open_workbench
from toolyard.core.arguments import ArgumentDecoder, BadArguments
from toolyard.core.formats import format_problems
from toolyard.core.tool import CallContext, ToolResult, WireFormat
from toolyard.kinds.bash_script import BashScriptTool
from toolyard.process.child import ChildRequest
from toolyard.process.environment import ParentEnvironment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from toolyard.config.problems import ConfigProblem
    from toolyard.kinds.bash_schema import BashSchema
    from toolyard.plugins.bash_source import BashToolSource

__all__ = ["Finding", "check_tools"]

TRIAL_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing about a tool file that its author should know."""

    file: Path
    line: int
    severity: Literal["error", "warning"]
    code: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.severity}: {self.message}"


async def check_tools(path: Path) -> list[Finding]:
    """Check the tool of a file, or all tools of a folder."""
    async with open_workbench(path, timeout=TRIAL_SECONDS) as bench:
        findings = [from_problem(problem, path) for problem in bench.problems]
        for source in bench.sources:
            findings += [finding async for finding in check_source(source)]
    return sorted(findings, key=lambda finding: (str(finding.file), finding.line, finding.severity, finding.message))


async def check_source(source: BashToolSource) -> AsyncIterator[Finding]:
    """All that can be said of one file."""
    for problem in source.problems:
        yield from_problem(problem, source.file)
    text = read_text(source.file)
    async for finding in syntax_findings(source):
        yield finding
    for finding in text_findings(source.file, text):
        yield finding
    for tool in source.tools():
        if isinstance(tool, BashScriptTool):
            for finding in schema_findings(source.file, text, tool):
                yield finding
            async for finding in trial_findings(source.file, text, tool):
                yield finding


async def syntax_findings(source: BashToolSource) -> AsyncIterator[Finding]:
    """What bash itself says of the file without running it."""
    if not source.file.is_file():
        return
    shop = source.workshop
    outcome = await shop.children.run(
        ChildRequest(
            argv=[shop.bash.path, "-n", str(source.file)],
            cwd=source.file.parent,
            env=ParentEnvironment().with_extra({"LC_ALL": "C"}),
            timeout=TRIAL_SECONDS,
        )
    )
    for line in outcome.stderr.text.splitlines():
        if match := re.search(r": line (\d+): (syntax error.*|unexpected .*)", line):
            yield Finding(
                file=source.file,
                line=int(match[1]),
                severity="error",
                code="bash_syntax",
                message=match[2],
                hint=f"bash -n {source.file}",
            )


def text_findings(file: Path, text: str) -> Iterator[Finding]:
    """What can be read off the text."""
    if text and not strict_mode(text):
        yield warning(
            file, 1, "strict_mode", "no `set -euo pipefail`: failures inside the script pass unseen", "add it on top"
        )
    if "\r\n" in text:
        yield Finding(
            file=file,
            line=text[: text.index("\r\n")].count("\n") + 1,
            severity="error",
            code="line_ends",
            message="Windows line ends",
            hint=f"convert them: sed -i 's/\\r$//' {file}",
        )


def strict_mode(text: str) -> bool:
    """Whether errexit, nounset and pipefail are all set somewhere, in any spelling."""
    settings = " ".join(re.findall(r"^[ \t]*set[ \t]+(-.*)$", text, re.MULTILINE))
    letters = "".join(re.findall(r"-([a-zA-Z]+)", settings))
    return (
        ("e" in letters or "errexit" in settings)
        and ("u" in letters or "nounset" in settings)
        and "pipefail" in settings
    )


def schema_findings(file: Path, text: str, tool: BashScriptTool) -> Iterator[Finding]:
    """What the schema says, or fails to say."""
    schema = tool.schema
    properties = schema.parameters.get("properties", {})
    if not schema.description.strip():
        yield warning(
            file,
            find_line(text, '"function"'),
            "no_description",
            "the tool has no description: models choose by it",
            "say in a sentence what it does",
        )
    for name, shape in properties.items():
        line = find_line(text, f'"{name}"', f"--{name}", name)
        if not (isinstance(shape, dict) and str(shape.get("description", "")).strip()):
            yield warning(
                file, line, "no_description", f"'{name}' has no description", "say what it means and in which form"
            )
        yield from passing_findings(file, line, name, shape, schema)
    yield from default_findings(file, text, tool)
    for format in get_args(WireFormat):
        for problem in format_problems(tool.spec, format):
            if problem.code != "description_missing":
                severity: Literal["error", "warning"] = "error" if problem.fatal else "warning"
                yield Finding(
                    file=file,
                    line=find_line(text, '"id"'),
                    severity=severity,
                    code=f"{format}_{problem.code}",
                    message=problem.message,
                    hint=problem.hint,
                )


def passing_findings(file: Path, line: int, name: str, shape: object, schema: BashSchema) -> Iterator[Finding]:
    """Arguments that will not arrive as the author thinks."""
    kinds = shape.get("type") if isinstance(shape, dict) else None
    holds_object = "object" in kinds if isinstance(kinds, list) else kinds == "object"
    if schema.args_mode == "flags" and holds_object:
        yield warning(
            file, line, "object_in_flags", f"'{name}' is an object and arrives as JSON text", 'use "args_mode": "json"'
        )
    if schema.args_mode == "positional" and (holds_object or kinds == "array"):
        yield warning(file, line, "list_in_positional", f"'{name}' arrives as JSON text", 'use "args_mode": "json"')
    if schema.args_mode == "positional" and name not in {place.name for place in schema.positional}:
        yield warning(
            file, line, "not_passed", f"'{name}' is not in 'positional' and never reaches the script", "add it there"
        )


def default_findings(file: Path, text: str, tool: BashScriptTool) -> Iterator[Finding]:
    """Defaults that do not fit their own schema would refuse every call that leaves them out."""
    schema = tool.schema
    decoder = ArgumentDecoder(schema.parameters, defaults=schema.defaults())
    decoded = decoder.decode(sample_arguments(schema.parameters))
    if not isinstance(decoded, BadArguments):
        return
    properties = schema.parameters.get("properties", {})
    with_default = {name for name, shape in properties.items() if isinstance(shape, dict) and "default" in shape}
    for fault in decoded.faults:
        if fault.path in with_default | set(schema.defaults()):
            yield warning(
                file,
                find_line(text, f'"{fault.path}"'),
                "default_does_not_fit",
                f"the default of '{fault.path}' does not fit: {fault.message}",
                "mend the default or the schema",
            )


async def trial_findings(file: Path, text: str, tool: BashScriptTool) -> AsyncIterator[Finding]:
    """What `preview` and `error` do; `run` is left alone, since only the author knows what it changes."""
    if tool.schema.args_mode == "comments":
        return
    arguments = sample_arguments(tool.schema.parameters)
    context = CallContext(call_id="check", cwd=file.parent, config={}, output_limit=65_536)
    plan = tool.plan(arguments, context)
    if isinstance(plan, ToolResult):
        return
    shown = await tool.try_subcommand("preview", plan, context)
    if shown is not None:
        line = find_line(text, "preview)", "preview")
        if shown.timed_out or shown.exit_code != 0:
            how = f"did not finish in {TRIAL_SECONDS} seconds" if shown.timed_out else f"exited with {shown.exit_code}"
            said = last_line(shown.stderr.text)
            yield warning(
                file, line, "preview_fails", f"`preview` {how}{said}: no preview is shown", "mend it or leave it"
            )
        elif not shown.stdout.text.strip():
            yield warning(file, line, "preview_empty", "`preview` prints nothing", "print one line about the call")
        elif len(shown.stdout.text.strip().splitlines()) > 1:
            yield warning(file, line, "preview_lines", "`preview` prints several lines; the first is used", "print one")
    failed = await tool.try_subcommand("error", plan, context, code=1)
    if failed is not None and (failed.exit_code != 0 or not failed.stdout.text.strip()):
        yield warning(
            file,
            find_line(text, "error)", "run)"),
            "no_error",
            "no `error`: the model sees the raw output of a failure",
            "add a subcommand `error CODE` that prints what to do differently",
        )


def from_problem(problem: ConfigProblem, file: Path) -> Finding:
    where = problem.where
    return Finding(
        file=where.file if where else file,
        line=(where.line if where else None) or 1,
        severity=problem.severity,
        code=problem.code,
        message=problem.message,
        hint=problem.hint,
    )


def warning(file: Path, line: int, code: str, message: str, hint: str) -> Finding:
    return Finding(file=file, line=line, severity="warning", code=code, message=message, hint=hint)


def find_line(text: str, *clues: str) -> int:
    """The line of the first clue that occurs."""
    for clue in clues:
        if (position := text.find(clue)) >= 0:
            return text.count("\n", 0, position) + 1
    return 1


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return f" ({lines[-1][:200]})" if lines else ""


def read_text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
