"""Whose leavings are cleaned up by the next application, and whose are left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolyard.files.user_folders import records_folder
from toolyard.files.write_times import OpenSpan, may_be_from_tools
from toolyard.process.sandbox.cleanup import CleanupRecord, boot, clean_up_abandoned, is_confined_since, mounts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def record_of(claimed: Path, made: Path, **changes: object) -> Path:
    """What an application wrote of a file that it made to be mounted over, and where it ran."""
    made.touch()
    record = CleanupRecord(str(claimed))
    record.write({"mount_points": [[os.fspath(made), ""]], **changes})
    return Path(record.file)


@pytest.mark.parametrize(
    ("changes", "is_left"),
    [
        ({}, False),
        ({"mounts": mounts() + 1}, True),
        ({"mounts": mounts() + 1, "boot": "an earlier one"}, False),
    ],
    ids=["killed_here", "alive_in_another_container", "killed_by_a_restart_of_the_system"],
)
def test_what_may_live_in_another_container_is_left_alone(
    tmp_path: Path, changes: dict[str, object], is_left: bool
) -> None:
    record = record_of(tmp_path / "gone", made := tmp_path / "made", **changes)
    assert record.parent == Path(records_folder())
    clean_up_abandoned()
    assert (record.exists(), made.exists()) == (is_left, is_left)


def test_a_record_says_where_it_was_written(tmp_path: Path) -> None:
    written = json.loads(record_of(tmp_path / "gone", tmp_path / "made").read_text())
    assert (written["boot"], written["mounts"]) == (boot(), mounts())
    assert boot()


CONFINED = """
import ctypes, struct, sys
libc, allow = ctypes.CDLL(None), ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
print("confined", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def goes_on() -> Iterator[subprocess.Popen[str]]:
    """A process with a filter that it cannot get rid of, as all have that are in a sandbox."""
    with subprocess.Popen(
        [sys.executable, "-c", CONFINED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "confined\n"
        yield process
        process.kill()


def killed_in(work: Path, **left: object) -> tuple[OpenSpan, Path]:
    """The span and the record of an application that was killed with its keeper and its guard."""
    span = OpenSpan([str(work)], {})
    record = CleanupRecord(str(work.parent / "gone"))
    record.write({"span": str(span.live), "since": time.time() - 60, **left})
    os.close(span._lock)  # as the kernel does
    return span, Path(record.file)


@pytest.mark.usefixtures("goes_on")
def test_tools_that_go_on_in_no_group_are_not_taken_for_ended(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    _, record = killed_in(work)
    for _ in range(2):
        clean_up_abandoned()
        (file := work / "toolyard.json").write_text("{}")
        assert may_be_from_tools(str(file), os.stat(file))
    assert record.exists(), "so that the next application tries again"


def test_it_is_known_which_processes_may_go_on(goes_on: subprocess.Popen[str]) -> None:
    assert is_confined_since(str(goes_on.pid), time.time() - 60)
    assert not is_confined_since(str(goes_on.pid), time.time() + 60), "of an application that was killed before"
    assert not is_confined_since(str(os.getpid()), 0.0)
    goes_on.kill()
    os.waitid(os.P_PID, goes_on.pid, os.WEXITED | os.WNOWAIT)
    assert not is_confined_since(str(goes_on.pid), 0.0), "whose end nobody has heard of yet"


@pytest.mark.parametrize(
    "left", [{"boot": "an earlier one"}, {"own_pids": True}], ids=["since_a_restart", "with_numbers_of_its_own"]
)
@pytest.mark.usefixtures("goes_on")
def test_what_ends_by_itself_has_ended(tmp_path: Path, left: dict[str, object]) -> None:
    (work := tmp_path / "work").mkdir()
    span, record = killed_in(work, **left)
    clean_up_abandoned()
    assert not record.exists()
    assert Path(f"{span.live}.ended").exists()
