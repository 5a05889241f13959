"""What a message or a result is made of: text, images, sound, files, and links to something elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_PARTS = 20
LARGEST_PART = 8 << 20
LARGEST_TOGETHER = 20 << 20
"""What a result may carry beside its text; a model's API refuses a request that is much larger."""
MOST_DATA = f"{LARGEST_PART >> 20} MiB in one part and {LARGEST_TOGETHER >> 20} MiB together"


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


class FilePart(msgspec.Struct, frozen=True, kw_only=True, tag="file"):
    """A document that is neither, such as `application/pdf`."""

    media_type: str
    data: bytes
    name: str = ""


class LinkPart(msgspec.Struct, frozen=True, kw_only=True, tag="link"):
    """Something that is elsewhere and can be fetched by its address."""

    uri: str
    name: str = ""
    media_type: str | None = None


DataPart: TypeAlias = ImagePart | AudioPart | FilePart
Part: TypeAlias = TextPart | DataPart | LinkPart


def text_of(parts: Iterable[Part]) -> str:
    """All text of some parts; what is none of it is named, so that nobody misses it unawares."""
    return "\n".join(in_words(part) for part in parts)


def in_words(part: Part) -> str:
    """A part for a reader who can only read."""
    match part:
        case TextPart():
            return part.text
        case LinkPart():
            return f"[link: {f'{part.name}, ' if part.name else ''}{part.uri}]"
        case ImagePart() | AudioPart() | FilePart():
            return f"[{noun(part)}: {part.media_type}, {len(part.data)} bytes]"


def left_out(part: Part, why: str) -> str:
    """What stands in the place of a part."""
    return f"{in_words(part).removesuffix(']')}; left out, since {why}]"


def noun(part: Part) -> str:
    """What a part is called."""
    match part:
        case FilePart(name=name) if name:
            return f"file {name}"
        case _:
            return type(part).__name__.removesuffix("Part").lower()


def text_and_attachments(parts: Sequence[Part]) -> tuple[str, tuple[Part, ...]]:
    """All text of some parts, and the rest; where text comes after something else, it says what stood where."""
    is_text = [isinstance(part, TextPart) for part in parts]
    mixed = is_text != sorted(is_text, reverse=True)
    lines, attachments = [], []
    for part in parts:
        if isinstance(part, TextPart):
            lines.append(part.text.removesuffix("\n") if mixed else part.text)
        else:
            attachments.append(part)
            lines += [f"[{len(attachments)}: {noun(part)}]"] if mixed else []
    return "\n".join(lines), tuple(attachments)


def checked(parts: Iterable[Part]) -> list[Part]:
    """Parts within the bounds that are what they say; words in the place of each that is not.

    A model's API refuses the whole conversation for one picture that is none.
    """
    kept: list[Part] = []
    together = number = 0
    for given in parts:
        part = by_content(given)
        size = len(part.data) if isinstance(part, ImagePart | AudioPart | FilePart) else 0
        number += not isinstance(part, TextPart)
        if part is None:
            kept.append(TextPart(text=left_out(given, "its content is broken or something else")))
        elif size > LARGEST_PART or together + size > LARGEST_TOGETHER:
            kept.append(TextPart(text=left_out(given, f"a result carries at most {MOST_DATA}")))
        elif number > MOST_PARTS and not isinstance(part, TextPart):
            kept.append(TextPart(text=left_out(given, f"a result carries at most {MOST_PARTS} parts")))
        else:
            together += size
            kept.append(part)
    return kept


def by_content(part: Part) -> Part | None:
    """A part with the type that its bytes have; None for a broken one, and for one that is neither that nor known."""
    if isinstance(part, TextPart | LinkPart):
        return part
    found = part_of(part.data, name=part.name if isinstance(part, FilePart) else "")
    if found is None:
        return part if part.media_type not in SIGNATURES else None
    return found if is_whole(found) else None


def is_whole(part: DataPart) -> bool:
    """Whether a picture has its end, which one that was still being written has not."""
    data = part.data
    match part.media_type:
        case "image/png":
            return b"IEND" in data
        case "image/jpeg":
            return b"\xff\xd9" in data
        case "image/gif":
            return data.rstrip(b"\0").endswith(b";")
        case "image/webp":
            return int.from_bytes(data[4:8], "little") + 8 <= len(data)
    return True


def part_of(data: bytes, *, name: str = "") -> DataPart | None:
    """Bytes as the part that their content makes them; None for what is no picture, sound or document we know."""
    media_type = media_type_of(data)
    if media_type is None:
        return None
    match media_type.partition("/")[0]:
        case "image":
            return ImagePart(media_type=media_type, data=data)
        case "audio":
            return AudioPart(media_type=media_type, data=data)
    return FilePart(media_type=media_type, data=data, name=name)


def media_type_of(data: bytes) -> str | None:
    """What the first bytes say that the rest is; a name, or whoever made it, may be wrong."""
    return next((media_type for media_type, begins in SIGNATURES.items() if re.match(begins, data, re.DOTALL)), None)


SIGNATURES = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF....WEBP",
    "image/tiff": rb"II\*\0|MM\0\*",
    "image/avif": rb"....ftypavif",
    "image/heic": rb"....ftyphei[cx]",
    "audio/wav": rb"RIFF....WAVE",
    "audio/mpeg": rb"ID3[\x02-\x04]|\xff[\xfb\xf3\xf2]",
    "audio/ogg": rb"OggS",
    "audio/flac": rb"fLaC",
    "audio/mp4": rb"....ftypM4A",
    "application/pdf": rb"%PDF-\d",
}
