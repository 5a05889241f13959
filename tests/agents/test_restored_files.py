"""What comes back with a state is trusted no more than what tools write."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from toolyard.agents.workspace_states import WorkspaceStates
from toolyard.files.write_times import may_be_from_tools

pytestmark = pytest.mark.anyio


@pytest.fixture
def states(tmp_path: Path) -> WorkspaceStates:
    (tmp_path / "work").mkdir()
    return WorkspaceStates(tmp_path / "kept", tmp_path / "work")


async def test_a_configuration_that_comes_back_is_not_obeyed_until_a_person_accepts_it(states: WorkspaceStates) -> None:
    file = states.workspace / "sub" / "toolyard.json"
    file.parent.mkdir()
    file.write_text("{}")
    kept = await states.keep("s", "")
    file.unlink()
    assert kept
    await states.restore(kept, "s")
    assert file.read_text() == "{}"
    assert may_be_from_tools(str(file), os.lstat(file))


async def test_a_repository_that_comes_back_is_disarmed(states: WorkspaceStates) -> None:
    folder = states.workspace / "bare"
    subprocess.run(["git", "init", "-q", "--bare", folder], check=True)
    config = folder / "config"
    config.write_text(config.read_text() + "[core]\n\tfsmonitor = evil\n")
    kept = await states.keep("s", "")
    subprocess.run(["rm", "-r", folder], check=True)
    assert kept
    await states.restore(kept, "s")
    assert "evil" not in config.read_text()


def test_what_is_guarded_is_told_below_the_workspace_and_never_as_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    guarded = [str(tmp_path / "work"), str(tmp_path / "work/a/b"), str(tmp_path / "other")]
    states = WorkspaceStates(tmp_path / "kept", tmp_path / "work", guarded=lambda: guarded)
    assert states.guarded() == ["a/b"]
