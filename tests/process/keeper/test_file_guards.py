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
EVIL = b"fsmonitor"
POLL = """
import os
while not os.path.exists("stop"):
    try:
        with open(".git/config", "a") as file:
            file.write("\\n[core]\\n\\tfsmonitor = /bin/false\\n")
    except OSError:
        continue
    print("wrote", flush=True)
"""
WAYS = {
    "by rename": "cp config new && cat {added} >> new && mv new config",
    "by moving the old one away": "mv config config~ && cat config~ {added} > config && rm config~",
    "by removing it": "cp config saved && rm config && sleep 0.05 && cat saved {added} > config && rm saved",
}


@pytest.fixture
def repository(box):
    need("git")
    subprocess.run(["git", "init", "-q", box.workspace], check=True)
    subprocess.run(["git", "config", "credential.helper", '!f() { echo "x"; }; f'], cwd=box.workspace, check=True)
    (box.folder / "added").write_text("[user]\n\tname = Somebody\n")
    return box.workspace


def save(repository: Path, way: str, added: Path | str) -> None:
    script = WAYS[way].format(added=added)
    subprocess.run(["bash", "-ec", script], cwd=repository / ".git", check=True)


def settings(repository: Path) -> str:
    return subprocess.run(
        ["git", "config", "-f", repository / ".git/config", "-l"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("way", WAYS)
async def test_what_an_editor_saves_stays_and_what_a_job_writes_meanwhile_does_not(box, repository, way):
    children = box.mounts()
    job = asyncio.ensure_future(box.python(children, POLL))
    await until(lambda: children.keeper.is_busy)
    for _ in range(10):
        which = os.stat(repository / ".git/config").st_ino
        save(repository, way, box.folder / "added")
        await until(lambda which=which: is_whole(repository, which) and not children.is_stale())
    await until(lambda: "user.name=Somebody" in settings(repository))
    (repository / "stop").touch()
    outcome = await job
    assert outcome.exit_code == 0, "the job went on all the time"
    assert "credential.helper=!f()" in settings(repository), "what was there before is its owner's"
    moved = children.sandbox.sweep(at_end=True)
    assert bool(moved) == any((repository / ".git").glob("config.from-sandbox*")), "it is said where it went"
    assert EVIL not in (repository / ".git/config").read_bytes()


def is_whole(repository: Path, before: int) -> bool:
    """Whether the configuration is another file than before, with nothing in it that a job wrote."""
    config = repository / ".git/config"
    try:
        return os.stat(config).st_ino != before and EVIL not in config.read_bytes()
    except OSError:
        return False


async def test_afterwards_it_is_as_guarded_as_before(box, repository):
    children = box.mounts()
    wait = 'touch began; until [ -e go ]; do :; done; echo >> .git/config; echo "$?"; grep -c name .git/config'
    job = asyncio.ensure_future(box.bash(children, wait))
    await until((repository / "began").exists)
    save(repository, "by rename", box.folder / "added")
    await until(lambda: not children.is_stale())
    (repository / "go").touch()
    outcome = await job
    assert outcome.stdout.text == "1\n1\n"
    assert "Read-only" in outcome.stderr.text


async def test_git_outside_is_refused_while_something_runs_and_not_when_nothing_does(box, repository):
    children = box.mounts()
    config = ["git", "config", "user.name", "Somebody"]
    job = asyncio.ensure_future(box.bash(children, "touch began; until [ -e go ]; do sleep 0.01; done"))
    await until((repository / "began").exists)
    refused = subprocess.run(config, cwd=repository, capture_output=True, text=True)
    (repository / "go").touch()
    await job
    assert "could not lock" in refused.stderr
    for name in ("one", "two"):
        subprocess.run([*config[:-1], name], cwd=repository, check=True)
        said = await box.bash(children, "git config user.name; echo x >> .git/config; echo x > .git/config.lock")
        assert said.stdout.text == f"{name}\n"
        assert said.stderr.text.count("Read-only") == 2, "guarded again, both of them"
    await children.aclose()
    assert not {"config.lock", "config.lock.free", "commondir"} & set(os.listdir(repository / ".git"))


async def test_two_applications_hold_the_lock_together(box, repository):
    one, two = box.mounts(), box.mounts()
    await box.bash(one, "true")
    job = asyncio.ensure_future(box.bash(two, "touch began; until [ -e go ]; do sleep 0.01; done"))
    await until((repository / "began").exists)
    said = await box.bash(one, "echo x > .git/config.lock; rm -f .git/config.lock")
    assert said.stderr.text.count("Read-only") + said.stderr.text.count("busy") == 2
    assert (repository / ".git/config.lock").exists(), "the other one still holds it"
    (repository / "go").touch()
    await job
    assert not (repository / ".git/config.lock").exists()
    await one.aclose()
    assert "Read-only" in (await box.bash(two, "echo x > .git/config.lock")).stderr.text


def test_what_cannot_be_stopped_is_ended(tmp_path):
    """As where there is no control group."""
    (git := tmp_path / "work" / ".git").mkdir(parents=True)
    (config := git / "config").write_text("[core]\n\tbare = false\n")
    (listed := tmp_path / "guards").write_bytes((os.fsencode(config) + b"\0") * 2)
    guards, ended = FileGuards(str(listed), [], os.getpid()), []
    (git / "new").write_text("[core]\n\tbare = false\n\tpager = evil\n")
    (git / "new").rename(config)
    guards.restore(lambda: ended.append(config.read_text()))
    assert len(ended) == 1
    assert "evil" not in config.read_text()
    assert [os.path.basename(one.moved_to) for one in ReplacedFiles(str(listed)).new()] == ["config.from-sandbox"]


async def test_a_folder_that_its_owner_replaces_ends_what_runs(box, repository):
    """Somebody inside may already have opened the new one."""
    children = box.mounts()
    job = asyncio.ensure_future(box.bash(children, "touch began; until [ -e go ]; do sleep 0.01; done"))
    await until((repository / "began").exists)
    os.rename(repository / ".git/hooks", repository / ".git/hooks.old")
    with pytest.raises(Exception, match="keeper"):
        await job
