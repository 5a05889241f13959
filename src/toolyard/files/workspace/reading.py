"""Reading a file for a model: lines with their numbers, a part of them at a time, or a picture."""

from __future__ import annotations

import base64
import os

from toolyard.files.workspace.contents import LARGEST, decoded, image_type, opened, version_of
from toolyard.files.workspace.places import FileFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolyard.files.workspace.places import Spot

USUAL_LINES = 2000
LONGEST_LINE = 2000
LARGEST_IMAGE = 5 << 20


def read(spot: Spot, offset: int, limit: int, room: int) -> dict[str, Any]:
    """A part of a file; `room` is how many characters fit into the answer."""
    fd = opened(spot)
    with open(fd, "rb", buffering=0) as file:
        facts = os.fstat(fd)
        answer: dict[str, Any] = {"version": version_of(facts)}
        if facts.st_size > LARGEST:
            return {**answer, "text": part_of_huge(spot, fd, offset, limit, room)}
        data = file.read()
    if media_type := image_type(data):
        if len(data) > LARGEST_IMAGE:
            raise FileFault(f"{spot.shown} is an image of {len(data)} bytes; at most {LARGEST_IMAGE} can be shown")
        image = {"media_type": media_type, "data": base64.b64encode(data).decode()}
        return {**answer, "text": f"[{media_type}, {len(data)} bytes]", "image": image}
    content = decoded(data, spot.shown)
    lines = content.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    notes = about(content.encoding, content.newline)
    return {**answer, "text": numbered(lines, offset, limit, room, notes)}


def about(encoding: str, newline: str) -> list[str]:
    """What is unusual about a file, and kept when it is changed."""
    notes = [] if encoding == "utf-8" else [f"encoding: {encoding}"]
    return [*notes, *(["lines end with CRLF"] if newline == "\r\n" else [])]


def numbered(lines: list[str], offset: int, limit: int, room: int, notes: list[str]) -> str:
    """Lines from a number on, as many as are wanted and fit, and how to go on."""
    if not lines:
        return "[the file is empty]"
    if offset > len(lines):
        raise FileFault(f"the file has {len(lines)} lines, so that none begins at {offset}")
    shown: list[str] = []
    for number, line in enumerate(lines[offset - 1 : offset - 1 + limit], start=offset):
        text = f"{number:6}\t{cut(line.removesuffix(chr(13)))}"
        room -= len(text) + 1
        if room < 0 and shown:
            break
        shown.append(text)
    last = offset + len(shown) - 1
    if offset > 1 or last < len(lines):
        on = f"; go on with offset {last + 1}" if last < len(lines) else ""
        notes = [f"lines {offset} to {last} of {len(lines)}{on}", *notes]
    return "\n".join([*shown, *([f"[{'; '.join(notes)}]"] if notes else [])])


def cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} [{len(line) - LONGEST_LINE} characters more]"


def part_of_huge(spot: Spot, fd: int, offset: int, limit: int, room: int) -> str:
    """Lines of a file that is not read whole; it is gone through to where they are, in little memory."""
    shown: list[str] = []
    number = 0
    with open(os.dup(fd), "rb") as file:
        beginning = file.peek(1)
        decoded(beginning[: beginning.rfind(b"\n") + 1 or len(beginning)], spot.shown, os.fstat(fd).st_size)
        for number, line in enumerate(iter(lambda: long_line(file), b""), start=1):
            if number < offset:
                continue
            text = f"{number:6}\t{cut(line.rstrip(bytes((13, 10))).decode('utf-8', 'replace'))}"
            room -= len(text) + 1
            if len(shown) == limit or (room < 0 and shown):
                rest = "go on by offset"
                break
            shown.append(text)
        else:
            rest = "they are its last"
    if not shown:
        raise FileFault(f"the file has {number} lines, so that none begins at {offset}")
    last = offset + len(shown) - 1
    return "\n".join([*shown, f"[lines {offset} to {last} of a file of {os.fstat(fd).st_size} bytes; {rest}]"])


def long_line(file: Any) -> bytes:
    """A line, of which no more is kept than is shown."""
    line: bytes = file.readline(4 * LONGEST_LINE)
    rest = line
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(1 << 20)
    return line
