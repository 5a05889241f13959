"""What a server answers, in our own terms."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from toolyard.core.content import AudioPart, ImagePart, LinkPart
from toolyard.core.tool import ToolResult
from toolyard.process.output import HeadTail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp.types import CallToolResult, GetPromptResult, ReadResourceResult

    from toolyard.core.content import Part
    from toolyard.core.tool import CallContext

FAILED = 1
"""The exit code of a tool whose server says that it failed."""


def result_of(answer: CallToolResult, context: CallContext) -> ToolResult:
    """The result of a call. Structured content is its text only where a server sends no other."""
    text, parts = taken_apart(answer.content)
    structured = answer.structured_content
    if structured is not None and not text and not parts:
        text = json.dumps(structured, ensure_ascii=False)
    data = structured if isinstance(structured, dict) else None
    return limited(text, parts, context, failed=bool(answer.is_error), data=data)


def resource_result(answer: ReadResourceResult, context: CallContext) -> ToolResult:
    text, parts = taken_apart(map(Embedded, answer.contents))
    return limited(text, parts, context)


def prompt_result(answer: GetPromptResult, context: CallContext) -> ToolResult:
    """The messages of a prompt, each after who says it."""
    said, parts = [], []
    for message in answer.messages:
        text, more = taken_apart([message.content])
        said.append(f"{message.role}: {text}")
        parts += more
    return limited("\n\n".join(said), parts, context)


class Embedded:
    """The content of a resource, as content of a result has it."""

    type = "resource"

    def __init__(self, resource: Any) -> None:
        self.resource = resource


def limited(
    text: str, parts: Sequence[Part], context: CallContext, *, failed: bool = False, data: dict[str, Any] | None = None
) -> ToolResult:
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
        attachments=tuple(parts),
    )


def taken_apart(content: Iterable[Any]) -> tuple[str, list[Part]]:
    """The text of some content, and what is not text."""
    texts: list[str] = []
    parts: list[Part] = []
    for item in content:
        part = part_of(item)
        if isinstance(part, str):
            texts.append(part)
        else:
            parts.append(part)
    return "\n".join(texts), parts


def part_of(item: Any) -> str | Part:
    match item.type:
        case "text":
            return str(item.text)
        case "image":
            return media(item.mime_type, item.data)
        case "audio":
            return media(item.mime_type, item.data)
        case "resource_link":
            return LinkPart(uri=str(item.uri), name=item.title or item.name, media_type=item.mime_type)
        case "resource":
            return of_resource(item.resource)
    return f"[content of the unknown type '{item.type}']"


def of_resource(resource: Any) -> str | Part:
    text = getattr(resource, "text", None)
    if text is not None:
        return str(text)
    kind = resource.mime_type or ""
    if kind.startswith(("image/", "audio/")):
        return media(kind, resource.blob)
    return LinkPart(uri=str(resource.uri), media_type=resource.mime_type)


def media(media_type: str, data: str) -> str | Part:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[{media_type} that is not base64]"
    made = AudioPart if media_type.startswith("audio/") else ImagePart
    return made(media_type=media_type, data=content)
