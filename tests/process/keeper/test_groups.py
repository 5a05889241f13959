"""Control groups that end as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from toolyard.process.cgroups import ControlGroup
from toolyard.process.keeper.groups import kill_groups, members, read, write

HEADLESS = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(97,)).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""
"""A process whose first thread has ended, which the kernel's own way to end a group passes over."""
CHAIN = """
import os
print("ready", flush=True)
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
"""


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    group = ControlGroup.of_a_keeper(memory_bytes=1 << 30, processes=64)
    if not group.can_end:
        pytest.skip("no control group can be had here")
    yield group
    group.end()


def start(group: ControlGroup, source: str) -> subprocess.Popen[str]:
    """A Python in the group from its first instruction."""
    joining = 'for group; do echo 0 > "$group/cgroup.procs"; done; exec "$PYTHON" -I -S -c "$SOURCE"'
    process = subprocess.Popen(
        ["/bin/sh", "-c", joining, "sh", *group.paths()],
        env={"PYTHON": sys.executable, "SOURCE": source},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("source", [HEADLESS, CHAIN], ids=["headless", "chain"])
def test_a_group_ends_with_whatever_is_in_it_and_can_be_used_again(group, source):
    for _ in range(3):
        with start(group, source):
            kill_groups(group.paths())
            assert [members(folder) for folder in group.paths()] == [[]] * len(group.paths())


def test_a_group_that_the_kernel_cannot_end_is_ended_by_its_list(group):
    """As on kernels that have control groups of the first version only."""
    folders = [folder for folder in group.paths() if not os.path.exists(f"{folder}/cgroup.kill")]
    if not folders:
        pytest.skip("there are no groups of the first version here")
    with start(group, CHAIN):
        kill_groups(folders)
        assert [members(folder) for folder in group.paths()] == [[]] * len(group.paths())
    assert group.holds("pids")
    with start(group, HEADLESS):
        kill_groups(folders)
        assert [members(folder) for folder in folders] == [[]] * len(folders)


def test_the_group_of_a_shell_ends_and_goes_with_that_of_its_keeper(group):
    shell = ControlGroup.create(memory_bytes=1 << 29, processes=32, of=group.name)
    with start(shell, CHAIN):
        group.end()
    assert not any(map(os.path.exists, [*shell.paths(), *group.paths()]))


def test_a_group_that_somebody_was_killed_while_ending_can_be_used_again(group):
    closed = [folder for folder in group.paths() if write(folder, "pids.max", "0")]
    assert can_fork(group) is not bool(closed), "as it was left"
    group.open_again()
    assert [read(folder, "pids.max").strip() for folder in closed] == ["64"] * len(closed)
    assert can_fork(group)


def can_fork(group: ControlGroup) -> bool:
    script = 'for group; do echo 0 > "$group/cgroup.procs"; done; (true) && (true)'
    return subprocess.run(["/bin/sh", "-c", script, "sh", *group.paths()], capture_output=True).returncode == 0


def test_a_group_that_somebody_is_ending_is_left_alone(group):
    with start(group, HEADLESS):
        closed = [folder for folder in group.paths() if write(folder, "pids.max", "0")]
        group.open_again()
        assert [read(folder, "pids.max").strip() for folder in closed] == ["0"] * len(closed)
        kill_groups(group.paths())
