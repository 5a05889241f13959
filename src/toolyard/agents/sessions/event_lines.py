"""Events as JSON, one object each: for scripts that listen, for exports, and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.sessions.event_log import SubagentTold
from toolyard.agents.sessions.events import SessionEvent, Stored

if TYPE_CHECKING:
    from toolyard.agents.sessions.event_log import SessionUpdate
    from toolyard.core.tool import JsonObject

VERSION = 1
"""Of the form below. A reader that meets a higher one should stop; new kinds of events and new keys do not raise it."""


def as_object(update: SessionUpdate) -> dict[str, Any]:
    """An event with its `type`; one that was kept has `seq`, its number in the session, and `time`."""
    if isinstance(update, SubagentTold):
        told = {"call_id": update.call_id, "session": update.session, "agent": update.agent}
        return {"v": VERSION, "type": "subagent", **told, "event": as_object(update.update)}
    if isinstance(update, Stored):
        kept = as_object_of(update.event)
        return {"v": VERSION, "type": kept.pop("type"), "seq": update.seq, "time": update.time, **kept}
    return {"v": VERSION, **as_object_of(update)}


def as_object_of(event: Any) -> dict[str, Any]:
    plain = msgspec.to_builtins(event, enc_hook=str)
    kind = plain.pop("type", None) or re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return {"type": kind, **plain}


def stored_from(line: JsonObject) -> Stored:
    """An event that was kept, from its line; msgspec.ValidationError when it is none."""
    event = {key: value for key, value in line.items() if key not in ("v", "seq", "time")}
    return Stored(
        seq=msgspec.convert(line.get("seq"), int),
        time=msgspec.convert(line.get("time"), float, strict=False),
        event=msgspec.convert(event, SessionEvent),
    )
