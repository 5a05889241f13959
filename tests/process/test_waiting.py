"""Waiting: deadlines and cancellations cost neither the value nor the work."""

from __future__ import annotations

import asyncio

import pytest

from toolyard.process.waiting import Promise, run_shielded

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
    assert await promise.get_within(0.001) is None
    waiting = asyncio.ensure_future(promise.get())
    await asyncio.sleep(0)
    waiting.cancel()
    waiting = asyncio.ensure_future(promise.get_within(30))
    await asyncio.sleep(0)
    promise.set("first")
    promise.set("second")
    assert [await waiting, await promise.get(), await promise.get_within(0)] == ["first"] * 3
