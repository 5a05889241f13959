"""Files that their owner replaces while something runs inside: guarded again, with nothing that the inside wrote."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from support import need, until
from toolyard.process.keeper.file_guards import FileGuards
from toolyard.process.sandbox.replaced_files import ReplacedFiles

pytestmark = pytest.mark.anyio
WAYS = {
    "by rename": "cp .npmrc new && echo fund=false >> new && mv new .npmrc",
    "by moving the old one away": "mv .npmrc old && (cat old; echo fund=false) > .npmrc && rm old",
    "by removing it": "cp .npmrc saved && rm .npmrc && sleep 0.05 && (cat saved; echo fund=false) > .npmrc && rm saved",
}


@pytest.fixture
def workspace(box):
    """With a file that npm obeys."""
    (box.workspace / "package.json").write_text("{}")
    (box.workspace / ".npmrc").write_text("audit=false\n")
    return box.workspace


@pytest.mark.parametrize("way", WAYS)
async def test_what_its_owner_saves_while_a_job_waits_for_it_is_guarded_again(box, workspace, way):
    children = box.mounts()
    wait = 'touch began; until [ -e go ]; do :; done; echo x >> .npmrc; echo "$?"; grep -c fund .npmrc'
    job = asyncio.ensure_future(box.bash(children, wait))
    await until((workspace / "began").exists)
    listed = Path(children.sandbox.folder().path, "guards")
    told = ReplacedFiles(str(listed))
    subprocess.run(["bash", "-ec", WAYS[way]], cwd=workspace, check=True)
    await until(lambda: [one.path for one in told.new()] == [str(workspace / ".npmrc")])
    (workspace / "go").touch()
    outcome = await job
    assert outcome.stdout.text == "1\n1\n"
    assert "Read-only" in outcome.stderr.text
    assert children.is_stale(), "since nobody can tell what was written meanwhile"


async def test_git_s_configuration_can_be_changed_by_its_owner_at_any_time(box):
    """It is not there inside, so nothing has to be guarded while it is replaced."""
    need("git")
    subprocess.run(["git", "init", "-q", box.workspace], check=True)
    children = box.mounts()
    job = asyncio.ensure_future(
        box.bash(children, "touch began; until [ -e go ]; do echo '[core] fsmonitor = x' > .git/config; done")
    )
    await until((box.workspace / "began").exists)
    for name in ("one", "two"):
        subprocess.run(["git", "config", "user.name", name], cwd=box.workspace, check=True)
        text = (box.workspace / ".git/config").read_text()
        assert f"name = {name}" in text
        assert "fsmonitor" not in text
    (box.workspace / "go").touch()
    assert (await job).exit_code == 0, "the job went on all the time"
    assert not children.is_stale()
    said = await box.bash(children, "git config user.name")
    assert said.stdout.text == "two\n"


def test_what_cannot_be_stopped_is_ended(tmp_path):
    """As where there is no control group."""
    (file := tmp_path / ".npmrc").write_text("audit=false\n")
    (listed := tmp_path / "guards").write_bytes(os.fsencode(file) + b"\0")
    guards, ended = FileGuards(str(listed), [], os.getpid()), []
    (tmp_path / "new").write_text("audit=true\n")
    (tmp_path / "new").rename(file)
    guards.restore(lambda: ended.append(file.read_text()))
    assert len(ended) == 1
    assert file.read_text() == "audit=true\n"
    assert [one.path for one in ReplacedFiles(str(listed)).new()] == [str(file)]


async def test_a_folder_that_its_owner_replaces_ends_what_runs(box):
    """Somebody inside may already have opened the new one."""
    need("git")
    repository = box.workspace
    subprocess.run(["git", "init", "-q", repository], check=True)
    children = box.mounts()
    job = asyncio.ensure_future(box.bash(children, "touch began; until [ -e go ]; do sleep 0.01; done"))
    await until((repository / "began").exists)
    os.rename(repository / ".git", repository / "git.old")
    with pytest.raises(Exception, match="keeper"):
        await job
