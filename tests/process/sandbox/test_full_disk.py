"""A disk that tools have filled: nothing starts inside with less protection than there would be with room."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_disk import run_on_small_disk
from support import need_backend

RECORD = """
import asyncio
from boxes import Box
from toolyard.errors import NoSandbox
from toolyard.files.write_times import may_be_from_tools

os.environ["XDG_STATE_HOME"] = str(disk / "state")

async def main():
    box = Box(disk.parent)
    (disk / "state").mkdir()
    children = box.mounts()
    fill()
    try:
        await box.bash(children, "touch ran")
        print("started")
    except NoSandbox as error:
        print(error)
    assert not (box.workspace / "ran").exists()
    (disk / "filler").unlink()
    await box.bash(children, "touch ran")
    await children.aclose()
    ran = box.workspace / "ran"
    assert may_be_from_tools(str(ran), ran.stat())
    assert list((disk / "state/toolyard/written/live").iterdir()) == []

asyncio.run(main())
"""


def test_nothing_starts_inside_when_it_cannot_be_written_down(tmp_path: Path) -> None:
    said = run_on_small_disk(tmp_path, RECORD)
    assert "it cannot be written down" in said
    assert "No space left" in said


GUARDS = """
import asyncio
from boxes import Box
from toolyard.errors import NoSandbox

async def main():
    box = Box(disk)
    before = sorted(os.listdir(box.workspace))
    children = box.children("bubblewrap", mode={mode!r})
    use_up_names()
    try:
        await box.bash(children, "rm -r ../names; echo script-shell=/evil > .npmrc")
        print("started")
    except NoSandbox as error:
        print(error)
    assert sorted(os.listdir(box.workspace)) == before, "nothing is left of what was made before there was no room"
    (disk / "names/0").unlink()  # which is not enough
    try:
        await box.bash(children, "true")
        print("started")
    except NoSandbox as error:
        print(error)
    assert sorted(os.listdir(box.workspace)) == before
    for file in (disk / "names").iterdir():
        file.unlink()
    outcome = await box.bash(children, "echo script-shell=/evil > .npmrc; mkdir -p .cargo/x; ls -A")
    assert "Read-only" in outcome.stderr.text, outcome
    await children.aclose()
    assert sorted(os.listdir(box.workspace)) == before

asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["auto", "require"])
def test_nothing_starts_inside_when_there_is_no_room_for_its_guards(tmp_path: Path, mode: str) -> None:
    need_backend("bubblewrap")
    said = run_on_small_disk(tmp_path, GUARDS.format(mode=mode), options="size=8m,nr_inodes=200")
    assert "started" not in said
    assert said.count("the disk is full, so that this cannot be protected by the sandbox") == 2
    assert ".npmrc" in said


CLOSED = """
from toolyard.process.sandbox.mount_points import SOCKET, MountPoints

closed = disk / "closed"
closed.mkdir()
libc.mount(b"none", os.fsencode(closed), b"tmpfs", 1, b"size=1m")  # read-only
(disk / "link").symlink_to("elsewhere")
wanted = [closed / ".npmrc", closed / ".config", closed / ".config/git", disk / "link/.npmrc", disk / "no/.npmrc"]
points = MountPoints([(str(path), SOCKET) for path in wanted])
assert points.made == points.without_room == []
print(*points.unguarded)
"""


def test_only_where_nobody_may_write_nothing_has_to_be_guarded(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    assert run_on_small_disk(tmp_path, CLOSED).split() == [str(disk / "link/.npmrc"), str(disk / "no/.npmrc")]
