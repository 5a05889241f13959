"""`tool test`: cases in `tests/*.json` beside a tool, run along the real call path."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.authoring.workbench import Workbench, open_workbench
from toolyard.config.document import Document, read_document
from toolyard.config.problems import ConfigProblem, Position
from toolyard.core.tool import Failure, ToolCall, ToolResult
from toolyard.runtime.invoke import CallSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Case", "CaseOutcome", "test_tools"]

OUTPUT_LIMIT = 1 << 20


class Case(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Arguments, and what must come of them; only what is given is compared."""

    arguments: dict[str, Any]
    name: str = ""
    tool: str | None = None
    """Which tool, where a folder has several."""
    config: dict[str, Any] = {}
    files: dict[str, str] = {}
    """Files that are in the working directory, by name."""
    output: str | None = None
    output_contains: str | None = None
    output_matches: str | None = None
    preview: str | None = None
    exit: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """One case after its run; no differences means that it passed."""

    file: Path
    line: int
    name: str
    differences: Sequence[str]

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.differences


async def test_tools(path: Path) -> tuple[list[CaseOutcome], list[ConfigProblem]]:
    """Run every case beside a tool file or in a folder; what is wrong with the files themselves comes apart."""
    outcomes: list[CaseOutcome] = []
    async with open_workbench(path) as bench:
        problems = [*bench.problems, *bench.catalog.problems]
        for file in case_files(path, bench):
            document = read_document(file)
            if isinstance(document, ConfigProblem):
                problems.append(document)
                continue
            for index, found in enumerate(read_cases(document)):
                if isinstance(found, ConfigProblem):
                    problems.append(found)
                else:
                    line = document.position((index,)).line or 1
                    outcomes.append(await run_case(found, file, line, bench))
    return outcomes, problems


test_tools.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def case_files(path: Path, bench: Workbench) -> list[Path]:
    """`tests/*.json` beside the tools; for a single file those named after it, if there are such."""
    folder = path if path.is_dir() else path.parent
    found = sorted((folder / "tests").glob("*.json"))
    if path.is_dir():
        return found
    named = [file for file in found if file.stem in {path.stem, *bench.catalog.names()}]
    return named or found


def read_cases(document: Document) -> Iterator[Case | ConfigProblem]:
    """The cases of a file, each checked on its own."""
    if not isinstance(document.value, list):
        yield ConfigProblem(
            code="cases_type", message="a file of cases is a list", hint="[{…}, {…}]", where=document.position(())
        )
        return
    for index, value in enumerate(document.value):
        try:
            yield msgspec.convert(value, Case)
        except msgspec.ValidationError as error:
            yield ConfigProblem(
                code="case_type",
                message=str(error).replace("`", "'"),
                hint=f"a case has {', '.join(Case.__struct_fields__)}",
                where=document.position((index,)),
            )


async def run_case(case: Case, file: Path, line: int, bench: Workbench) -> CaseOutcome:
    """Run one case in a folder of its own."""
    name = tool_of(case, file, bench)
    if isinstance(name, ConfigProblem):
        return CaseOutcome(file=file, line=line, name=case.name, differences=[name.message])
    with tempfile.TemporaryDirectory(prefix="toolyard-case-") as folder:
        write_files(case, Path(folder))
        settings = CallSettings(session="test", cwd=Path(folder), config=case.config, output_limit=OUTPUT_LIMIT)
        call = ToolCall(id="case", name=name, arguments=case.arguments)
        result = await bench.invoker.call(call, settings)
        preview = await bench.invoker.preview(call, settings) if case.preview is not None else None
    differences = list(compare(case, result, preview))
    return CaseOutcome(file=file, line=line, name=case.name or f"case at line {line}", differences=differences)


def tool_of(case: Case, file: Path, bench: Workbench) -> str | ConfigProblem:
    """The tool that a case is about: the one it names, the one its file is named after, or the only one."""
    names = bench.catalog.names()
    if case.tool is not None:
        return case.tool
    if file.stem in names:
        return file.stem
    if len(names) == 1:
        return names[0]
    message = f"which tool? the case names none, and there are: {', '.join(names) or 'none'}"
    return ConfigProblem(code="case_tool", message=message, where=Position(file=file))


def write_files(case: Case, folder: Path) -> None:
    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def compare(case: Case, result: ToolResult, preview: str | ToolResult | None) -> Iterator[str]:
    """What came out differently, in words."""
    expects_failure = case.failure is not None or case.exit not in (None, 0)
    if case.failure is not None and result.failure != case.failure:
        yield f"failure: expected {case.failure}, got {result.failure or 'success'}: {result.text!r}"
    elif not expects_failure and not result.ok:
        yield f"expected success, got {result.failure}: {result.text!r}"
    if case.exit is not None and result.exit_code != case.exit:
        yield f"exit: expected {case.exit}, got {result.exit_code}"
    if case.output is not None and result.text != case.output:
        yield f"output: expected {case.output!r}, got {result.text!r}"
    if case.output_contains is not None and case.output_contains not in result.text:
        yield f"output: expected to contain {case.output_contains!r}, got {result.text!r}"
    if case.output_matches is not None and not re.search(case.output_matches, result.text):
        yield f"output: expected to match {case.output_matches!r}, got {result.text!r}"
    if case.preview is not None and preview != case.preview:
        yield f"preview: expected {case.preview!r}, got {preview!r}"
