"""Parts in the forms of model APIs and of MCP, held against the types of their own packages."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from mcp_types import CallToolResult

from sdk_types import assert_official
from support import PNG
from toolyard.core.content import AudioPart, FilePart, ImagePart, LinkPart, Part, TextPart
from toolyard.core.tool import ToolResult
from toolyard.core.wire.content_forms import LARGEST_FOR_ANTHROPIC, anthropic_result, mcp_content, part_of_mcp
from toolyard.core.wire.sdk_messages import tool_messages

IMAGE = ImagePart(media_type="image/png", data=PNG)
SOUND = AudioPart(media_type="audio/wav", data=b"RIFF....WAVE")
PAPER = FilePart(media_type="application/pdf", data=b"%PDF-1", name="a.pdf")
TIFF = ImagePart(media_type="image/tiff", data=b"II*\0")
LINK = LinkPart(uri="https://example.org/a", name="a", media_type="text/html")
EVERYTHING: tuple[Part, ...] = (IMAGE, SOUND, PAPER, TIFF, LINK)
CALL = {"name": "look", "arguments": "{}"}
BEFORE: dict[str, list[Any]] = {
    "openai": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": CALL}]}],
    "responses": [{"type": "function_call", "call_id": "c", **CALL}],
    "anthropic": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]}],
}
FRAMES: dict[str, dict[str, Any]] = {
    "openai": {"model": "m", "stream": True},
    "responses": {"model": "m", "stream": True},
    "anthropic": {"model": "m", "stream": True, "max_tokens": 1},
}


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
@pytest.mark.parametrize("failure", [None, "exit_code"])
def test_a_result_with_everything_goes_back_in_the_vendors_own_types(format, failure):
    result = ToolResult(text="Look:", attachments=EVERYTHING, failure=failure)
    messages = [{"role": "user", "content": "Look"}, *BEFORE[format], *tool_messages({"c": result}, format)]
    key = "input" if format == "responses" else "messages"
    assert_official(format, {**FRAMES[format], key: messages})


def test_anthropic_gets_pictures_and_documents_and_words_for_the_rest():
    (message,) = tool_messages({"c": ToolResult(text="Look:", attachments=EVERYTHING)}, "anthropic")
    blocks = message["content"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image", "text", "document", "text", "text"]
    assert base64.b64decode(blocks[1]["source"]["data"]) == PNG
    assert blocks[2]["text"] == "[audio: audio/wav, 12 bytes]"
    assert blocks[4]["text"] == "[image: image/tiff, 4 bytes]"


def test_an_error_to_anthropic_is_text_that_names_the_rest():
    (message,) = tool_messages({"c": ToolResult(text="No.", attachments=(IMAGE,), failure="exit_code")}, "anthropic")
    assert message["content"][0]["content"] == f"No.\n[image: image/png, {len(PNG)} bytes]"


def test_a_picture_that_is_too_large_for_anthropic_is_named():
    large = ImagePart(media_type="image/png", data=bytes(LARGEST_FOR_ANTHROPIC + 1))
    assert anthropic_result([large]) == f"[image: image/png, {len(large.data)} bytes]"


def test_responses_gets_pictures_and_files_in_the_output():
    (item,) = tool_messages({"c": ToolResult(text="Look:", attachments=EVERYTHING)}, "responses")
    kinds = [part["type"] for part in item["output"]]
    assert kinds == ["input_text", "input_image", "input_text", "input_file", "input_text", "input_text"]
    assert item["output"][1]["image_url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert item["output"][3]["filename"] == "a.pdf"


def test_chat_gets_all_results_as_text_and_then_what_belongs_to_them():
    results = {
        "c1": ToolResult(text="One", attachments=(IMAGE, TIFF)),
        "c2": ToolResult(text="Two"),
        "c3": ToolResult(text="", attachments=(SOUND, PAPER)),
    }
    *answers, following = tool_messages(results, "openai")
    assert [answer["content"].splitlines()[0] for answer in answers] == ["One", "Two", "[audio: audio/wav, 12 bytes]"]
    assert following["role"] == "user"
    assert [part["type"] for part in following["content"]] == ["text", "image_url", "text", "input_audio", "file"]
    assert ["c1" in following["content"][0]["text"], "c3" in following["content"][2]["text"]] == [True, True]


def test_mcp_carries_everything_and_it_comes_back():
    parts = [TextPart(text="Look:"), *EVERYTHING]
    content = mcp_content(parts)
    CallToolResult.model_validate({"content": content})
    assert [form["type"] for form in content] == ["text", "image", "audio", "resource", "image", "resource_link"]
    again = [part_of_mcp(form) for form in content]
    assert [*again[:3], *again[4:]] == [*parts[:3], *parts[4:]]
    assert isinstance(again[3], FilePart)
    assert again[3].data == PAPER.data


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, TextPart(text="inside")),
        ({"type": "resource", "resource": {"uri": "file:///a"}}, LinkPart(uri="file:///a")),
        (
            {"type": "resource", "resource": {"uri": "file:///x/a.bin", "blob": "AAE="}},
            FilePart(media_type="application/octet-stream", data=b"\0\1", name="a.bin"),
        ),
        ({"type": "hologram"}, TextPart(text="[hologram: of a form that is not known]")),
        ({"type": "image", "data": "%"}, TextPart(text="[image: of a form that is not known]")),
        ({}, TextPart(text="[something: of a form that is not known]")),
    ],
)
def test_what_a_server_sends_in_other_forms_is_read_or_named(form, part):
    assert part_of_mcp(form) == part


def tall(height: int, media_type: str) -> ImagePart:
    """The beginning of a picture, as far as anybody looks at it."""
    size = (2).to_bytes(4, "big") + height.to_bytes(4, "big")
    jpeg = b"\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\x08" + height.to_bytes(2, "big") + (2).to_bytes(2, "big") + bytes(9)
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + size if media_type == "image/png" else jpeg
    return ImagePart(media_type=media_type, data=data)


@pytest.mark.parametrize("media_type", ["image/png", "image/jpeg"])
def test_a_picture_that_is_too_tall_for_anthropic_is_named(media_type):
    assert isinstance(anthropic_result([tall(8000, media_type)]), list)
    assert str(anthropic_result([tall(8001, media_type)])).startswith(f"[image: {media_type}, ")
