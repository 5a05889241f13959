"""What a call gave, as MCP content: text, images, audio and links, and the same as data."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.content import AudioPart, ImagePart, LinkPart, TextPart

if TYPE_CHECKING:
    from toolyard.core.content import Part
    from toolyard.core.tool import JsonObject, ToolResult


def call_result(result: ToolResult) -> dict[str, Any]:
    """The result of `tools/call`."""
    content = [content_of(part) for part in result.content] or [{"type": "text", "text": ""}]
    answer: dict[str, Any] = {"content": content, "isError": not result.ok}
    if result.data is not None:
        answer["structuredContent"] = with_text(result.data, result.text)
    return answer


def content_of(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart(media_type=media_type, data=data):
            return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": media_type}
        case AudioPart(media_type=media_type, data=data):
            return {"type": "audio", "data": base64.b64encode(data).decode(), "mimeType": media_type}
        case LinkPart(uri=uri, name=name, media_type=media_type):
            link = {"type": "resource_link", "uri": uri, "name": name or uri}
            return {**link, "mimeType": media_type} if media_type else link


def with_text(data: JsonObject, text: str) -> dict[str, Any]:
    """The data with all that the text says: some clients show a model only one of the two."""
    return dict(data) if not text or says_the_same(data, text) else {"text": text, **data}


def says_the_same(data: JsonObject, text: str) -> bool:
    """Whether the text is nothing but the data, written down, or the data already has it."""
    if text in data.values():
        return True
    try:
        return bool(msgspec.json.decode(text) == data)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return False
