"""The guard: whoever of application, keeper and guard is killed or stopped, hostile daemons do not outlive them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hostile_ends import APPLICATION_ENDS, CAUSES, FAST, TRICKS, Setting, end_once
from support import need_backend
from toolyard.process.cgroups import can_end_groups
from toolyard.process.child import Children
from toolyard.process.private_folders import SharedFolder
from toolyard.process.process_tree import descendants
from toolyard.process.sandbox.cleanup import CleanupRecord, clean_up_abandoned

TIMES = 2
"""The whole is `python -m benchmarks.ends`, with two hundred ends of each cause."""


@pytest.mark.parametrize("cause", CAUSES)
def test_no_daemon_in_a_sandbox_survives_an_end_of_any_cause(cause):
    backend = need_backend("bubblewrap", "bubblewrap-pids") if can_end_groups() else need_backend("bubblewrap-pids")
    with ThreadPoolExecutor(TIMES) as pool:
        found = list(pool.map(lambda _: end_once(cause, Setting(backend)), range(TIMES)))
    assert [(one.survivors, one.things) for one in found] == [([], [])] * TIMES


@pytest.mark.parametrize("cause", ["cancel", "kill -9 of the keeper", "a stopped keeper, then kill -9"])
def test_where_the_kernel_ends_all_of_a_sandbox_forking_faster_than_anybody_looks_does_not_help(cause):
    backend = need_backend("bubblewrap", "bubblewrap-pids") if can_end_groups() else need_backend("bubblewrap-pids")
    found = end_once(cause, Setting(backend, (*TRICKS, *FAST)))
    assert (found.survivors, found.things) == ([], [])


@pytest.mark.parametrize("cause", ["cancel", "kill -9 of the keeper", *APPLICATION_ENDS])
def test_outside_of_a_sandbox_no_daemon_survives_an_end_that_the_guard_or_the_keeper_sees(cause):
    found = end_once(cause, Setting(None))
    assert (found.survivors, found.things) == ([], [])


@pytest.mark.anyio
async def test_a_guard_holds_no_end_of_the_channel_and_nothing_of_the_application(desk):
    await desk.run("true")
    guard = desk.children.keeper._keeper._process.pid
    await desk.until(lambda: b"/bin/sh" not in Path(f"/proc/{guard}/cmdline").read_bytes())  # it was one
    await desk.until(lambda: len(os.listdir(f"/proc/{guard}/fd")) < 9)
    await desk.until(lambda: sockets_of(guard) == 1)  # its standard input; what it reads to start is closed again


def sockets_of(pid: int) -> int:
    held = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            held += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    return held


@pytest.mark.anyio
async def test_the_guard_says_when_nothing_is_left_and_is_gone_itself_before_the_application_has_closed(box):
    children = box.mounts()
    (box.workspace / "package.json").write_text("{}")
    await box.bash(children, "sleep 60 & disown")
    keeper = children.keeper._keeper
    keeper.close()
    await keeper.wait_or_kill()
    assert keeper._process.returncode is None, "nobody has waited for its end"
    assert [pid for pid in descendants([keeper._process.pid]) if pid != keeper._process.pid] == []
    children.keeper._keeper = None
    await keeper.wait_for_guard()
    assert keeper._process.returncode == 0


@pytest.mark.anyio
async def test_a_guard_that_was_killed_says_nothing_and_is_not_waited_for_in_vain(box):
    children = box.mounts()
    await box.bash(children, "sleep 60 & disown")
    process = children.keeper._keeper._process
    process.kill()
    await children.aclose()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.anyio
async def test_what_a_killed_application_and_its_guard_left_is_gone_after_the_next_start(desk, tmp_path, monkeypatch):
    mount_point, unwanted, common = (tmp_path / name for name in ("mount", "toolyard.json", "common"))
    mount_point.mkdir()
    common.mkdir()
    unwanted.write_text("{}")
    left = {"mount_points": [(str(mount_point), None)], "unwanted": [str(unwanted)], "common": [str(common)]}
    source = (
        "import json, os, sys\n"
        "from toolyard.process.private_folders import SharedFolder\n"
        "from toolyard.process.sandbox.cleanup import CleanupRecord\n"
        "folder = SharedFolder()\n"
        "CleanupRecord(folder.path).write(json.loads(sys.argv[1]))\n"
        "print(folder.path, CleanupRecord(folder.path).file, flush=True)\n"
        "sys.stdin.read(1)\n"
    )
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", source, json.dumps(left)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as application:
        folder, record = map(Path, application.stdout.readline().split())
        clean_up_abandoned()
        assert all(path.exists() for path in (mount_point, unwanted, common, folder, record))
        application.send_signal(signal.SIGKILL)
        application.wait(30)
    assert (await desk.run("exit 4")).exit_code == 4
    assert not any(path.exists() for path in (mount_point, unwanted, common, folder, record))


def test_a_folder_that_looks_like_one_of_ours_is_removed_but_what_it_says_is_not_obeyed(tmp_path, monkeypatch):
    """Somebody who may write where shared folders are must not make the next application remove other things."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    precious = tmp_path / "precious"
    precious.mkdir()
    planted = tmp_path / "toolyard-shared-planted"
    planted.mkdir()
    (planted / "cleanup.json").write_text(json.dumps({"common": [str(precious)], "unwanted": [str(precious)]}))
    clean_up_abandoned()
    SharedFolder().remove()
    assert precious.exists()
    assert not planted.exists()


def test_records_are_where_no_tool_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = SharedFolder()
    record = CleanupRecord(folder.path)
    record.write({"groups": []})
    assert Path(record.file).is_relative_to(tmp_path / "state")
    written = json.loads(Path(record.file).read_text())
    assert (written["claimed"], written["groups"]) == (folder.path, [])
    record.remove()
    folder.remove()
    assert not Path(record.file).exists()


@pytest.mark.anyio
async def test_a_keeper_and_its_group_leave_nothing_behind_when_they_are_closed(tmp_path, monkeypatch, desk_request):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    children = Children()
    await children.run(desk_request)
    outside = children.keeper._outside
    assert outside is not None
    groups = outside.group.paths()
    assert all(map(os.path.isdir, groups))
    await children.aclose()
    assert not any(map(os.path.exists, groups))
    assert list(tmp_path.glob("toolyard-*")) == []
    assert list((tmp_path / "state").rglob("*.json")) == []
