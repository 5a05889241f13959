"""`toolyard tool new|check|test`: for people who write tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolyard.cli.render import relative, show_json, show_note, show_problems, show_text

if TYPE_CHECKING:
    from toolyard.authoring.cases import CaseOutcome
    from toolyard.authoring.check import Finding
    from toolyard.authoring.scaffold import Mode

__all__ = ["tool"]


@click.group()
def tool() -> None:
    """Write a tool: start one, check it, test it. No configuration is needed."""


@tool.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--mode",
    type=click.Choice(["flags", "positional", "json", "comments"]),
    default="flags",
    show_default=True,
    help="How arguments reach the script; `comments` reads them off its comments.",
)
def new(path: Path, mode: Mode) -> int:
    """Write a folder PATH with a tool of that name that works as it is."""
    from toolyard.authoring.scaffold import CannotCreate, create_tool

    created = create_tool(path, mode)
    if isinstance(created, CannotCreate):
        show_note(created.message, "error")
        show_note(f"  hint: {created.hint}", "faint")
        return 2
    for file in created:
        show_text(f"{file}\n")
    show_note(f"next: toolyard tool check {path} && toolyard tool test {path}")
    return 0


@tool.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=".")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as records.")
def check(path: Path, strict: bool, as_json: bool) -> int:
    """Report every fault of the tool in PATH, a file or a folder, as file:line: problem.

    Runs the file's `schema`, `preview` and `error`, never its `run`.
    """
    from toolyard.authoring.check import check_tools

    findings = asyncio.run(check_tools(path))
    if as_json:
        show_json([finding_record(finding) for finding in findings])
    else:
        show_findings(findings)
    errors = sum(finding.severity == "error" for finding in findings)
    return 1 if errors or (strict and findings) else 0


@tool.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=".")
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as records.")
def test(path: Path, as_json: bool) -> int:
    """Run the cases in tests/*.json beside the tool in PATH, a file or a folder."""
    from toolyard.authoring.cases import test_tools

    outcomes, problems = asyncio.run(test_tools(path))
    if as_json:
        show_json([outcome_record(outcome) for outcome in outcomes])
    else:
        show_outcomes(outcomes)
    show_problems(problems)
    if not outcomes and not problems:
        show_note(f"no cases: write some in {path if path.is_dir() else path.parent}/tests/NAME.json", "warning")
        return 2
    return 1 if problems or any(not outcome.passed for outcome in outcomes) else 0


def show_findings(findings: list[Finding]) -> None:
    for finding in findings:
        show_text(f"{relative(str(finding.file))}:{finding.line}: {finding.severity}: {finding.message}\n")
        if finding.hint:
            show_text(f"  hint: {finding.hint}\n")
    errors = sum(finding.severity == "error" for finding in findings)
    show_note(f"{count(errors, 'error')}, {count(len(findings) - errors, 'warning')}", "error" if errors else "good")


def show_outcomes(outcomes: list[CaseOutcome]) -> None:
    for outcome in outcomes:
        show_text(f"{'ok  ' if outcome.passed else 'FAIL'} {outcome.name}\n")
        for difference in outcome.differences:
            show_text(f"     {relative(str(outcome.file))}:{outcome.line}: {difference}\n")
    failed = sum(not outcome.passed for outcome in outcomes)
    show_note(f"{len(outcomes) - failed} passed, {failed} failed", "error" if failed else "good")


def finding_record(finding: Finding) -> dict[str, object]:
    return {
        "file": str(finding.file),
        "line": finding.line,
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


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
