"""What a call gave, as MCP content: text, images, audio and links, and the same as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.wire.content_forms import mcp_content
from toolyard.serve.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RpcFault

if TYPE_CHECKING:
    from toolyard.core.tool import JsonObject, ToolResult
    from toolyard.serve.mcp.messages import CallRequest


RESULTS = {
    "resources/read": ("contents",),
    "prompts/get": ("description", "messages"),
    "completion/complete": ("completion",),
}
"""What is passed on of a result."""


def result_for(request: CallRequest, result: ToolResult) -> dict[str, Any]:
    """What a call gave, as the result of the request that it was made for."""
    original = result.original or {}
    error = original.get("error")
    if error and (request.method != "tools/call" or error["code"] == MISSING_CAPABILITY):
        raise RpcFault(error["code"], error["message"], error.get("data"))
    if request.method == "tools/call":
        return call_result(result)
    if request.method == "resources/subscribe" and result.ok:
        return {}
    if not result.ok or not original:
        text = result.text if not result.ok else f"{request.method} gave more than a result may have"
        raise RpcFault(INTERNAL_ERROR if result.failure == "crash" else INVALID_PARAMS, text)
    found = {name: original[name] for name in RESULTS[request.method] if name in original}
    if request.method == "resources/read":
        own, known = request.arguments["uri"], request.uri
        found["contents"] = [{**one, "uri": known} if one.get("uri") == own else one for one in found["contents"]]
    return found


def call_result(result: ToolResult) -> dict[str, Any]:
    """The result of `tools/call`; what an MCP server gave is passed on as it was."""
    original = (result.original or {}).get("content")
    content = original or mcp_content(result.content) or [{"type": "text", "text": ""}]
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
