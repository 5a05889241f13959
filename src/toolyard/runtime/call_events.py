"""What an observer hears of one call: events as they happen, output as it comes, all of it without secrets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from toolyard.core.events import (
    CallFinished,
    CallStarted,
    OutputChunk,
    PermissionAsked,
    PermissionDecided,
    PreviewReady,
)

if TYPE_CHECKING:
    from toolyard.core.events import Event, Observer
    from toolyard.core.tool import JsonObject, Stream, ToolResult
    from toolyard.permissions.verdict import PermissionRequest, Verdict
    from toolyard.runtime.redaction import Redactor, StreamRedactor

log = logging.getLogger("toolyard.calls")


class CallEvents:
    """Made only where somebody observes: redacting what nobody hears would cost every call."""

    def __init__(self, call_id: str, observer: Observer, redactor: Redactor) -> None:
        self._id = call_id
        self._observer = observer
        self._redactor = redactor
        self._streams: dict[Stream, StreamRedactor] = {}

    def started(self, tool: str, arguments: JsonObject) -> None:
        self._tell(CallStarted(call_id=self._id, tool=tool, arguments=self._redactor.redact_all(arguments)))

    def preview(self, text: str) -> None:
        self._tell(PreviewReady(call_id=self._id, preview=text))

    def asked(self, request: PermissionRequest, verdict: Verdict) -> None:
        reason, folder = self._redactor.redact(verdict.reason), request.folder
        told = str(folder) if folder.is_told(verdict.reach) else ""
        self._tell(PermissionAsked(call_id=self._id, reason=reason, reach=verdict.reach, folder=told))

    def decided(self, verdict: Verdict) -> None:
        reason = self._redactor.redact(verdict.reason)
        self._tell(PermissionDecided(call_id=self._id, decision=verdict.decision, reason=reason, reach=verdict.reach))

    def output(self, stream: Stream, text: str) -> None:
        """A piece of what a tool prints; a secret may be cut in two by it, so each stream remembers its end."""
        if stream not in self._streams:
            self._streams[stream] = self._redactor.stream(
                lambda piece: self._tell(OutputChunk(call_id=self._id, stream=stream, text=piece))
            )
        self._streams[stream].feed(text)

    def output_ended(self) -> None:
        for stream in self._streams.values():
            stream.finish()

    def finished(self, result: ToolResult, duration: float) -> None:
        self._tell(CallFinished(call_id=self._id, result=result, duration=duration))

    def _tell(self, event: Event) -> None:
        """An observer that breaks must not break the call."""
        try:
            self._observer(event)
        except Exception:
            log.exception("an observer failed on %s", type(event).__name__)
