"""What every measured shell can do, whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

PATIENCE = 30.0
READ_SIZE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a shell said about one command; a failure of the peer itself is `error`."""

    output: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    error: str = ""


class Session(Protocol):
    """One shell; blocking ones block inside `run`, which costs them no turn of the event loop."""

    @property
    def mark(self) -> str:
        """What it looks for in the output to know the end of a command."""

    async def open(self) -> None: ...
    async def run(self, command: str, timeout: float = PATIENCE) -> Answer: ...
    async def converse(self, command: str, prompt: str, reply: str) -> Answer: ...
    async def close(self) -> None: ...
