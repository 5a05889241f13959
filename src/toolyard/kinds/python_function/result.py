"""What a Python tool returned or raised, as the one result of its call."""

from __future__ import annotations

import json
import os
import traceback
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.tool import ToolResult
from toolyard.errors import ToolError
from toolyard.process.output import HeadTail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.core.tool import CallContext, Failure, Json
    from toolyard.process.output import Captured


OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
BUILTIN = os.path.join(OURS, "builtin_plugins") + os.sep
LONGEST_MESSAGE = 2000
MOST_FRAMES = 4


def succeeded(value: Any, printed: Captured, context: CallContext) -> ToolResult:
    """The answer of a tool that came to its end; one that returned nothing answers with what it printed."""
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult(text=printed.text, bytes_out=printed.total_bytes, truncated=printed.truncated)
    text, data = as_text(value)
    return answer(text, context, data=data)


def failed(name: str, error: BaseException, roots: Sequence[str], context: CallContext) -> ToolResult:
    """A tool that raised: what it says of itself, or how it broke."""
    if isinstance(error, ToolError):
        return answer(f"Error: {error}", context, failure="exit_code", exit_code=error.exit_code)
    return answer(f"Error: '{name}' crashed: {crash_text(error, roots)}", context, failure="crash")


def timed_out(name: str, limit: float, printed: str, context: CallContext) -> ToolResult:
    """A tool that did not end; what it had printed often says why."""
    unit = "second" if limit == 1 else "seconds"
    text = f"Error: '{name}' timed out after {limit:g} {unit}"
    return answer(f"{text}\noutput so far:\n{printed}" if printed.strip() else text, context, failure="timeout")


def answer(
    text: str,
    context: CallContext,
    *,
    failure: Failure | None = None,
    exit_code: int | None = None,
    data: Mapping[str, Json] | None = None,
) -> ToolResult:
    """A result within the limit; the whole goes to the spill file where there is one."""
    kept = HeadTail(context.output_limit, spill_to=context.spill_to)
    kept.add(text.encode("utf-8", "replace"))
    captured: Captured = kept.finish()
    return ToolResult(
        text=captured.text,
        failure=failure,
        exit_code=exit_code,
        bytes_out=captured.total_bytes,
        truncated=captured.truncated,
        data=data,
    )


def as_text(value: Any) -> tuple[str, Mapping[str, Json] | None]:
    """A value as text for the model, and as data when it is an object."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace"), None
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    try:
        plain = msgspec.to_builtins(value, enc_hook=str, str_keys=True)
        text = json.dumps(plain, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value), None
    return text, plain if isinstance(plain, dict) else None


def crash_text(error: BaseException, roots: Sequence[str] = ()) -> str:
    """An exception in a line, and below it where it came from in the author's own code."""
    message = " ".join(str(error).split("\n")).strip() if isinstance(error, SyntaxError) else str(error)
    first = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if len(first) > LONGEST_MESSAGE:
        first = first[:LONGEST_MESSAGE] + "…"
    lines = [
        f"  {os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames_of(error, roots)
    ]
    return "\n".join((first, *lines[-MOST_FRAMES:]))


def frames_of(error: BaseException, roots: Sequence[str] = ()) -> list[traceback.FrameSummary]:
    """The frames of an exception in the author's files; all but ours when none of them is."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_foreign(frame.filename)]
    own = [frame for frame in frames if any(frame.filename.startswith(root + os.sep) for root in roots)]
    return own or frames


def is_foreign(file: str) -> bool:
    """Whether a file is none of the runtime's; bundled plugins are nobody's in particular."""
    return not file.startswith("<frozen") and (not file.startswith(OURS) or file.startswith(BUILTIN))
