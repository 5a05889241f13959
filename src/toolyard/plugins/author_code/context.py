"""What a Python tool may know of the call that it answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from toolyard.core.tool import JsonObject, Stream


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """The call: a tool gets it by a parameter that is annotated with this type."""

    call_id: str
    tool_name: str
    cwd: Path
    """The folder that relative paths of the call start at. It is not the process's own: other calls run beside it."""
    config: JsonObject
    """The agent's effective configuration."""
    deadline: float | None = None
    """When the call must be over, on the clock of `time.monotonic`."""
    cancelled: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set when nobody waits for the answer any more; a tool that works long should look at it."""
    output: Callable[[Stream, str], None] | None = None

    def emit(self, text: str, stream: Stream = "stdout") -> None:
        """Show partial output to whoever watches; it is no part of the answer."""
        if self.output:
            self.output(stream, text)

    def remaining(self) -> float | None:
        """The seconds that are left; None when there is no limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
