"""Outputs that are kept whole go when they are old or too much, but never one that is being written or just was."""

from __future__ import annotations

import asyncio
import os

import pytest

from support import PATIENCE
from toolyard.config.settings import OutputSettings
from toolyard.process.output import HeadTail
from toolyard.runtime.output_folders import drop_old_outputs
from yard import Yard

DAY = 24 * 3600
NOW = 1_000 * DAY


def keep(sessions, name: str, *, days: float, size: int = 10) -> None:
    """An output of that age."""
    file = sessions / "outputs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)
    os.utime(file, (NOW - days * DAY, NOW - days * DAY))


def names(sessions) -> list[str]:
    outputs = sessions / "outputs"
    return sorted(str(path.relative_to(outputs)) for path in outputs.rglob("*") if not path.is_dir())


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        (OutputSettings(keep_days=5), ["one/a", "one/b", "two/c"]),
        (OutputSettings(keep_days=2), ["one/a"]),
        (OutputSettings(keep_bytes=30), ["one/a", "one/b", "two/c"]),
        (OutputSettings(keep_bytes=29), ["one/a", "two/c"]),
        (OutputSettings(keep_bytes=1), ["one/a"]),
        (OutputSettings(), ["one/a", "one/b", "one/old", "two/c"]),
    ],
)
def test_the_oldest_of_all_workspaces_go_first_and_the_newest_stays(tmp_path, settings, left):
    for name, days in {"one/a": 1, "two/c": 3, "one/b": 4, "one/old": 6}.items():
        keep(tmp_path, name, days=days)
    drop_old_outputs(tmp_path, settings, NOW)
    assert names(tmp_path) == left


def test_one_that_is_being_written_stays_until_it_is_whole(tmp_path):
    keep(tmp_path, "one/newest", days=0)
    file = tmp_path / "outputs/one/long"
    output = HeadTail(10, spill_to=file)
    output.add(b"x" * 100)
    os.utime(file, (0, 0))
    drop_old_outputs(tmp_path, OutputSettings(keep_days=1), NOW)
    assert names(tmp_path) == ["one/long", "one/newest"]
    output.finish()
    os.utime(file, (0, 0))
    drop_old_outputs(tmp_path, OutputSettings(keep_days=1), NOW)
    assert names(tmp_path) == ["one/newest"]


def test_links_are_neither_followed_nor_removed(tmp_path):
    keep(tmp_path / "elsewhere", "one/precious", days=900)
    keep(tmp_path, "one/new", days=0)
    (tmp_path / "outputs/linked").symlink_to(tmp_path / "elsewhere/outputs/one")
    (tmp_path / "outputs/one/link").symlink_to(tmp_path / "elsewhere/outputs/one/precious")
    drop_old_outputs(tmp_path, OutputSettings(keep_days=1), NOW)
    assert names(tmp_path / "elsewhere") == ["one/precious"]
    assert names(tmp_path) == ["one/link", "one/new"]
    assert (tmp_path / "outputs/linked").is_symlink()


def test_without_any_there_is_nothing_to_do(tmp_path):
    drop_old_outputs(tmp_path, OutputSettings(), NOW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.anyio
async def test_calls_keep_the_bound_and_leave_what_a_running_one_writes(tmp_path):
    yard = Yard(tmp_path)
    os.mkfifo(tmp_path / "here")
    (tmp_path / "go").touch()
    output = {"limit_bytes": 1000, "keep_bytes": 25_000}
    config = yard.config("shell:command", output=output, sandbox={"mode": "off"})
    slow = f"seq 3000; echo x >{tmp_path}/here; while [ -e {tmp_path}/go ]; do sleep 0.05; done; seq 3000"
    async with yard.open(config) as app:
        running = asyncio.create_task(app.call_tool("shell", {"command": slow, "timeout": PATIENCE}))
        await asyncio.to_thread((tmp_path / "here").read_text)
        results = [await app.call_tool("shell", {"command": "seq 3000"}) for _ in range(4)]
        (tmp_path / "go").unlink()
        last = await running
    assert [result.truncated.kept_at.exists() for result in results] == [False, False, False, False]
    assert last.truncated.kept_at.read_text().count("\n") == 6000
