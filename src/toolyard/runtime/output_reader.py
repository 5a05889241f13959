"""The tool by which a model reads on in output that was too long for a result, whatever kind of tool printed it."""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolyard.core.own_names import READ_OUTPUT
from toolyard.core.text import call_line
from toolyard.core.tool import OWN, Hints, JsonInput, Plan, ToolResult, ToolSpec
from toolyard.files.own.entering import entered, open_within
from toolyard.process.output import after_continuation, cut_before

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.core.tool import CallContext, JsonObject, Truncation

PIECE = 1 << 20
MOST_FINDS = 50
AROUND = 200
"""Bytes that are shown on each side of a find, as far as its line goes."""
ROOM_FOR_THE_END = 200
SPEC = ToolSpec(
    name=READ_OUTPUT,
    description="Read on in output that was too long for a result. The line where it was cut names the handle.",
    input=JsonInput(
        schema={
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "Which output."},
                "offset": {
                    "type": "integer",
                    "description": "The byte to start at; a negative one counts from the end.",
                    "default": 0,
                },
                "find": {
                    "type": "string",
                    "description": "Show only where this text occurs from there on, with the offsets.",
                },
            },
            "required": ["handle"],
            "additionalProperties": False,
        }
    ),
    hints=Hints(read_only=True),
)


class OutputReader:
    """Reads what is kept for the workspace of the call, and nothing else."""

    spec = SPEC
    kind = OWN
    confined = True
    """As good as: it opens files of one folder, which the sandbox shows to every tool."""

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """Nothing more than what it was asked."""
        return Plan(arguments=arguments, cwd=context.cwd)

    async def preview(self, plan: Plan, context: CallContext) -> str:  # noqa: ARG002 - the interface
        """The call itself."""
        return call_line(self.spec.name, plan.arguments)

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """In a thread, for it may look through gigabytes."""
        return await asyncio.to_thread(read_on, plan.arguments, context)


def note_of(truncation: Truncation) -> str:
    """How the rest is had, for the line that says that there is one."""
    handle = truncation.kept_at.name if truncation.kept_at else ""
    return f"{READ_OUTPUT} has it: handle {handle}, offset {truncation.starts_at}"


def read_on(arguments: JsonObject, context: CallContext) -> ToolResult:
    try:
        with opened(arguments["handle"], context.spill_folder) as fd:
            size = os.fstat(fd).st_size
            offset = arguments.get("offset", 0)
            start = min(offset, size) if offset >= 0 else max(0, size + offset)
            if wanted := arguments.get("find"):
                return ToolResult(text=found(fd, wanted, start, context))
            return ToolResult(text=piece(fd, start, size, context))
    except OSError:
        text = f"There is no kept output with the handle '{arguments['handle']}' in this workspace."
        return ToolResult(text=text, failure="invalid_arguments")


@contextmanager
def opened(handle: str, kept_in: Path | None) -> Iterator[int]:
    """A file of the folder where this call's own output would be kept; no link leads anywhere else."""
    if kept_in is None:
        raise FileNotFoundError(handle)
    with entered(kept_in) as folder:
        fd = open_within(folder, os.path.basename(handle).replace("\0", ""))
    try:
        yield fd
    finally:
        os.close(fd)


def piece(fd: int, start: int, size: int, context: CallContext) -> str:
    """As much as a result takes, up to the end of a line where there is one, and how to go on."""
    data = os.pread(fd, max(context.output_limit - ROOM_FOR_THE_END, ROOM_FOR_THE_END), start)
    first = after_continuation(data, 0) if start else 0
    data = data[first:]
    if start + first + len(data) < size:
        line_end = data.rfind(b"\n") + 1
        data = data[:line_end] if line_end > len(data) // 2 else cut_before(data)[0]
    end = start + first + len(data)
    rest = f"go on at offset {end}" if end < size else "that is its end"
    return f"{as_text(fd, data, start + first, context)}\n[bytes {start + first} to {end} of {size}; {rest}]"


def as_text(fd: int, data: bytes, start: int, context: CallContext) -> str:
    """A part of a file as a model may see it: of a secret that became known later, no rest either."""
    if context.redactor is None or not context.redactor.knows_any:
        return data.decode("utf-8", "replace")
    reach = context.redactor.longest
    before = os.pread(fd, min(reach, start), max(0, start - reach))
    # No character is in two of the parts: a secret would not be found that has it. What was cut off a part is in none.
    first, end = after_continuation(data, 0), len(cut_before(data)[0])
    parts = before + data[:first], data[first:end], data[end:] + os.pread(fd, reach, start + len(data))
    clean = context.redactor.redact_window(*(part.decode("utf-8", "surrogateescape") for part in parts))
    return clean.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def found(fd: int, wanted: str, start: int, context: CallContext) -> str:
    """The lines in which a text occurs, with their offsets."""
    needle = wanted.encode("utf-8", "replace")
    lines: list[str] = []
    room = context.output_limit - ROOM_FOR_THE_END
    for at in finds(fd, needle, start):
        line = f"{at}: {line_around(fd, at, len(needle), context)}"
        room -= len(line.encode()) + 1
        if len(lines) == MOST_FINDS or room < 0:
            return "\n".join([*lines, f"[there are more; go on at offset {at}]"])
        lines.append(line)
    return "\n".join([*lines, "[that is all]"]) if lines else f"[the text does not occur from offset {start} on]"


def finds(fd: int, needle: bytes, start: int) -> Iterator[int]:
    """Where something begins, once for each line."""
    overlap = len(needle) - 1
    while data := os.pread(fd, PIECE + overlap, start):
        at = data.find(needle)
        if at < 0:
            start += max(len(data) - overlap, 1)
            continue
        yield start + at
        line_end = data.find(b"\n", at + len(needle))
        start += len(data) - overlap if line_end < 0 else line_end + 1


def line_around(fd: int, at: int, length: int, context: CallContext) -> str:
    """A find with what is around it in its line."""
    before = os.pread(fd, min(AROUND, at), max(0, at - AROUND)).rpartition(b"\n")[2]
    rest = os.pread(fd, length + AROUND, at)
    after = rest[:length] + rest[length:].partition(b"\n")[0]
    return as_text(fd, before + after, at - len(before), context)
