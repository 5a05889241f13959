"""`tool test`: cases in `tests/*.json` beside a tool, run along the real call path."""

from __future__ import annotations

import re
import tempfile
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.authoring.bench import open_bench
from toolyard.config.document import Document, read_document
from toolyard.core.content import LinkPart, TextPart
from toolyard.core.problems import Problem, sort_problems
from toolyard.core.tool import Failure, ToolCall, ToolResult
from toolyard.files.inside import stays_inside
from toolyard.kinds import KINDS
from toolyard.runtime.call_steps.conditions import CallSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.content import Part
    from toolyard.plugins.kind import Kind
    from toolyard.runtime.loaded import Loaded


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
    attached: list[str] | None = None
    """What comes with the text, in its order: the media types of pictures and the like, the addresses of links."""
    preview: str | None = None
    exit: int | None = None
    failure: Failure | None = None


class CaseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One case after its run; no differences means that it passed."""

    file: Path
    line: int
    name: str
    differences: Sequence[str]

    @property
    def passed(self) -> bool:
        return not self.differences


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A case with where it is written."""

    case: Case
    file: Path
    line: int


async def test_tools(path: Path, kinds: Sequence[Kind] = KINDS) -> tuple[list[CaseOutcome], list[Problem]]:  # noqa: PT028 - no test of ours
    """Run every case beside a tool file or in a folder; what is wrong with the files themselves comes apart."""
    outcomes: list[CaseOutcome] = []
    async with open_bench(path, kinds=kinds) as bench:
        own = [problem for one in bench.sources() for problem in one.source.problems]
        problems = [*bench.loading_problems(), *sort_problems([*own, *bench.agent().catalog.rivalries()])]
        for file in case_files(path, bench):
            for found in read_cases(file):
                if isinstance(found, Problem):
                    problems.append(found)
                elif concerns(path, found.case, bench):
                    outcomes.append(await run_case(found, bench))
    return outcomes, problems


async def faults_of(path: Path, placed: Placed) -> list[str]:
    """What is wrong with one case of the tools at a path, or with the tools themselves; nothing when it passes."""
    async with open_bench(path) as bench:
        errors = [str(problem) for problem in bench.faults() if problem.severity == "error"]
        return errors or [*(await run_case(placed, bench)).differences]


test_tools.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def case_files(path: Path, bench: Loaded) -> list[Path]:
    """`tests/*.json` beside the tools that there are; for a single file those named after it, if there are such."""
    folders = dict.fromkeys(source.file.parent for _, source in bench.sources_by_kind() if names_of(bench))
    found = [file for folder in folders for file in sorted((folder / "tests").glob("*.json"))]
    if path.is_dir():
        return found
    named = [file for file in found if file.stem in {path.stem, *names_of(bench)}]
    return named or found


def concerns(path: Path, case: Case, bench: Loaded) -> bool:
    """Where one file is tested, cases of its neighbours are left out."""
    return path.is_dir() or case.tool is None or case.tool in names_of(bench)


def read_cases(file: Path) -> Iterator[Placed | Problem]:
    document = read_document(file)
    if isinstance(document, Problem):
        yield document
    elif not isinstance(document.value, list):
        message, hint = "a file of cases is a list", 'for example [{"arguments": {}, "output": "done\\n"}]'
        yield Problem(code="cases_type", message=message, hint=hint, where=document.position(()))
    else:
        for index in range(len(document.value)):
            yield read_case(document, index)


def read_case(document: Document, index: int) -> Placed | Problem:
    where = document.position((index,))
    try:
        case = msgspec.convert(document.value[index], Case)
    except msgspec.ValidationError as error:
        message, hint = str(error).replace("`", "'"), f"a case may have {', '.join(Case.__struct_fields__)}"
        return Problem(code="case_type", message=message, hint=hint, where=where)
    if outside := [name for name in case.files if not stays_inside(name)]:
        hint = "name files relative to the folder in which the case runs"
        where = document.position((index, "files", outside[0]))
        return Problem(code="case_file", message=f"'{outside[0]}' is outside", hint=hint, where=where)
    return Placed(case=case, file=document.path, line=where.line or 1)


