"""A function that returns a picture with its text: bytes are what their content says, here a PNG."""

import struct
import zlib
from typing import Annotated

from toolyard.errors import ToolError
from toolyard.plugins.contract import tool

WIDTH, BAR, GAP = 320, 16, 8
WHITE, BLUE = b"\xff\xff\xff", b"\x33\x66\xcc"


@tool(read_only=True)
def bar_chart(values: Annotated[dict[str, float], "What to draw: a bar for each name."]) -> list:
    """Draw bars for some numbers, from the top down, and name them in that order."""
    if not values or min(values.values()) < 0:
        raise ToolError("there is nothing to draw, or something below zero")
    largest = max(values.values()) or 1
    lengths = [round(WIDTH * value / largest) for value in values.values()]
    named = "\n".join(f"{name}: {value:g}" for name, value in values.items())
    return [named, png(lengths)]


def png(lengths: list[int]) -> bytes:
    """A picture of bars, in the smallest form that every program reads."""
    rows = []
    for length in lengths:
        rows += [BLUE * length + WHITE * (WIDTH - length)] * BAR + [WHITE * WIDTH] * GAP
    header = struct.pack(">2I5B", WIDTH, len(rows), 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
