"""What the author's code returned, as text for the model, data beside it, and parts that are no text."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.content import (
    LARGEST_PART,
    AudioPart,
    FilePart,
    ImagePart,
    LinkPart,
    TextPart,
    media_type_of,
    part_of,
)
from toolyard.files.plain_text import data_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.core.content import Part
    from toolyard.core.tool import Json


SCALARS = frozenset({str, int, float, bool, type(None)})
PLAIN = SCALARS | {dict, list, tuple}
"""What is no part in a list, which may be long."""
ENCODER = json.JSONEncoder(ensure_ascii=False)


def parts_of(value: Any) -> list[Part] | None:
    """The parts of what is, or has in it, something else than text and data; None when there is nothing of that."""
    if type(value) in SCALARS:
        return None
    if isinstance(value, list | tuple):
        return parts_of_list(value)
    part = picture_of(value)
    if part is not None and isinstance(value, Path):
        return [TextPart(text=str(value)), part]
    return None if part is None else [part]


def parts_of_list(values: list[Any] | tuple[Any, ...]) -> list[Part] | None:
    found = [None if type(value) in PLAIN else parts_of(value) for value in values]
    if not any(found):
        return None
    pairs = zip(values, found, strict=True)
    return [part for value, parts in pairs for part in parts or (TextPart(text=as_text(value)[0]),)]


def picture_of(value: Any) -> Part | None:
    """A part that stands for itself, bytes and files that are one by their content, and what can draw itself."""
    match value:
        case TextPart() | ImagePart() | AudioPart() | FilePart() | LinkPart():
            return value
        case bytes() | bytearray() | memoryview():
            return part_of(bytes(value))
        case Path():
            return part_of_file(value)
    return drawn(value)


def part_of_file(path: Path) -> Part | None:
    """A file that is a picture, sound or a document; of a larger one than a result carries, so much that this shows."""
    if media_type_of(data_of(str(path), 64)) is None:
        return None
    return part_of(data_of(str(path), LARGEST_PART + 1), name=path.name)


def drawn(value: Any) -> Part | None:
    """A picture of what draws itself in notebooks, as the images of Pillow do."""
    for name in ("_repr_png_", "_repr_jpeg_"):  # not every image can be both
        draw = getattr(value, name) if hasattr(type(value), name) else None
        if callable(draw) and isinstance(data := draw(), bytes):
            return part_of(data)
    return None


def as_text(value: Any) -> tuple[str, Mapping[str, Json] | None]:
    """A value as text for the model, and as data when it is an object."""
    if isinstance(value, str):
        return value, None
    if type(value) is int:  # as JSON writes it
        return str(value), None
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace"), None
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    try:
        plain = msgspec.to_builtins(value, enc_hook=str, str_keys=True)
        text = ENCODER.encode(plain)
        if not isinstance(plain, float) and ("NaN" in text or "Infinity" in text):  # which may well be in a string
            plain = with_finite_numbers(plain)
            text = ENCODER.encode(plain)
    except (TypeError, ValueError, RecursionError):
        return str(value), None
    return text, plain if isinstance(plain, dict) else None


def with_finite_numbers(value: Any) -> Json:
    """The same value, with null for each number that JSON does not have."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: with_finite_numbers(each) for name, each in value.items()}
        case list() | tuple():
            return [with_finite_numbers(each) for each in value]
    return value
