"""Waiting: deadlines and cancellations cost neither the value nor the work."""

from __future__ import annotations

import asyncio

import pytest

from toolyard.process.waiting import Deadlines, Promise, run_shielded

pytestmark = pytest.mark.anyio


async def test_work_is_finished_before_a_cancellation_is_raised():
    done = asyncio.Event()

    async def work() -> str:
        await asyncio.sleep(0.01)
        done.set()
        return "result"

    assert await run_shielded(work()) == "result"
    done.clear()
    task = asyncio.ensure_future(run_shielded(work()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


async def test_a_cancellation_is_not_lost_when_the_work_fails():
    may_fail = asyncio.Event()

    async def work() -> None:
        await may_fail.wait()
        raise ValueError("on purpose")

    task = asyncio.ensure_future(run_shielded(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    may_fail.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ValueError, match="on purpose"):
        await run_shielded(work())


async def test_a_value_can_be_waited_for_again_after_a_deadline_and_a_cancellation():
    promise: Promise[str] = Promise()
    deadlines = Deadlines()
    assert await promise.get_within(0.001, deadlines) is None
    waiting = asyncio.ensure_future(promise.get())
    await asyncio.sleep(0)
    waiting.cancel()
    waiting = asyncio.ensure_future(promise.get_within(30, deadlines))
    await asyncio.sleep(0)
    promise.set("first")
    promise.set("second")
    assert [await waiting, await promise.get(), await promise.get_within(0, deadlines)] == ["first"] * 3


async def test_each_is_woken_in_its_time_whoever_was_there_first():
    deadlines, woken = Deadlines(), asyncio.Queue[str]()
    for name, seconds in (("last", 0.3), ("first", 0.1), ("never", 0.01), ("second", 0.2), ("much later", 60)):
        number = deadlines.add(seconds, lambda name=name: woken.put_nowait(name))
        if name == "never":
            deadlines.discard(number)
    async with asyncio.timeout(30):
        assert [await woken.get() for _ in range(3)] == ["first", "second", "last"]
    assert woken.empty()


async def test_who_comes_after_one_that_did_not_wait_long_is_woken_too():
    deadlines, woken = Deadlines(), asyncio.Event()
    deadlines.discard(deadlines.add(60, woken.set))
    deadlines.add(0.001, woken.set)
    async with asyncio.timeout(30):
        await woken.wait()
    woken.clear()
    deadlines.rest()
    deadlines.add(0.001, woken.set)
    async with asyncio.timeout(30):
        await woken.wait()


def test_a_deadline_holds_in_a_second_event_loop_too():
    deadlines = Deadlines()

    async def leave_early() -> None:
        deadlines.discard(deadlines.add(0.01, lambda: None))

    async def wait() -> None:
        woken = asyncio.Event()
        deadlines.add(0.02, woken.set)
        async with asyncio.timeout(30):
            await woken.wait()

    asyncio.run(leave_early())
    asyncio.run(wait())
