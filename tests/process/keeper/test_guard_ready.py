"""Nothing runs inside before its guard watches, and guards are on what is there by then."""

from __future__ import annotations

import os

import pytest

from boxes import Box
from toolyard.errors import CannotStart
from toolyard.process.keeper import keeper_process
from toolyard.process.keeper.guard import GUARD_SCRIPT

pytestmark = pytest.mark.anyio

GUARD = 'exec "$python"'
assert GUARD_SCRIPT.count(GUARD) == 1


@pytest.fixture
async def box(tmp_path):
    made = Box(tmp_path)
    yield made
    for children in made.open:
        await children.aclose()


async def test_nothing_is_started_inside_while_the_guard_does_not_watch(box, monkeypatch):
    script = GUARD_SCRIPT.replace(GUARD, 'exec cat <&"$alive" >/dev/null; "$python"')  # which says nothing
    monkeypatch.setattr(keeper_process, "GUARD_SCRIPT", script)
    monkeypatch.setattr(keeper_process, "ENTER_PATIENCE", 0.5)
    children = box.mounts()
    with pytest.raises(CannotStart, match="guard"):
        await box.bash(children, "touch ran")
    assert not (box.workspace / "ran").exists()


async def test_what_its_owner_replaces_before_the_guard_watches_is_guarded_all_the_same(box, monkeypatch):
    """The mount is gone with the file, and a guard that comes later takes the new one for the old."""
    monkeypatch.setattr(keeper_process, "GUARD_SCRIPT", GUARD_SCRIPT.replace(GUARD, f"sleep 0.3; {GUARD}"))
    (guarded := box.workspace / ".npmrc").write_text("yours\n")
    wait = keeper_process.KeeperProcess._word_of_confinement
    times = []

    def replace_then(keeper):
        word = wait(keeper)
        if not times:
            times.append(os.rename(box.workspace / "saved", guarded))
        return word

    monkeypatch.setattr(keeper_process.KeeperProcess, "_word_of_confinement", replace_then)
    (box.workspace / "saved").write_text("newer\n")
    ran = await box.bash(box.mounts(), "echo evil >> .npmrc; echo done")
    assert (ran.stdout.text, times) == ("done\n", [None])
    assert guarded.read_text() == "newer\n"


async def test_an_owner_who_never_stops_replacing_it_keeps_everything_from_starting(box, monkeypatch):
    (guarded := box.workspace / ".npmrc").write_text("yours\n")
    wait = keeper_process.KeeperProcess._wait_for_ready_guard

    def replace_then(keeper):
        wait(keeper)
        (box.workspace / "saved").write_text("newer\n")
        os.rename(box.workspace / "saved", guarded)

    monkeypatch.setattr(keeper_process.KeeperProcess, "_wait_for_ready_guard", replace_then)
    with pytest.raises(CannotStart, match="replaced faster"):
        await box.bash(box.mounts(), "echo evil >> .npmrc")
    assert guarded.read_text() == "newer\n"
