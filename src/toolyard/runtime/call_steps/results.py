"""Limit and redact: the one result of a call as a model gets it; and what is said where no tool ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.content import checked, text_and_attachments
from toolyard.core.regexes import late_pattern
from toolyard.core.tool import ToolResult
from toolyard.process.output import limit_text
from toolyard.process.waiting import printed_before

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from toolyard.core.problems import Problem
    from toolyard.runtime.call_steps.conditions import CallSettings
    from toolyard.runtime.redaction import Redactor

CANCELLED = "The call was cancelled."
STRANGE = late_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\ud800-\udfff]")
"""What no plain text has in it."""
HALF_CHARACTER = late_pattern(r"[\ud800-\udfff]")
"""A byte of a name that is no text, or half a UTF-16 character: nobody whom the text goes to could write it down."""
ROOM_FOR_A_NOTE = 512


def limited(result: ToolResult, settings: CallSettings, redactor: Redactor) -> ToolResult:
    """No kind's text has what a model cannot read in it, or is longer than the limit, but for the line that says what
    a kind left out itself; nor has a result more attached, or anything else, than it says.
    """
    if result.attachments:
        text, attachments = text_and_attachments(checked(result.content))
        original = result.original if attachments == result.attachments else None
        result = replace(result, text=text, attachments=attachments, original=original)
    seen = result.text
    if STRANGE.search(seen):
        from toolyard.core.screen_text import readable  # seldom needed, and slow to import

        seen = readable(HALF_CHARACTER.sub("\ufffd", seen))
    if result.truncated and result.truncated.kept_at and settings.reads_on:
        from toolyard.runtime.output_reader import note_of

        place = f"the whole is in {result.truncated.kept_at}"
        seen = seen.replace(f"; {place} ...]", f"; {place}; {note_of(result.truncated)} ...]")
    limit = settings.output_limit + ROOM_FOR_A_NOTE
    text, truncation = limit_text(seen, limit)
    if truncation and redactor.knows_any:  # a second cut may go through the line that says where the first one is
        text, truncation = limit_text(redactor.redact_cut(seen, at_end=result.truncated is not None), limit)
    if truncation is None and seen is result.text:
        return result
    return replace(result, text=text, truncated=result.truncated or truncation)


def cancelled_result(error: asyncio.CancelledError | None) -> ToolResult:
    """What is said of a call that was cancelled, with what it had printed."""
    result, printed = ToolResult(text=CANCELLED, failure="cancelled"), printed_before(error)
    if printed and printed.text:
        text = f"{CANCELLED} Output so far:\n{printed.text}"
        result = replace(result, text=text, bytes_out=printed.total_bytes, truncated=printed.truncated)
    return result


def not_loaded(name: str, problem: Problem) -> ToolResult:
    """The tool would be there, but for a fault that its author or the user has to mend."""
    place = f"{problem.where}: " if problem.where else ""
    return ToolResult(text=f"The tool '{name}' could not be loaded: {place}{problem.sentence}", failure="unknown_tool")


def not_run(reason: str) -> ToolResult:
    """A call that the sandbox does not let begin."""
    return ToolResult(text=f"The call was not run: {reason}", failure="denied")


def unknown_tool(name: str, known: Sequence[str]) -> ToolResult:
    """Name the nearest, or all when they are few."""
    import difflib

    close = difflib.get_close_matches(name, known, n=3)
    if close:
        help_text = f"Did you mean {' or '.join(repr(other) for other in close)}?"
    else:
        help_text = f"Known tools: {', '.join(known)}." if known else "No tools are loaded."
    return ToolResult(text=f"There is no tool named '{name}'. {help_text}", failure="unknown_tool")
