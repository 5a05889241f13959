"""The calls of one agent: one by itself, or those of a model's turn side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolyard.runtime.call import PendingCall
from toolyard.runtime.call_steps.conditions import NO_HOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.core.events import Observer
    from toolyard.core.tool import ToolCall, ToolResult
    from toolyard.runtime.call_steps.conditions import CallHooks, CallServices, CallSettings


class CallsUnderWay:
    """Counts the calls that are under way, for whoever waits until none is."""

    def __init__(self) -> None:
        self._count = 0
        self._over = asyncio.Event()
        self._over.set()

    def __enter__(self) -> None:
        self._count += 1
        self._over.clear()

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if not self._count:
            self._over.set()

    @property
    def there_are_some(self) -> bool:
        return self._count > 0

    async def over(self) -> None:
        """Wait for the end of the last."""
        await self._over.wait()


class CallPath:
    """Takes the calls of one agent along the path."""

    def __init__(self, services: CallServices, under_way: CallsUnderWay | None = None) -> None:
        self._services = services
        self._under_way = under_way or CallsUnderWay()

    async def call(self, call: ToolCall, settings: CallSettings, observer: Observer | None = None) -> ToolResult:
        """Take one call along the whole path; whatever happens to it, it has one result."""
        pending = PendingCall(self._services, call, settings, observer)
        with self._under_way:
            await pending.prepare()
            return pending.result or await pending.execute()

    async def preview(self, call: ToolCall, settings: CallSettings) -> str | ToolResult:
        """What a call would do, in a line; the refusal when it could not even begin."""
        return await PendingCall(self._services, call, settings, None).preview()

    async def call_all(
        self,
        calls: Iterable[ToolCall],
        settings: CallSettings,
        observer: Observer | None = None,
        *,
        cancelled: asyncio.Event | None = None,
        hooks: CallHooks = NO_HOOKS,
    ) -> dict[str, ToolResult]:
        """Take the calls of one model turn: asked for in order, run side by side, answered in order by their ids."""
        pending: dict[str, PendingCall] = {}
        for call in calls:
            pending.setdefault(call.id, PendingCall(self._services, call, settings, observer, hooks))
        with self._under_way:
            await self._take(list(pending.values()), cancelled)
        return {id: one.result or one.cancel() for id, one in pending.items()}

    async def _take(self, calls: Sequence[PendingCall], cancelled: asyncio.Event | None) -> None:
        async with asyncio.TaskGroup() as group:
            work = group.create_task(take_all(calls))
            if cancelled is not None:
                watch = group.create_task(cancel_when(cancelled, work))
                work.add_done_callback(lambda _: watch.cancel())


async def take_all(calls: Sequence[PendingCall]) -> None:
    """Ask in order; then run side by side, but those tools one after the other that want to be alone."""
    alone = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        for call in calls:
            await call.prepare()
            if call.result is None:
                group.create_task(call.execute() if call.parallel else execute_within(alone, call))


async def execute_within(lock: asyncio.Lock, call: PendingCall) -> ToolResult:
    async with lock:
        return await call.execute()


async def cancel_when(cancelled: asyncio.Event, work: asyncio.Task[None]) -> None:
    await cancelled.wait()
    work.cancel()
