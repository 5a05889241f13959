"""`tool check`: every fault of a tool file at once, and what is legal but will hurt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.authoring.schema_check import schema_findings
from toolyard.authoring.trial import trial_findings
from toolyard.authoring.workbench import open_workbench
from toolyard.kinds.bash_script.script_text import ScriptText, read_script
from toolyard.kinds.bash_script.source import BashToolSource
from toolyard.kinds.bash_script.tool import BashScriptTool
from toolyard.kinds.manifest.check import manifest_findings
from toolyard.kinds.manifest.source import ManifestSource
from toolyard.kinds.node_module.check import node_findings
from toolyard.kinds.node_module.source import NodeSource
from toolyard.kinds.python_function.check import python_findings
from toolyard.kinds.python_function.source import PythonSource
from toolyard.plugins.checks.findings import Finding, error, from_problem, warning
from toolyard.process.child import ChildRequest
from toolyard.process.environment import ParentEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


TRIAL_SECONDS = 10
CONSEQUENCES = {
    "line_ends": ("bash_syntax", "bash_schema_exit_status", "bash_schema_not_json"),
    "bash_syntax": ("bash_schema_exit_status", "bash_schema_not_json"),
}
SYNTAX_MESSAGE = re.compile(r": line (\d+): (syntax error.*|unexpected .*|warning: here-document .*)")
SET_LINE = re.compile(r"^[ \t]*set[ \t]+(-.*)$", re.MULTILINE)


async def check_tools(path: Path, *, timeout: float = TRIAL_SECONDS) -> list[Finding]:
    """Check the tool of a file, or all tools of a folder; each of their subcommands may take `timeout` seconds."""
    async with open_workbench(path, timeout=timeout) as bench:
        findings = [from_problem(problem, path) for problem in bench.problems]
        for source in bench.sources:
            if isinstance(source, ManifestSource):
                findings += manifest_findings(source)
            elif isinstance(source, NodeSource):
                findings += await node_findings(source)
            elif isinstance(source, PythonSource):
                findings += python_findings(source)
            elif isinstance(source, BashToolSource):
                findings += without_consequences(await check_source(source, timeout))
    return sorted(findings, key=lambda finding: (str(finding.file), finding.line, finding.severity, finding.message))


async def check_source(source: BashToolSource, timeout: float) -> list[Finding]:
    """All that can be said of one file."""
    script = read_script(source.file)
    findings = [from_problem(problem, source.file) for problem in source.problems]
    findings += text_findings(script)
    findings += await syntax_findings(source, script, timeout)
    for tool in (tool for plugin in source.plugins() for tool in plugin.tools):
        if isinstance(tool, BashScriptTool):
            findings += schema_findings(script, tool)
            findings += await trial_findings(script, tool)
    return findings


def without_consequences(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out what only follows from another finding: it would send the author to the wrong place."""
    codes = {finding.code for finding in findings}
    follows = {consequence for code in codes for consequence in CONSEQUENCES.get(code, ())}
    return [finding for finding in findings if finding.code not in follows]


async def syntax_findings(source: BashToolSource, script: ScriptText, timeout: float) -> list[Finding]:
    """What bash itself says of the file without running it."""
    if not source.file.is_file():
        return []
    shop = source.workshop
    request = ChildRequest(
        argv=[shop.bash.path, "-n", str(source.file)],
        cwd=source.file.parent,
        env=ParentEnvironment().with_extra({"LC_ALL": "C"}),
        timeout=timeout,
    )
    said = (await shop.children.run(request)).stderr.text
    last = len(script.text.splitlines())  # where the file ends too early, bash names the line after it
    hint = f"see it for yourself: bash -n {source.file}"
    return [
        error(source.file, min(int(number), last), "bash_syntax", message.removeprefix("warning: "), hint=hint)
        for number, message in SYNTAX_MESSAGE.findall(said)
    ]


def text_findings(script: ScriptText) -> Iterator[Finding]:
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
