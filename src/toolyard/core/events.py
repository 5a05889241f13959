"""Everything that can happen during a call, as one union."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.tool import JsonObject, Stream, ToolResult

__all__ = [
    "CallFinished",
    "CallStarted",
    "Decision",
    "Event",
    "Observer",
    "OutputChunk",
    "PermissionAsked",
    "PermissionDecided",
    "PreviewReady",
]

Decision = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool was found and its arguments fit; nothing has run yet."""

    call_id: str
    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewReady:
    """What the call will do, in a line for a person; may be empty."""

    call_id: str
    preview: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAsked:
    """The rules leave this call to a person."""

    call_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecided:
    """Whether the call may happen, and which rule or answer said so."""

    call_id: str
    decision: Decision
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChunk:
    """Partial output while a tool runs."""

    call_id: str
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    """The one end of a call, whatever happened."""

    call_id: str
    result: ToolResult
    duration: float


Event: TypeAlias = CallStarted | PreviewReady | PermissionAsked | PermissionDecided | OutputChunk | CallFinished
Observer: TypeAlias = "Callable[[Event], None]"
