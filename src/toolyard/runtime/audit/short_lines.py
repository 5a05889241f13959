"""Lines while room is short: what a model chose of them is cut, so that it cannot use the room up."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

MOST_SHOWN = 300
"""Characters of a text that are kept."""
MOST_ESCAPED = 600
"""Characters that they may become as JSON, where one can be six."""
LONGEST_LINE = 6 << 10
"""A line that is longer even so, as by the id that somebody gave its call, is not written while room is short."""
IDS = ("event", "session", "call_id", "writer")
"""By these the two lines of a call are known as such."""


def shortened(record: dict[str, Any]) -> dict[str, Any]:
    """A record with its long texts cut; it says which, how long each was, and by which hash it is known."""
    cut: dict[str, Any] = {}
    short: dict[str, Any] = {}
    for name, value in record.items():
        text = value if isinstance(value, str) else "" if is_plain(value) else json.dumps(value, default=str)
        if name in IDS or fits(text):
            short[name] = value
            continue
        short[name] = beginning(text) if isinstance(value, str) else [beginning(text)]
        cut[name] = {"length": len(text), "sha256": sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}
    return {**short, "cut": cut} if cut else record


def is_plain(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def fits(text: str) -> bool:
    return len(text) <= MOST_SHOWN and (len(text) <= MOST_ESCAPED // 6 or len(json.dumps(text)) <= MOST_ESCAPED + 2)


def beginning(text: str) -> str:
    return text[:MOST_SHOWN] if fits(text[:MOST_SHOWN]) else text[: MOST_ESCAPED // 6]


def short_id(id: str) -> str:
    """An id of any length as one that fits into a line, and is still its own."""
    if len(id) <= MOST_ESCAPED // 6:
        return id
    return f"{id[:60]}…{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
