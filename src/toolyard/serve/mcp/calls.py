"""One call of a client on its way: it may ask the person behind the client, and it ends with one result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolyard.core.events import OutputChunk, PreviewReady
from toolyard.core.json_values import cut
from toolyard.core.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from toolyard.core.events import Event
    from toolyard.core.tool import ClientRequest, Json

    Report = Callable[[int, str], Awaitable[None]]


LONGEST_MESSAGE = 16_384
"""How many characters of output one notice of progress carries; the result has what is left out."""
CANCELLED = ToolResult(text="The call was cancelled.", failure="cancelled")


class ServedCall:
    """A call in a task of its own, so that neither a lost connection nor a question can leave it half done.

    It moves on from question to question to its result; whoever wants to know is told with `then`, in the same step of
    the loop, since every further one would be waited for.
    """

    def __init__(self, *, capabilities: Json = None, report: Report | None = None) -> None:
        self.capabilities = capabilities
        """What its client can be asked."""
        self.progress = Progress(report) if report else None
        self.asked: Mapping[str, ClientRequest] = {}
        """What it waits for, by names."""
        self._is_told = False
        """Whether somebody was told of that."""
        self._answers: asyncio.Future[Mapping[str, Json]] | None = None
        self._asking = asyncio.Lock()
        self._outcome: ToolResult | Exception | None = None
        self._go_on: Callable[[], None] | None = None
        self._has_begun = self._given_up = False
        self.task: asyncio.Task[None] | None = None

    def start(self, work: Callable[[], Coroutine[None, None, ToolResult]], on_end: Callable[[], None]) -> None:
        """Begin; `on_end` is called when it is over, whatever happened."""
        self.task = asyncio.create_task(self._run(work, on_end))

    def then(self, go_on: Callable[[], None]) -> None:
        """Call this once when there is a result, or a question that nobody was told of; at once if there is."""
        self._go_on = go_on
        self._move()

    def step(self) -> ToolResult | Mapping[str, ClientRequest]:
        """The result, or what is asked before there is one."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome or self.asked

    def result(self) -> ToolResult:
        """The result, of a call that asks nothing any more."""
        step = self.step()
        if not isinstance(step, ToolResult):
            raise RuntimeError("a call moves on with a result or with a question")
        return step

    async def next(self) -> ToolResult | Mapping[str, ClientRequest]:
        """Wait for the result, or for a question that comes before it."""
        moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.then(lambda: None if moved.done() else moved.set_result(None))
        await moved
        return self.step()

    def answer(self, answers: Mapping[str, Json]) -> None:
        """Answer what is asked; what waits no more is left alone."""
        if self._answers and not self._answers.done():
            self.asked = {}
            self._answers.set_result(answers)

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, Json]:
        """Put questions to the client, and give what came back; some after the others, as a person is asked."""
        async with self._asking:
            self.asked, self._answers = requests, asyncio.get_running_loop().create_future()
            self._is_told = False
            self._move()
            try:
                return await self._answers
            finally:
                self.asked, self._answers = {}, None

    def cancel(self) -> None:
        if self.task and self._has_begun:
            self.task.cancel()
        self._given_up = True

    def hear(self, event: Event) -> None:
        """Tell whoever wants to hear of progress what happens."""
        if self.progress is None:
            return
        if isinstance(event, PreviewReady) and event.preview:
            self.progress.add(event.preview)
        elif isinstance(event, OutputChunk):
            self.progress.add(event.text)

    def _move(self) -> None:
        if self._go_on and (self._outcome or (self.asked and not self._is_told)):
            go_on, self._go_on = self._go_on, None
            self._is_told = True
            go_on()

    async def _run(self, work: Callable[[], Coroutine[None, None, ToolResult]], on_end: Callable[[], None]) -> None:
        self._has_begun = True
        outcome: ToolResult | Exception = CANCELLED
        try:
            outcome = CANCELLED if self._given_up else await work()
            if self.progress:
                await self.progress.aclose()
        except asyncio.CancelledError:
            pass  # it has ended what it began
        except Exception as error:
            outcome = error
        finally:
            on_end()
            self._outcome = outcome
            self._move()


async def take_to_end(call: ServedCall, ask: Callable[[ClientRequest], Awaitable[Json]]) -> ToolResult:
    """Put each question of a call to its client; one that the call goes on without is taken back."""

    async def ask_each() -> None:
        call.answer({name: await ask(request) for name, request in call.asked.items()})

    asking: asyncio.Task[None] | None = None
    try:
        while not isinstance(step := await call.next(), ToolResult):
            asking = asyncio.create_task(ask_each())
        return step
    finally:  # whoever waited may have gone, and nobody else will ask for the result
        call.cancel()
        if asking:
            asking.cancel()


class Progress:
    """Sends what a call prints as it comes; what comes while something is being sent goes with the next."""

    def __init__(self, report: Report) -> None:
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
