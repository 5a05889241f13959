"""What a message or a result is made of: text, images, sound, and links to something elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class TextPart(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """Words."""

    text: str


class ImagePart(msgspec.Struct, frozen=True, kw_only=True, tag="image"):
    """A picture, such as `image/png`; in JSON its bytes are base64."""

    media_type: str
    data: bytes


class AudioPart(msgspec.Struct, frozen=True, kw_only=True, tag="audio"):
    """Sound, such as `audio/wav`."""

    media_type: str
    data: bytes


class LinkPart(msgspec.Struct, frozen=True, kw_only=True, tag="link"):
    """Something that is elsewhere and can be fetched by its address."""

    uri: str
    name: str = ""
    media_type: str | None = None


Part: TypeAlias = TextPart | ImagePart | AudioPart | LinkPart


def text_of(parts: Iterable[Part]) -> str:
    """All text of some parts; what is none of it is named, so that nobody misses it unawares."""
    return "\n".join(part.text if isinstance(part, TextPart) else in_words(part) for part in parts)


def in_words(part: Part) -> str:
    """A part for a reader who can only read."""
    match part:
        case TextPart():
            return part.text
        case LinkPart():
            return f"[link: {f'{part.name}, ' if part.name else ''}{part.uri}]"
        case ImagePart() | AudioPart():
            what = "image" if isinstance(part, ImagePart) else "audio"
            return f"[{what}: {part.media_type}, {len(part.data)} bytes]"
