"""The calls of one agent: one by itself, or those of a model's turn side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolyard.runtime.call import NO_HOOKS, PendingCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.core.events import Observer
    from toolyard.core.tool import ToolCall, ToolResult
    from toolyard.runtime.call import CallHooks, CallServices, CallSettings


class CallPath:
    """Takes the calls of one agent along the path."""

    def __init__(self, services: CallServices) -> None:
        self._services = services

    async def call(self, call: ToolCall, settings: CallSettings, observer: Observer | None = None) -> ToolResult:
        """Take one call along the whole path; whatever happens to it, it has one result."""
        pending = PendingCall(self._services, call, settings, observer)
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
        async with asyncio.TaskGroup() as group:
            work = group.create_task(take_all(list(pending.values())))
            if cancelled is not None:
                watch = group.create_task(cancel_when(cancelled, work))
                work.add_done_callback(lambda _: watch.cancel())
        return {id: one.result or one.cancel() for id, one in pending.items()}


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
