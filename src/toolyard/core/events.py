"""Everything that can happen during a call, as one union."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from toolyard.core.reach import Reach
from toolyard.core.tool import JsonObject, Stream, ToolResult

Decision = Literal["allow", "ask", "deny"]


class CallStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A tool was found and its arguments fit; nothing has run yet."""

    call_id: str
    tool: str
    arguments: JsonObject


class PreviewReady(msgspec.Struct, frozen=True, kw_only=True):
    """What the call will do, in a line for a person; may be empty."""

    call_id: str
    preview: str


class PermissionAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The rules leave this call to a person."""

    call_id: str
    reason: str
    reach: Reach = "work"
    """How far the call would reach."""
    folder: str = ""
    """In which folder it would run, in words; empty where that is the top of the workspace, and it stays inside."""


class PermissionDecided(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the call may happen, and which rule or answer said so."""

    call_id: str
    decision: Decision
    reason: str
    reach: Reach = "work"
    """How far the call may reach, if it may happen."""


class OutputChunk(msgspec.Struct, frozen=True, kw_only=True):
    """Partial output while a tool runs."""

    call_id: str
    stream: Stream
    text: str


class CallFinished(msgspec.Struct, frozen=True, kw_only=True):
    """The one end of a call, whatever happened."""

    call_id: str
    result: ToolResult
    duration: float


Event: TypeAlias = CallStarted | PreviewReady | PermissionAsked | PermissionDecided | OutputChunk | CallFinished
Observer: TypeAlias = "Callable[[Event], None]"
