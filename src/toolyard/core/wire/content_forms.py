"""Text, images, sound, files and links in the forms of model APIs and MCP; words for what a form has no place for."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolyard.core.content import AudioPart, FilePart, ImagePart, LinkPart, TextPart, in_words, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.core.content import DataPart, Part
    from toolyard.core.tool import JsonObject

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What both OpenAI and Anthropic look at; one of another type makes them refuse the whole request."""
SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
LARGEST_FOR_ANTHROPIC = 5_000_000 // 4 * 3
"""Bytes of a picture, which it counts in base64."""
MOST_PIXELS = 8000
"""On a side."""


def has_words(text: str) -> bool:
    return bool(text.strip())


def anthropic_blocks(parts: Iterable[Part]) -> Iterator[JsonObject]:
    """Blocks of Anthropic's Messages; it takes no empty text."""
    for part in parts:
        match part:
            case ImagePart() if part.media_type in IMAGES and fits_anthropic(part):
                yield {"type": "image", "source": base64_source(part)}
            case FilePart(media_type="application/pdf"):
                named = {"title": part.name} if part.name else {}
                yield {"type": "document", "source": base64_source(part), **named}
            case _ if has_words(text := in_words(part)):
                yield {"type": "text", "text": text}


def fits_anthropic(part: ImagePart) -> bool:
    return len(part.data) <= LARGEST_FOR_ANTHROPIC and max(pixels(part)) <= MOST_PIXELS


def pixels(part: ImagePart) -> tuple[int, int]:
    """Width and height, of the types in which tall pictures are made; nothing where they are not told at once."""
    data = part.data
    match part.media_type:
        case "image/png" if len(data) >= 24:
            return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        case "image/jpeg":
            return jpeg_pixels(data)
    return 0, 0


def jpeg_pixels(data: bytes) -> tuple[int, int]:
    """By the first segment that starts a frame."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        at += 2 + max(length, 2)
    return 0, 0


def base64_source(part: DataPart) -> JsonObject:
    return {"type": "base64", "media_type": part.media_type, "data": as_base64(part)}


def anthropic_result(parts: Sequence[Part]) -> str | list[JsonObject]:
    """The content of a `tool_result`: plain text where that is all there is."""
    blocks = list(anthropic_blocks(parts))
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return blocks


def responses_form(part: Part) -> JsonObject:
    """A part of a message, or of a call's output, of OpenAI's Responses."""
    match part:
        case ImagePart() if part.media_type in IMAGES:
            return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
        case FilePart(media_type="application/pdf"):
            return {"type": "input_file", "filename": part.name or "document.pdf", "file_data": data_url(part)}
    return {"type": "input_text", "text": in_words(part)}


def responses_output(parts: Sequence[Part]) -> str | list[JsonObject]:
    """The output of a call: plain text where that is all there is."""
    forms = [responses_form(part) for part in parts]
    if all(form["type"] == "input_text" for form in forms):
        return "\n".join(form["text"] for form in forms)
    return forms


def chat_form(part: Part) -> JsonObject:
    """A part of a user's message of OpenAI's Chat."""
    match part:
        case ImagePart() if part.media_type in IMAGES:
            return {"type": "image_url", "image_url": {"url": data_url(part)}}
        case AudioPart() if part.media_type in SOUNDS:
            sound = {"data": as_base64(part), "format": SOUNDS[part.media_type]}
            return {"type": "input_audio", "input_audio": sound}
        case FilePart(media_type="application/pdf"):
            return {"type": "file", "file": {"filename": part.name or "document.pdf", "file_data": data_url(part)}}
    return {"type": "text", "text": in_words(part)}


def chat_results(results: Iterable[tuple[str, Sequence[Part]]]) -> list[JsonObject]:
    """The messages of some calls' results in OpenAI's Chat, by the calls' ids.

    The message of a result has text only, so that pictures and the like follow in one of the user's.
    """
    messages: list[JsonObject] = []
    following: list[JsonObject] = []
    for id, parts in results:
        messages.append({"role": "tool", "tool_call_id": id, "content": "\n".join(in_words(part) for part in parts)})
        forms = [form for part in parts if (form := chat_form(part))["type"] != "text"]
        if forms:
            following += [{"type": "text", "text": f"[what belongs to the result of the call {id}:]"}, *forms]
    return [*messages, {"role": "user", "content": following}] if following else messages


def mcp_content(parts: Iterable[Part]) -> list[JsonObject]:
    """The content of an MCP result, which has a form for everything."""
    return [mcp_form(part, number) for number, part in enumerate(parts, start=1)]


def mcp_form(part: Part, number: int) -> JsonObject:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart():
            return {"type": "image", "data": as_base64(part), "mimeType": part.media_type}
        case AudioPart():
            return {"type": "audio", "data": as_base64(part), "mimeType": part.media_type}
        case LinkPart():
            typed = {"mimeType": part.media_type} if part.media_type else {}
            return {"type": "resource_link", "uri": part.uri, "name": part.name or part.uri, **typed}
        case FilePart():
            uri = f"attachment:///{number}"  # it is nowhere else, and a resource must have an address
            held = {"uri": uri, "mimeType": part.media_type, "blob": as_base64(part)}
            return {"type": "resource", "resource": held}


def part_of_mcp(form: JsonObject) -> Part:
    """One of an MCP result's content; what has an unknown or a broken form is named."""
    match form:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text)
        case {"type": "image", "data": str(text)} if (data := from_base64(text)) is not None:
            return ImagePart(media_type=str(form.get("mimeType", "")), data=data)
        case {"type": "audio", "data": str(text)} if (data := from_base64(text)) is not None:
            return AudioPart(media_type=str(form.get("mimeType", "")), data=data)
        case {"type": "resource_link", "uri": str(uri)}:
            media_type = form.get("mimeType")
            named = str(form.get("title") or form.get("name") or "")
            return LinkPart(uri=uri, name=named, media_type=media_type if isinstance(media_type, str) else None)
        case {"type": "resource", "resource": Mapping() as held}:
            return part_of_resource(held)
    return TextPart(text=f"[{form.get('type', 'something')}: of a form that is not known]")


def part_of_resource(held: JsonObject) -> Part:
    """What is embedded in a result: text, or bytes that are what they are."""
    uri, text, blob = str(held.get("uri", "")), held.get("text"), held.get("blob")
    if isinstance(text, str):
        return TextPart(text=text)
    data = from_base64(blob) if isinstance(blob, str) else None
    if data is None:
        return LinkPart(uri=uri)
    name = uri.rpartition("/")[2]
    media_type = str(held.get("mimeType") or "application/octet-stream")
    return part_of(data, name=name) or FilePart(media_type=media_type, data=data, name=name)


def data_url(part: DataPart) -> str:
    return f"data:{part.media_type};base64,{as_base64(part)}"


def as_base64(part: DataPart) -> str:
    return base64.b64encode(part.data).decode()


def from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
