"""Running what an author wrote: async code in the loop, everything else in a thread, both with an end that holds."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolyard.files.working_folder import PROCESS_FOLDER
from toolyard.plugins.author_code.output import Outlet, routed
from toolyard.plugins.author_code.threads import THREADS, ThreadJob

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


GRACE = 1.0
"""How long code may go on by itself after its call is over, before it is stopped."""
MOMENT = 0.0002
"""How many seconds the loop itself waits for blocking code: most of it ends sooner than the loop could be told."""
STRAY: set[asyncio.Task[Any]] = set()
"""Tasks that did not end when they were cancelled; held here, since the loop holds its tasks only weakly."""


class Returned(msgspec.Struct, frozen=True):
    """The code came to its end."""

    value: Any
    """What it returned; of a generator a `Captured` of what it yielded."""


class Raised(msgspec.Struct, frozen=True):
    """The code raised, be it `SystemExit`."""

    error: BaseException


class OutOfTime(msgspec.Struct, frozen=True):
    """The code did not end in time; it was told so."""


Outcome: TypeAlias = Returned | Raised | OutOfTime


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call gives something to await, and so belongs into the loop."""
    function = inspect.unwrap(function)
    function = getattr(function, "func", function)  # functools.partial
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


async def run_authored(
    call: Callable[[], Any], *, in_loop: bool, outlet: Outlet, timeout: float | None, cancelled: threading.Event
) -> Outcome:
    """Run a call to its end, its time limit or our cancellation; never later than that, whatever the code does.

    What generators yield is partial output and, joined within the outlet's limit, the answer.
    """
    started = time.monotonic()
    try:
        with PROCESS_FOLDER.kept():
            if in_loop:
                return await run_in_task(call, outlet, timeout)
            ended = await run_in_thread(call, outlet, timeout, cancelled)
            if not isinstance(ended, Returned) or not inspect.isawaitable(ended.value):
                return ended
            awaitable = ended.value
            left = None if timeout is None else max(0.0, timeout - (time.monotonic() - started))
            return await run_in_task(lambda: awaitable, outlet, left)
    finally:
        cancelled.set()


async def run_in_task(call: Callable[[], Any], outlet: Outlet, timeout: float | None) -> Outcome:
    """Run async code in a task of its own, which may refuse to end without holding us up."""

    async def run() -> Returned | Raised:
        with routed(outlet):
            try:
                value = call()
                if inspect.isasyncgen(value):
                    async for part in value:
                        outlet.add_part(part)
                    return Returned(outlet.answer())
                return Returned(await value)
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                # The latter two would end the loop, and with it the application.
                return Raised(error)

    task = asyncio.get_running_loop().create_task(run())
    try:
        await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        await cancel(task)
        raise
    if not task.done():
        await cancel(task)
        return OutOfTime()
    return Raised(asyncio.CancelledError("it cancelled itself")) if task.cancelled() else task.result()


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task and see it end, but for one that does not want to."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=GRACE)
    finally:
        if not task.done():
            STRAY.add(task)
            task.add_done_callback(STRAY.discard)


async def run_in_thread(
    call: Callable[[], Any], outlet: Outlet, timeout: float | None, cancelled: threading.Event
) -> Outcome:
    """Run blocking code in a thread that does nothing else: in a pool, one that never ends would hold up others."""
    job = ThreadJob(lambda: run_blocking(call, outlet))
    THREADS.do(job)
    if not job.wait(MOMENT):
        await run_to_end(job, timeout, cancelled)
    return job.outcome or OutOfTime()


async def run_to_end(job: ThreadJob[Outcome], timeout: float | None, cancelled: threading.Event) -> None:
    """Wait for a job while the loop goes on; one that is not done in time is told so, and stopped."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    job.tell(lambda: tell(loop, ended))
    try:
        await asyncio.wait({ended}, timeout=timeout)
    finally:
        if not ended.done():
            cancelled.set()
            loop.call_later(GRACE, job.stop)


def tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
    """Tell the loop that something ended, unless that is gone or nobody waits."""

    def set_result() -> None:
        if not ended.done():
            ended.set_result(None)

    try:
        loop.call_soon_threadsafe(set_result)
    except RuntimeError:  # the loop is closed
        return


def run_blocking(call: Callable[[], Any], outlet: Outlet) -> Outcome:
    with routed(outlet):
        try:
            value = call()
            if inspect.isgenerator(value):
                for part in value:
                    outlet.add_part(part)
                value = outlet.answer()
            return Returned(value)
        except BaseException as error:
            return Raised(error)
