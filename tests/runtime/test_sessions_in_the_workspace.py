"""A sessions folder in the workspace: ours goes on to work, one that tools made is not used until it is accepted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from support import need_backend
from toolyard.app import AgentApplication
from toolyard.cli.main import main
from toolyard.files.door import FileRefused
from toolyard.files.own.entering import entered
from toolyard.files.own.ownership import forget, remember
from toolyard.files.write_times import OpenSpan
from toolyard.runtime.audit.verify import check_log
from yard import Yard, inhabit

pytestmark = pytest.mark.anyio
SECONDS = 60
LONG = "seq 100000"


@pytest.fixture
def yard(tmp_path, monkeypatch) -> Yard:
    need_backend("bubblewrap", "bubblewrap-pids")
    yard = Yard(inhabit(tmp_path, monkeypatch) / "work")
    yard.config("shell:command", sandbox={"mode": "require"})
    return yard


def beside(yard: Yard) -> AgentApplication:
    """An application whose sessions are elsewhere, as of the command line."""
    return AgentApplication(yard.folder / "toolyard.json", yard.folder.parent / "elsewhere")


def within(yard: Yard) -> AgentApplication:
    """One with the sessions folder that the README shows."""
    return AgentApplication(yard.folder / "toolyard.json", "./sessions")


async def shell(app: AgentApplication, command: str) -> str:
    return (await app.call_tool("shell", {"command": command})).text


def problems(app: AgentApplication) -> list[object]:
    return [one["type"] for one in app.get_config_errors()]


async def test_links_that_a_tool_made_in_it_remove_overwrite_and_write_nothing(yard):
    (victim := yard.folder.parent / "documents").mkdir()
    (victim / "letters").mkdir()
    (old := victim / "letters" / "old").write_text("precious")
    os.utime(old, (1, 1))
    (notes := yard.folder.parent / "notes").write_text("precious")
    async with beside(yard) as app:
        await shell(app, f"mkdir sessions; ln -s {victim} sessions/outputs; ln -s {notes} sessions/audit.head")
    async with within(yard) as app:
        (problem,) = (one for one in app.get_config_errors() if one["type"] == "sessions_refused")
        assert "'outputs' in it is a link" in problem["detail"]
        assert str(Path("sessions").absolute()) in problem["file"]
        assert "100000" in await shell(app, LONG), "calls go on as with any log that cannot be written"
    assert (old.read_text(), notes.read_text()) == ("precious", "precious")
    assert [path.name for path in victim.rglob("*")] == ["letters", "old"]


async def test_a_link_in_the_place_of_kept_output_shows_no_secret_inside(yard):
    key = yard.folder.parent / "home" / ".ssh" / "key"
    async with within(yard) as app:
        kept = app.output_folder()
        await shell(app, "true")
    shutil.rmtree(kept)
    kept.symlink_to(key.parent)
    async with within(yard) as app:
        assert key.read_text() not in await shell(app, f"cat {key} {kept}/key; true")


async def test_a_store_that_tools_made_is_not_used_until_a_person_accepts_it(yard, capsys):
    async with within(yard) as app:
        await shell(app, "true")
    made = yard.folder.parent / "made"
    Path("sessions").rename(made)
    forget(str(Path("sessions").absolute()))
    shutil.copytree(made, "theirs")
    async with beside(yard) as app:
        await shell(app, "cp -r theirs sessions")
    head = Path("sessions/audit.head").read_bytes()
    for _ in range(2):
        async with within(yard) as app:
            (problem,) = (one for one in app.get_config_errors() if one["type"] == "sessions_refused")
            assert "while tools could write it" in problem["detail"]
            assert problem["hint"].endswith(f"toolyard trust accept {Path('sessions').absolute()}")
            await shell(app, "true")
    assert Path("sessions/audit.head").read_bytes() == head
    assert main(["trust", "accept", "sessions", "--yes"], standalone_mode=False) == 0
    async with within(yard) as app:
        assert "sessions_refused" not in problems(app)
        await shell(app, "true")
    assert Path("sessions/audit.head").read_bytes() != head


async def test_one_that_we_made_is_ours_over_restarts_and_beside_other_applications(yard):
    for _ in range(2):
        async with within(yard) as app:
            await shell(app, LONG)
            async with beside(yard) as other:
                await shell(other, "date > made")
                await shell(app, LONG)
            assert problems(app) == []
    async with beside(yard) as other:
        said = await shell(
            other, "cat sessions/audit.head; rm -rf sessions; ln -s / sessions/x; echo x > sessions/audit.head"
        )
        assert "sessions" in said
    assert not Path("sessions/x").is_symlink()
    async with within(yard) as app:
        await shell(app, "true")
        assert problems(app) == []
    assert check_log(Path("sessions/audit").absolute()).is_whole


KILLED = """
import asyncio, os, signal, sys
from toolyard import AgentApplication
async def main():
    async with AgentApplication("toolyard.json", "./sessions") as app:
        await app.call_tool("shell", {"command": "date > made; seq 100000"})
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_one_that_we_made_is_ours_after_we_were_killed(yard):
    ran = subprocess.run([sys.executable, "-P", "-c", KILLED], cwd=yard.folder, timeout=SECONDS, check=False)
    assert ran.returncode == -9
    for _ in range(2):
        async with within(yard) as app:
            await shell(app, "date > made")
            assert problems(app) == []


