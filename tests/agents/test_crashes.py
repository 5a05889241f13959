"""Sessions of which a process was killed at any moment: during calls, questions, summaries, states and subagents."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash_runs import crash

KILLS = 5


@pytest.mark.parametrize("seed", [1001, 1002, 1003])
def test_nothing_is_lost_or_done_twice_however_often_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    seen = crash(tmp_path / "run", seed, KILLS)
    assert seen["kills"] == KILLS
    assert seen["calls"] > 0
