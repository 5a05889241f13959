"""`toolyard tool new|check|test`: for people who write tools."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from toolyard.cli.main import OrderedGroup
from toolyard.cli.render import count, relative, show_json, show_note, show_problems, show_text
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from toolyard.authoring.cases import CaseOutcome
    from toolyard.core.problems import Problem


class KindChoice(click.Choice[str]):
    """The kinds of tools that people write, or the modes of all of them; looked up when somebody asks."""

    def __init__(self, *, modes: bool = False) -> None:
        self._modes = modes
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        from toolyard.kinds import KINDS

        written = {kind.name: kind.modes for kind in KINDS if kind.modes is not None}
        return tuple(mode for modes in written.values() for mode in modes) if self._modes else tuple(written)

    @choices.setter
    def choices(self, value: object) -> None:
        """The base class sets what is only known later."""


@click.group(cls=OrderedGroup)
def tool() -> None:
    """Write a tool: start one, check it, test it. No configuration is needed."""


@tool.command(short_help="Start a tool that works as it is.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--kind", type=KindChoice(), default="bash", show_default=True, help="What the tool is written as.")
@click.option("--mode", type=KindChoice(modes=True), help="How arguments reach it, for kinds that have several ways.")
def new(path: Path, kind: str, mode: str | None) -> int:
    """Write a folder PATH with a tool of that name, which works as it is, and its test cases."""
    from toolyard.authoring.scaffold import create_tool
    from toolyard.core.problems import Problem

    created = create_tool(path, kind, mode)
    if isinstance(created, Problem):
        show_note(created.message, "error", hint=created.hint)
        return 2
    for file in created:
        show_text(f"{file}\n")
    show_note(f"next: toolyard tool check {quote(str(path))} && toolyard tool test {quote(str(path))}")
    return 0


@tool.command(short_help="Report every fault of a tool.")
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=".")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as records.")
def check(path: Path, strict: bool, as_json: bool) -> int:
    """Report every fault of the tool in PATH, a file or a folder, as file:line: problem.

    Runs a bash file's `schema`, `preview` and `error`, loads a Node module and tries its `preview`, imports a Python
    plugin, and never a tool's `run`; of a manifest it runs nothing. Exit status: 0 sound, 1 at fault.
    """
    return run_to_end(check_once(path, strict, as_json))


@tool.command(short_help="Run a tool's test cases.")
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=".")
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as records.")
def test(path: Path, as_json: bool) -> int:
    """Run the cases in tests/*.json beside the tool in PATH, a file or a folder.

    Exit status: 0 all passed, 1 some failed, 2 there are none.
    """
    return run_to_end(test_once(path, as_json))


async def check_once(path: Path, strict: bool, as_json: bool) -> int:
    from toolyard.authoring.check import check_tools

    findings = await check_tools(path)
    if as_json:
        show_json([finding_record(finding) for finding in findings])
    else:
        show_findings(findings)
    errors = sum(finding.severity == "error" for finding in findings)
    return 1 if errors or (strict and findings) else 0


async def test_once(path: Path, as_json: bool) -> int:
    from toolyard.authoring.cases import test_tools

    outcomes, problems = await test_tools(path)
    if as_json:
        show_json([outcome_record(outcome) for outcome in outcomes])
    else:
        show_outcomes(outcomes)
    show_problems(problems)
    if not outcomes and not problems:
        show_no_cases(path)
        return 2
    return 1 if problems or any(not outcome.passed for outcome in outcomes) else 0


def show_findings(findings: list[Problem]) -> None:
    for finding in findings:
        place = relative(str(finding.where))
        show_text(f"{place}: {finding.severity}: {finding.message}\n", finding.severity)
        if finding.hint:
            show_text(f"  hint: {finding.hint}\n", "faint")
    errors = sum(finding.severity == "error" for finding in findings)
    show_note(f"{count(errors, 'error')}, {count(len(findings) - errors, 'warning')}", "error" if errors else "good")


def show_outcomes(outcomes: list[CaseOutcome]) -> None:
    for outcome in outcomes:
        word, style = ("ok  ", "good") if outcome.passed else ("FAIL", "error")
        show_text(f"{word} {outcome.name}\n", style)
        for difference in outcome.differences:
            show_text(f"     {relative(str(outcome.file))}:{outcome.line}: {difference}\n")
    failed = sum(not outcome.passed for outcome in outcomes)
    if outcomes:
        show_note(f"{len(outcomes) - failed} passed, {failed} failed", "error" if failed else "good")


def show_no_cases(path: Path) -> None:
    folder = path if path.is_dir() else path.parent
    hint = 'for example [{"arguments": {}, "output": "done\\n"}]'
    show_note(f"no cases: write some in {folder / 'tests' / 'NAME.json'}", "warning", hint=hint)


def finding_record(finding: Problem) -> dict[str, object]:
    return {
        "file": str(finding.where.file) if finding.where else "",
        "line": finding.where.line if finding.where else 1,
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "hint": finding.hint,
    }


def outcome_record(outcome: CaseOutcome) -> dict[str, object]:
    return {
        "file": str(outcome.file),
        "line": outcome.line,
        "name": outcome.name,
        "passed": outcome.passed,
        "differences": list(outcome.differences),
    }
