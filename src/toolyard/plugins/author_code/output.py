"""The standard streams of Python tools: what they print is the output of their call, and there is nothing to read."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from contextvars import ContextVar, Token
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TextIO, cast

from toolyard.process.output import NO_OUTPUT, HeadTail

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from toolyard.core.tool import Stream
    from toolyard.process.output import Captured


CURRENT: ContextVar[Outlet | None] = ContextVar("toolyard_outlet", default=None)
"""Where the running tool's output goes; tasks inherit it, and so does the thread of a call."""
MOST_KEPT = 65_536
"""How much is kept of what is printed outside of calls."""
MOST_WAITING = 1 << 20
"""How many characters may wait for the loop before a thread that goes on printing has to wait for it too."""
LOOP_PATIENCE = 5.0
"""How long it waits at most: the loop may itself be waiting for the thread."""


class Outlet:
    """Takes what one call prints and emits, from whatever thread, and hands it on in the thread of the loop."""

    def __init__(
        self,
        emit: Callable[[Stream, str], None] | None,
        *,
        late: Callable[[str], None],
        limit: int = MOST_KEPT,
        spill_to: os.PathLike[str] | str | None = None,
    ) -> None:
        self._emit = emit
        self._late = late
        """Takes what comes after the end of the call."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._waiting: list[tuple[Stream, str]] = []
        self._waiting_size = 0
        self._taken = threading.Condition(self._lock) if emit else None
        """Told when nothing waits any more, where anything can."""
        self._keep = partial(HeadTail, limit, spill_to=spill_to)
        self._printed: HeadTail | None = None
        self._yielded: HeadTail | None = None
        """Made for the first text, since most calls print nothing and answer in one piece."""
        self._closed = False

    @cached_property
    def no_input(self) -> TextIO:
        """A stream at its end; one for each call, since a tool may close it."""
        return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")

    def write(self, stream: Stream, text: str) -> None:
        """Take printed text, which is kept: a tool that returns nothing answers with it."""
        with self._lock:
            if not self._closed and stream == "stdout":
                self._printed = self._printed or self._keep()
                self._printed.add_text(text)
        self.emit(stream, text)

    def add_part(self, part: Any) -> None:
        """Take a part of an answer that comes in parts."""
        text = part if isinstance(part, str) else str(part)
        with self._lock:
            if not self._closed:
                self._yielded = self._yielded or self._keep()
                self._yielded.add_text(text)
        self.emit("stdout", text)

    def answer(self) -> Captured:
        """What came in parts, after the last."""
        with self._lock:
            return self._yielded.finish() if self._yielded else NO_OUTPUT

    def emit(self, stream: Stream, text: str) -> None:
        if self._closed:
            self._late(text)
        elif self._emit and self._taken and text:
            in_loop = threading.get_ident() == self._thread
            with self._lock:
                if not in_loop:
                    self._taken.wait_for(lambda: self._waiting_size < MOST_WAITING or self._closed, LOOP_PATIENCE)
                is_first = not self._waiting
                self._waiting.append((stream, text))
                self._waiting_size += len(text)
            if in_loop:
                self._flush(self._taken)
            elif is_first:
                self._call_in_loop(self._taken)

    def close(self) -> Captured:
        """The call is over: what was printed in it."""
        if self._taken:
            self._flush(self._taken)
        with self._lock:
            self._closed = True
            if self._taken:
                self._taken.notify_all()
            if self._yielded:
                self._yielded.finish()  # also where nobody asked for it: it closes the file
            return self._printed.finish() if self._printed else NO_OUTPUT

    def _call_in_loop(self, taken: threading.Condition) -> None:
        try:
            self._loop.call_soon_threadsafe(self._flush, taken)
        except RuntimeError:  # the loop is closed, and nobody listens
            self._closed = True

    def _flush(self, taken: threading.Condition) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._waiting_size = 0
            taken.notify_all()
        token = CURRENT.set(None)  # whoever listens may print, and that is not the tool's output
        try:
            for stream, text in waiting:
                if self._emit:
                    self._emit(stream, text)
        finally:
            CURRENT.reset(token)


class Routed:
    """A standard stream that gives a tool's output to its call, and everything else to the stream behind it."""

    def __init__(self, behind: TextIO, stream: Stream) -> None:
        self.behind = behind
        self._stream: Stream = stream

    def write(self, text: str) -> int:
        outlet = CURRENT.get()
        if outlet is None:
            return self.behind.write(text)
        outlet.write(self._stream, text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is kept back from a tool's call."""
        if CURRENT.get() is None:
            self.behind.flush()

    def isatty(self) -> bool:
        """A tool has no terminal."""
        return CURRENT.get() is None and self.behind.isatty()

    def fileno(self) -> int:
        """A tool has no descriptor of ours to hand on."""
        if CURRENT.get() is None:
            return self.behind.fileno()
        raise io.UnsupportedOperation("a tool's output has no descriptor; give a process pipes")

    @property
    def buffer(self) -> Any:
        outlet = CURRENT.get()
        return self.behind.buffer if outlet is None else RoutedBytes(outlet, self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


class RoutedBytes:
    """What `sys.stdout.buffer` is to a tool."""

    def __init__(self, outlet: Outlet, stream: Stream) -> None:
        self._outlet = outlet
        self._stream: Stream = stream

    def write(self, data: bytes) -> int:
        self._outlet.write(self._stream, bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""


class RoutedInput:
    """Standard input that is at its end for a tool: what comes there is meant for the application."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream(), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream())

    def _stream(self) -> TextIO:
        outlet = CURRENT.get()
        return self.behind if outlet is None else outlet.no_input


class Router:
    """Puts the routed streams in place while a tool runs, and the old ones back after the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def enter(self) -> None:
        """One more tool runs. Somebody else may have replaced the streams since the last, as test runners do."""
        with self._lock:
            self._users += 1
            if sys.stdout is not None and not isinstance(sys.stdout, Routed):
                sys.stdout = cast("TextIO", Routed(sys.stdout, "stdout"))
            if sys.stderr is not None and not isinstance(sys.stderr, Routed):
                sys.stderr = cast("TextIO", Routed(sys.stderr, "stderr"))
            if sys.stdin is not None and not isinstance(sys.stdin, RoutedInput):
                sys.stdin = cast("TextIO", RoutedInput(sys.stdin))

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and isinstance(sys.stdout, Routed):
                sys.stdout = sys.stdout.behind
            if self._users == 0 and isinstance(sys.stderr, Routed):
                sys.stderr = sys.stderr.behind
            if self._users == 0 and isinstance(sys.stdin, RoutedInput):
                sys.stdin = sys.stdin.behind


ROUTER = Router()
"""One for the process, as the standard streams are."""


class routed:
    """Within this, in this thread or task, what is printed goes to the outlet."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._token: Token[Outlet | None] | None = None

    def __enter__(self) -> None:
        self._token = CURRENT.set(self._outlet)
        ROUTER.enter()

    def __exit__(self, *_: object) -> None:
        ROUTER.leave()
        if self._token:
            CURRENT.reset(self._token)
