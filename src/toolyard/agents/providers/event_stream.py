"""Cuts a stream of server-sent events into their data."""

from __future__ import annotations

LONGEST_EVENT = 1 << 26


class EventStream:
    """Takes bytes as they come; names and comments of events are left out, for every API repeats the name inside."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of all events that are complete now. Raises `ValueError` when one does not end."""
        text = self._rest + chunk if self._rest else chunk
        if b"\r" in text:
            # The last one may be half of a line's end.
            text, held = (text[:-1], b"\r") if text.endswith(b"\r") else (text, b"")
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        *whole, self._rest = text.split(b"\n\n")
        if len(self._rest) > LONGEST_EVENT:
            raise ValueError("an event of the stream is too long")
        return [data for event in whole if (data := data_of(event))]

    def end(self) -> list[bytes]:
        """What is left when the stream is over: the data of an event that lacks only its empty line."""
        rest, self._rest = self._rest, b""
        data = data_of(rest.rstrip(b"\r\n")) if rest.endswith((b"\n", b"\r", b"[DONE]")) else b""
        return [data] if data else []


def data_of(event: bytes) -> bytes:
    """The data of one event without its end; its lines are joined as they were."""
    if event.startswith(b"data: ") and b"\n" not in event:
        return event[6:]
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines)
