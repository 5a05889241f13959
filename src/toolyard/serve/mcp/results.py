"""What a call gave, as MCP content: text, images, audio and links, and the same as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.wire.content_forms import mcp_content

if TYPE_CHECKING:
    from toolyard.core.tool import JsonObject, ToolResult


def call_result(result: ToolResult) -> dict[str, Any]:
    """The result of `tools/call`."""
    content = mcp_content(result.content) or [{"type": "text", "text": ""}]
    answer: dict[str, Any] = {"content": content, "isError": not result.ok}
    if result.data is not None:
        answer["structuredContent"] = with_text(result.data, result.text)
    return answer


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
