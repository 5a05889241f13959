"""A sweep over very many repositories that were made inside: the event loop goes on meanwhile, and none is left out."""

from __future__ import annotations

import asyncio
import os

import pytest

from support import need

pytestmark = pytest.mark.anyio
MANY = 400
PLANT = f"""
mkdir -p one/.git/objects one/.git/refs one/.git/hooks && echo 'ref: refs/heads/main' > one/.git/HEAD
printf '[core]\\nfsmonitor = /evil\\n' > one/.git/config && touch one/.git/hooks/pre-commit
for n in $(seq {MANY}); do echo many/$n; done | xargs mkdir -p && for n in $(seq {MANY}); do echo many/$n; done |
    xargs -n 100 sh -c 'for to in "$@"; do cp -r one/.git "$to"; done' sh && rm -rf one
"""


def armed(workspace) -> list[str]:
    """What git outside would still obey."""
    found = []
    for folder in (workspace / "many").iterdir():
        found += [f"{folder}/hook"] if (folder / ".git/hooks/pre-commit").exists() else []
        found += [f"{folder}/config"] if "evil" in (folder / ".git/config").read_text() else []
    return found


async def test_the_event_loop_has_many_turns_while_many_repositories_are_looked_over(box):
    need("git")
    children = box.mounts()
    assert (await box.bash(children, PLANT)).exit_code == 0
    assert len(armed(box.workspace)) == 2 * MANY
    sweep = asyncio.ensure_future(children.sandbox.sweep_after_call())
    turns = 0
    while not sweep.done():
        turns += 1
        await asyncio.sleep(0)
    assert len(await sweep) == 2 * MANY, "and it is said what was moved"
    assert armed(box.workspace) == []
    assert turns > 5


async def test_a_sweep_that_was_cancelled_is_finished_and_told_by_the_next(box):
    need("git")
    children = box.mounts()
    assert (await box.bash(children, PLANT)).exit_code == 0
    sweep = asyncio.ensure_future(children.sandbox.sweep_after_call())
    while len(armed(box.workspace)) == 2 * MANY:
        assert not sweep.done()
        await asyncio.sleep(0)
    sweep.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sweep
    assert armed(box.workspace), "it was stopped on its way"
    assert len(await children.sandbox.sweep_after_call()) == 2 * MANY
    assert armed(box.workspace) == []


async def test_calls_that_end_together_each_look_for_themselves(box):
    need("git")
    children = box.mounts()
    assert (await box.bash(children, PLANT)).exit_code == 0
    first = asyncio.ensure_future(children.sandbox.sweep_after_call())
    while len(armed(box.workspace)) == 2 * MANY:
        await asyncio.sleep(0)
    hook = box.workspace / "many/1/.git/hooks/post-checkout"
    await box.bash(children, f"touch {hook}")
    assert os.path.lexists(hook)
    second = await children.sandbox.sweep_after_call()
    assert first.done()
    assert str(hook) in {**await first, **second}
    assert not os.path.lexists(hook)


async def test_the_end_waits_for_a_sweep_under_way_and_leaves_nothing_armed(box):
    need("git")
    children = box.mounts()
    assert (await box.bash(children, PLANT)).exit_code == 0
    sweep = asyncio.ensure_future(children.sandbox.sweep_after_call())
    while len(armed(box.workspace)) == 2 * MANY:
        await asyncio.sleep(0)
    await children.aclose()
    await sweep
    assert armed(box.workspace) == []
