"""One call of a client on its way: it may ask the person behind the client, and it ends with one result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolyard.core.events import OutputChunk, PreviewReady
from toolyard.core.json_values import cut
from toolyard.core.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from toolyard.core.events import Event
    from toolyard.permissions.verdict import Answer
    from toolyard.serve.mcp.questions import ClientQuestion


LONGEST_MESSAGE = 16_384
"""How many characters of output one notice of progress carries; the result has what is left out."""
CANCELLED = ToolResult(text="The call was cancelled.", failure="cancelled")


class ServedCall:
    """A call in a task of its own, so that neither a lost connection nor a question can leave it half done."""

    def __init__(self, *, can_ask: bool, report: Callable[[int, str], Awaitable[None]] | None = None) -> None:
        self.can_ask = can_ask
        self.progress = Progress(report) if report else None
        self._task: asyncio.Task[ToolResult] | None = None
        self._question: ClientQuestion | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._asking = asyncio.Lock()
        self._moved = asyncio.Event()

    def start(self, work: Callable[[], Coroutine[None, None, ToolResult]], on_end: Callable[[], None]) -> None:
        """Begin; `on_end` is called when it is over, whatever happened."""
        self._task = asyncio.create_task(self._run(work))

        def ended(_: object) -> None:
            on_end()
            self._moved.set()

        self._task.add_done_callback(ended)

    async def next(self) -> ToolResult | ClientQuestion:
        """Wait for the result, or for a question that comes before it."""
        await self._moved.wait()
        if self._task and self._task.done():
            return CANCELLED if self._task.cancelled() else self._task.result()
        if self._question is None:
            raise RuntimeError("a call moves on with a result or with a question")
        return self._question

    def answer(self, answer: Answer) -> None:
        """Answer the question that `next` gave; one that waits no more is left alone."""
        self._moved.clear()
        if self._answer and not self._answer.done():
            self._answer.set_result(answer)
        if self._task and self._task.done():
            self._moved.set()

    async def ask(self, question: ClientQuestion) -> Answer:
        """Put a question to the person; one after the other, since a client shows one form at a time."""
        async with self._asking:
            self._question = question
            self._answer = asyncio.get_running_loop().create_future()
            self._moved.set()
            try:
                return await self._answer
            finally:
                self._question = self._answer = None
                if not (self._task and self._task.done()):
                    self._moved.clear()

    def cancel(self) -> None:
        if self._task:
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until nothing of it runs."""
        if self._task:
            await asyncio.wait([self._task])

    def hear(self, event: Event) -> None:
        """Tell whoever wants to hear of progress what happens."""
        if self.progress is None:
            return
        if isinstance(event, PreviewReady) and event.preview:
            self.progress.add(event.preview)
        elif isinstance(event, OutputChunk):
            self.progress.add(event.text)

    async def _run(self, work: Callable[[], Coroutine[None, None, ToolResult]]) -> ToolResult:
        try:
            result = await work()
        except asyncio.CancelledError:
            result = CANCELLED
        if self.progress:
            await self.progress.aclose()
        return result


class Progress:
    """Sends what a call prints as it comes; what comes while something is being sent goes with the next."""

    def __init__(self, report: Callable[[int, str], Awaitable[None]]) -> None:
        self._report = report
        self._waiting: list[str] = []
        self._sender: asyncio.Task[None] | None = None
        self._number = 0

    def add(self, text: str) -> None:
        self._waiting.append(text)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())

    async def aclose(self) -> None:
        """Wait until everything is sent; a client that has gone misses nothing."""
        if self._sender:
            await asyncio.gather(self._sender, return_exceptions=True)

    async def _send(self) -> None:
        while self._waiting:
            text, self._waiting = "".join(self._waiting), []
            self._number += 1
            await self._report(self._number, cut(text, LONGEST_MESSAGE))
        self._sender = None
