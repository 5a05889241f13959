"""What a server answers, in our own terms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult

from toolyard.core.content import text_and_attachments
from toolyard.core.tool import ToolResult
from toolyard.core.wire.content_forms import part_of_mcp
from toolyard.kinds.mcp.listing import on_wire
from toolyard.process.output import HeadTail

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp.types import CompleteResult, GetPromptResult, ReadResourceResult, Result

    from toolyard.core.content import Part
    from toolyard.core.tool import CallContext, JsonObject

FAILED = 1
"""The exit code of a tool whose server says that it failed."""


def result_of(answer: CallToolResult | JsonObject, context: CallContext) -> ToolResult:
    """The result of a call. Structured content is its text only where a server sends no other content.

    One that came as it was is read so if it is nothing but text, and held to the model of the SDK if it is more.
    """
    if not isinstance(answer, CallToolResult):
        text = only_text(answer)
        if text is not None:
            return limited(text, (), context, failed=bool(answer.get("isError")), answer=answer)
        answer = CallToolResult.model_validate(answer, by_name=False)
    text, attachments = text_and_attachments(parts_of(answer.content))
    structured = answer.structured_content
    if structured is not None and not answer.content:
        text = json.dumps(structured, ensure_ascii=False)
    data = structured if isinstance(structured, dict) else None
    return limited(text, attachments, context, failed=bool(answer.is_error), data=data, answer=answer)


def only_text(answer: JsonObject) -> str | None:
    """The text of an answer that has one text and nothing else."""
    match answer:
        case {"content": [{"type": "text", "text": str(text)}]} if answer.get("structuredContent") is None:
            return text if answer.get("isError") in (None, True, False) else None
    return None


def resource_result(answer: ReadResourceResult, context: CallContext) -> ToolResult:
    parts = [part_of_mcp({"type": "resource", "resource": on_wire(one)}) for one in answer.contents]
    return limited(*text_and_attachments(parts), context, answer=answer)


def prompt_result(answer: GetPromptResult, context: CallContext) -> ToolResult:
    """The messages of a prompt, each after who says it."""
    said: list[str] = []
    attachments: tuple[Part, ...] = ()
    for message in answer.messages:
        text, more = text_and_attachments(parts_of([message.content]))
        said.append(f"{message.role}: {text}")
        attachments += more
    return limited("\n\n".join(said), attachments, context, answer=answer)


def completion_result(answer: CompleteResult, context: CallContext) -> ToolResult:
    return limited("\n".join(answer.completion.values), (), context, answer=answer)


def parts_of(content: Iterable[Any]) -> list[Part]:
    return [part_of_mcp(on_wire(item)) for item in content]


def limited(
    text: str,
    attachments: tuple[Part, ...],
    context: CallContext,
    *,
    failed: bool = False,
    data: JsonObject | None = None,
    answer: Result | JsonObject,
) -> ToolResult:
    """A result within the limits. A client gets what was answered, as it was, unless that is too long."""
    kept = HeadTail(context.output_limit, spill_to=context.spill_to)
    kept.add(text.encode("utf-8", "replace"))
    captured = kept.finish()
    return ToolResult(
        text=captured.text,
        failure="exit_code" if failed else None,
        exit_code=FAILED if failed else 0,
        bytes_out=captured.total_bytes,
        truncated=captured.truncated,
        data=data,
        attachments=attachments,
        original=original_of(answer) if context.client and not captured.truncated else None,
    )


def original_of(answer: Result | JsonObject) -> JsonObject:
    return answer if isinstance(answer, dict) else on_wire(answer)
