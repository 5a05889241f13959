"""Whose leavings are cleaned up by the next application, and whose are left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from toolyard.process.private_folders import records_folder
from toolyard.process.sandbox.cleanup import CleanupRecord, boot, clean_up_abandoned, mounts


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