async def run_case(placed: Placed, bench: Loaded) -> CaseOutcome:
    """Run one case in a folder of its own."""
    case = placed.case
    tool = case.tool or tool_of(placed.file, bench)
    found = await try_case(case, tool, bench) if tool else [which_tool(bench)]
    name = case.name or f"case at line {placed.line}"
    return CaseOutcome(file=placed.file, line=placed.line, name=name, differences=found)


async def try_case(case: Case, tool: str, bench: Loaded) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="toolyard-case-") as folder:
        write_files(case, Path(folder))
        settings = CallSettings(session="test", cwd=Path(folder), config=case.config, output_limit=OUTPUT_LIMIT)
        call = ToolCall(id="case", name=tool, arguments=case.arguments)
        calls = bench.agent().calls
        preview = await calls.preview(call, settings) if case.preview is not None else None
        result = await calls.call(call, settings)
    return list(differences(case, result, preview))


def names_of(bench: Loaded) -> Sequence[str]:
    return bench.agent().catalog.names()


def tool_of(file: Path, bench: Loaded) -> str | None:
    """The tool that a file of cases is about: the one it is named after, or the only one."""
    names = names_of(bench)
    if file.stem in names:
        return file.stem
    return names[0] if len(names) == 1 else None


def which_tool(bench: Loaded) -> str:
    return f"which tool? the case names none, and there are: {', '.join(names_of(bench)) or 'none'}"


def write_files(case: Case, folder: Path) -> None:
    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


LONGEST_QUOTE = 300


def differences(case: Case, result: ToolResult, preview: str | ToolResult | None) -> Iterator[str]:
    """Compare what a case expects, and nothing else; but that a call succeeds is expected unless it says otherwise."""
    yield from ending_differences(case, result)
    yield from output_differences(case, result.text)
    if case.attached is not None and (found := list(map(kind_of, result.attachments))) != case.attached:
        yield f"attached: expected {case.attached}, got {found}"
    if case.preview is not None and preview is not None:
        shown = preview.text if isinstance(preview, ToolResult) else preview
        yield from text_differences("preview", case.preview, shown)


def kind_of(part: Part) -> str:
    match part:
        case LinkPart():
            return part.uri
        case TextPart():
            return part.text
    return part.media_type


def ending_differences(case: Case, result: ToolResult) -> Iterator[str]:
    expects_failure = case.failure is not None or case.exit not in (None, 0)
    if case.failure is not None and result.failure != case.failure:
        yield f"failure: expected {case.failure}, got {result.failure or 'success'}: {quote(result.text)}"
    elif not expects_failure and not result.ok:
        yield f"expected success, got {result.failure}: {quote(result.text)}"
    if case.exit is not None and result.exit_code != case.exit:
        got = "no exit, since it never ran" if result.exit_code is None else result.exit_code
        yield f"exit: expected {case.exit}, got {got}"


def output_differences(case: Case, text: str) -> Iterator[str]:
    if case.output is not None:
        yield from text_differences("output", case.output, text)
    if case.output_contains is not None and case.output_contains not in text:
        yield f"output: expected to contain {case.output_contains!r}, got {quote(text)}"
    if case.output_matches is not None and (reason := mismatch(case.output_matches, text)):
        yield reason


def text_differences(what: str, expected: str, got: str) -> Iterator[str]:
    """The whole of two short texts, the first line at odds of longer ones."""
    if expected == got:
        return
    lines = list(zip_longest(expected.splitlines(keepends=True), got.splitlines(keepends=True)))
    if len(lines) <= 1:
        yield f"{what}: expected {expected!r}, got {quote(got)}"
        return
    for number, (wanted, found) in enumerate(lines, start=1):
        if wanted != found:
            yield f"{what}: line {number}: expected {quote(wanted)}, got {quote(found)}"
            return


def mismatch(pattern: str, text: str) -> str | None:
    try:
        found = re.search(pattern, text)
    except re.error as error:
        return f"output_matches: {pattern!r} is not a regular expression: {error}"
    return None if found else f"output: expected to match {pattern!r}, got {quote(text)}"


def quote(text: str | None) -> str:
    if text is None:
        return "nothing more"
    return repr(text) if len(text) <= LONGEST_QUOTE else repr(text[:LONGEST_QUOTE]) + "…"