async def test_a_folder_with_the_number_of_ours_that_came_to_be_later_is_not_ours(tmp_path):
    (place := tmp_path / "sessions").mkdir()
    known = remember(str(place))
    with entered(place) as folder:
        assert known.is_still(folder)
        assert not replace(known, born=known.born - 1).is_still(folder)
        assert not replace(known, born=0.0, inode=known.inode + 1).is_still(folder)


async def test_a_copy_that_the_owner_made_where_no_tool_works_is_used(yard, monkeypatch):
    async with within(yard) as app:
        await shell(app, "true")
    copy = yard.folder.parent / "copy"
    shutil.copytree(yard.folder, copy)
    monkeypatch.chdir(copy)
    async with AgentApplication("toolyard.json", "./sessions") as app:
        await shell(app, "true")
        assert problems(app) == []


async def test_a_link_of_the_owner_s_leads_to_a_sessions_folder_elsewhere(yard):
    (elsewhere := yard.folder.parent / "large-disk").mkdir()
    (link := yard.folder.parent / "linked").symlink_to(elsewhere)
    async with AgentApplication("toolyard.json", link) as app:
        await shell(app, LONG)
        assert problems(app) == []
    assert (elsewhere / "audit.head").exists()


async def test_a_link_that_a_tool_made_is_refused_from_wherever_it_is_named(yard, monkeypatch):
    (elsewhere := yard.folder.parent / "elsewhere-too").mkdir()
    Path("owners").symlink_to(elsewhere)
    async with beside(yard) as app:
        await shell(app, f"ln -s {elsewhere} sessions")
    (other := yard.folder.parent / "other").mkdir()
    monkeypatch.chdir(other)
    with pytest.raises(FileRefused, match="is a link in a folder that tools can write"):
        AgentApplication({}, yard.folder / "sessions")
    AgentApplication({}, yard.folder / "owners")


async def test_an_empty_folder_that_was_there_while_tools_ran_is_used(yard):
    span = OpenSpan([os.path.realpath(yard.folder)], {})
    Path("sessions").mkdir()
    span.close(time.time(), {})
    async with AgentApplication({"plugins": ["shell:command"]}, "./sessions") as app:
        assert problems(app) == []


def test_a_folder_that_is_no_sessions_folder_cannot_be_accepted(toolyard):
    (toolyard.folder / "plain").mkdir()
    ran = toolyard("trust", "accept", "plain")
    assert (ran.code, "no sessions folder" in ran.err) == (2, True)


@pytest.mark.parametrize("words", [("sessions", "list"), ("audit", "verify"), ("audit", "show")])
def test_the_command_line_reads_nothing_through_a_link(toolyard, words):
    (toolyard.folder / "sessions").mkdir()
    (toolyard.folder / "outside").mkdir()
    for name in ("audit", "sessions.sqlite"):
        (toolyard.folder / "sessions" / name).symlink_to(toolyard.folder / "outside")
    ran = toolyard("--sessions", "sessions", *words)
    assert (ran.code, "link" in ran.err) == (2, True)
    assert list((toolyard.folder / "outside").iterdir()) == []
