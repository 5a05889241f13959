"""What came of a case differently than expected, in words."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from toolyard.core.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.authoring.cases import Case

__all__ = ["differences"]

LONGEST_QUOTE = 300


def differences(case: Case, result: ToolResult, preview: str | ToolResult | None) -> Iterator[str]:
    """Compare what a case expects, and nothing else; but that a call succeeds is expected unless it says otherwise."""
    yield from ending_differences(case, result)
    yield from output_differences(case, result.text)
    if case.preview is not None and preview is not None:
        shown = preview.text if isinstance(preview, ToolResult) else preview
        yield from text_differences("preview", case.preview, shown)


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
