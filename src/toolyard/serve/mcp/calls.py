"""One call of a client on its way: it may ask the person behind the client, and it ends with one result."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias, cast

from toolyard.core.events import OutputChunk, PreviewReady
from toolyard.core.json_values import cut
from toolyard.core.tool import JsonObject, ToolResult
from toolyard.serve.mcp.questions import can_be_asked

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from toolyard.core.events import Event
    from toolyard.core.tool import ClientRequest, Json

Report: TypeAlias = Callable[[int, str], Awaitable[None]]
Log: TypeAlias = Callable[[JsonObject], Awaitable[None]]


LONGEST_MESSAGE = 16_384
"""How many characters of output one notice of progress carries; the result has what is left out."""
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Of log messages, the gravest last."""
CANCELLED = ToolResult(text="The call was cancelled.", failure="cancelled")


class ServedCall:
    """A call in a task of its own, so that neither a lost connection nor a question can leave it half done.

    It moves on from question to question to its result; whoever wants to know is told with `then`, in the same step of
    the loop, since every further one would be waited for. It is also the link of its tool to the client.
    """

    def __init__(
        self,
        *,
        capabilities: Json = None,
        notices: Notices | None = None,
        log_level: str | None = None,
        early: Mapping[str, Json] | None = None,
    ) -> None:
        self.capabilities = capabilities
        """What its client can be asked."""
        self.log_level = log_level
        self.asked: dict[str, ClientRequest] = {}
        """What it waits for, by names."""
        self._notices = notices
        self._early = dict(early or {})
        """Answers that came with the call, to what it is expected to ask."""
        self._is_told = False
        """Whether somebody was told of what is asked."""
        self._answers: dict[str, asyncio.Future[Json]] = {}
        self._names: set[str] = set()
        """All that were ever used: servers choose names, too, and a late answer must not be taken for another's."""
        self.on_withdrawn: Callable[[], None] | None = None
        """Called when nobody waits any more for an answer that has not come."""
        self._outcome: ToolResult | Exception | None = None
        self._go_on: Callable[[], None] | None = None
        self._has_begun = self._given_up = False
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self._outcome is not None

    def start(self, work: Callable[[], Coroutine[None, None, ToolResult]], on_end: Callable[[], None]) -> None:
        """Begin; `on_end` is called when it is over, whatever happened."""
        self.task = asyncio.create_task(self._run(work, on_end))

    def then(self, go_on: Callable[[], None]) -> None:
        """Call this once when there is a result, or a question that nobody was told of; at once if there is."""
        self._go_on = go_on
        self._move()

    def result(self) -> ToolResult:
        """The result, when there is one; raises what broke."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        if self._outcome is None:
            raise RuntimeError("a call that asks something has no result yet")
        return self._outcome

    async def next(self) -> None:
        """Wait for the result, or for a question that comes before it."""
        moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.then(lambda: None if moved.done() else moved.set_result(None))
        await moved

    def answer(self, answers: Mapping[str, Json]) -> None:
        """Answer what is asked, by its names; what is left out is asked again."""
        for name, waiting in self._answers.items():
            if name in answers and not waiting.done():
                self.asked.pop(name, None)
                waiting.set_result(answers[name])
        self._is_told = False

    async def ask(self, name: str, request: ClientRequest) -> Json:
        """Ask on behalf of the tool; the client may have answered already, as it knows what the tool asks."""
        if not can_be_asked(self.capabilities, request):
            return None
        early = self._early.pop(name, None)
        return early if isinstance(early, dict) else await self.put(name, request)

    async def put(self, name: str, request: ClientRequest) -> Json:
        """Put a question to the client, under a name that no other has; those of one moment are put together."""
        name = self._new_name(name)
        loop = asyncio.get_running_loop()
        self.asked[name], self._answers[name] = request, loop.create_future()
        loop.call_soon(self._put)
        try:
            return await self._answers[name]
        finally:
            del self._answers[name]
            if self.asked.pop(name, None) and self.on_withdrawn:
                self.on_withdrawn()

    def _new_name(self, wanted: str) -> str:
        names = itertools.chain((wanted,), (f"{wanted}-{number}" for number in itertools.count(2)))
        name = next(name for name in names if name not in self._names)
        self._names.add(name)
        return name

    def log(self, message: JsonObject) -> None:
        if self._notices and self.log_level and is_at_least(message.get("level"), self.log_level):
            self._notices.add(message)

    def cancel(self) -> None:
        if self.task and self._has_begun:
            self.task.cancel()
        self._given_up = True

    def hear(self, event: Event) -> None:
        """Tell whoever wants to hear of progress what happens."""
        if self._notices is None:
            return
        if isinstance(event, PreviewReady) and event.preview:
            self._notices.add(event.preview)
        elif isinstance(event, OutputChunk):
            self._notices.add(event.text)

    def _put(self) -> None:
        self._is_told = False
        self._move()

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
            if self._notices:
                await self._notices.aclose()
        except asyncio.CancelledError:
            pass  # it has ended what it began
        except Exception as error:
            outcome = error
        finally:
            on_end()
            self._outcome = outcome
            self._move()


class Asking:
    """Puts the questions of one call to its client as they come, and takes back those that nobody waits for."""

    def __init__(self, call: ServedCall, ask: Callable[[ClientRequest], Awaitable[Json]]) -> None:
        self._call, self._ask = call, ask
        self._tasks: dict[str, asyncio.Task[None]] = {}
        call.on_withdrawn = self.update

    def update(self) -> None:
        """Ask what is new, and leave what is not asked any more."""
        for name in [name for name in self._tasks if name not in self._call.asked]:
            self._tasks.pop(name).cancel()
        for name, request in self._call.asked.items():
            if name not in self._tasks:
                self._tasks[name] = asyncio.create_task(self._one(name, request))

    async def _one(self, name: str, request: ClientRequest) -> None:
        answer = await self._ask(request)
        self._tasks.pop(name, None)
        self._call.answer({name: answer})

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()


async def take_to_end(call: ServedCall, ask: Callable[[ClientRequest], Awaitable[Json]]) -> ToolResult:
    """Put each question of a call to its client, until there is a result."""
    asking = Asking(call, ask)
    try:
        while not call.is_over:
            await call.next()
            asking.update()
        return call.result()
    finally:  # whoever waited may have gone, and nobody else will ask for the result
        call.cancel()
        asking.close()


class Notices:
    """Sends what a call prints and logs as it comes; what comes while something is being sent goes with the next."""

    def __init__(self, report: Report | None, log: Log | None) -> None:
        self._report, self._log = report, log
        self._waiting: list[str | JsonObject] = []
        self._sender: asyncio.Task[None] | None = None
        self._number = 0

    def add(self, item: str | JsonObject) -> None:
        """A piece of output, or a message of a log."""
        self._waiting.append(item)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())

    async def aclose(self) -> None:
        """Wait until everything is sent; a client that has gone misses nothing."""
        if self._sender:
            await asyncio.gather(self._sender, return_exceptions=True)

    async def _send(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for is_text, items in groupby(waiting, lambda item: isinstance(item, str)):
                if is_text and self._report:
                    self._number += 1
                    await self._report(self._number, cut("".join(map(str, items)), LONGEST_MESSAGE))
                elif self._log and not is_text:
                    for item in items:
                        await self._log(cast("JsonObject", item))
        self._sender = None


def is_at_least(level: Json, wanted: str) -> bool:
    """Whether a message is as grave as somebody wants to hear."""
    return level in LEVELS and wanted in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted)
