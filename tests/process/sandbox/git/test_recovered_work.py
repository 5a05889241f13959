"""What git inside did and could not be handed over at the end is not lost: it is kept, and one command gets it."""

from __future__ import annotations

import subprocess

import pytest

from owners_git import WRITE, git
from support import need
from toolyard.cli.doctor.checks import check_recovered_work
from toolyard.process.sandbox.git import git_files, workspace_repositories
from toolyard.process.sandbox.git.outgoing.recovered import MOST_KEPT, keep_work, kept_names, recovered_work

pytestmark = pytest.mark.anyio
COMMIT = f"{WRITE} echo precious > new; git add new; git commit -qm work"


@pytest.fixture
def repository(box, monkeypatch):
    need("git")
    monkeypatch.setenv("XDG_STATE_HOME", str(box.folder / "state"))
    git(box.workspace, "init", "-q", "-b", "main")
    (box.workspace / "file").write_text("one\n")
    git(box.workspace, "add", "file")
    git(box.workspace, "commit", "-qm", "one")
    return box.workspace


async def end_after(box, script: str) -> None:
    children = box.mounts()
    outcome = await box.bash(children, f"set -e; {script}")
    assert outcome.exit_code == 0, outcome.stderr.text
    await children.aclose()


def get(repository) -> None:
    """Do as we are told."""
    (one,) = recovered_work()
    (row,) = check_recovered_work()
    assert (one.git, row.hint) == (str(repository / ".git"), one.command)
    subprocess.run(["bash", "-c", one.command], check=True, capture_output=True, timeout=60)
    assert recovered_work() == []


async def test_where_nothing_can_be_checked_outside_it_is_kept(box, repository, monkeypatch):
    """As where git is only in a folder that tools can write."""
    monkeypatch.setattr(workspace_repositories, "git_program", str)
    await end_after(box, COMMIT)
    assert git(repository, "log", "--format=%s") == "one\n"
    get(repository)
    assert git(repository, "show", "refs/recovered/heads/main:new") == "precious\n"
    assert git(repository, "fsck") is not None


async def test_where_there_are_more_files_than_can_be_compared_the_branch_is_kept(box, repository, monkeypatch):
    monkeypatch.setattr(git_files, "MOST_FILES", 60)
    await end_after(box, f"{COMMIT}; for n in $(seq 80); do git branch b$n; done")
    assert git(repository, "log", "--format=%s") == "one\n"
    get(repository)
    assert git(repository, "log", "--format=%s", "refs/recovered/heads/main") == "work\none\n"


async def test_what_is_made_in_the_place_of_one_that_is_too_large_is_kept(box, repository, monkeypatch):
    for number in range(30):
        git(repository, "branch", f"b{number}")
    monkeypatch.setattr(git_files, "MOST_FILES", 20)
    await end_after(box, f"git init -q -b main; {COMMIT}")
    assert git(repository, "log", "--format=%s") == "one\n"
    get(repository)
    assert git(repository, "log", "--format=%s", "refs/recovered/heads/main") == "work\n"


async def test_a_branch_of_which_not_all_is_there_is_kept_as_far_as_it_is(box, repository):
    lose = "b=$(git rev-parse HEAD:lost); rm -f .git/objects/${b:0:2}/${b:2}"
    await end_after(box, f"{COMMIT}; echo gone > lost; git add lost; git commit -qm more; {lose}")
    (one,) = recovered_work()
    assert git(repository, "log", "--format=%s") == "one\n"
    assert git(repository, f"--git-dir={one.place}", "log", "--format=%s", "main") == "more\nwork\none\n"
    assert git(repository, f"--git-dir={one.place}", "show", "main:new") == "precious\n"


async def test_what_is_kept_holds_nothing_that_git_would_obey(box, repository, monkeypatch):
    monkeypatch.setattr(workspace_repositories, "git_program", str)
    program = f"'touch {box.folder}/ran'"
    evil = f"git config core.fsmonitor {program}; git config uploadpack.packObjectsHook {program}"
    links = "mkdir -p .git/objects/ab; ln -s /etc/passwd .git/objects/ab/$(printf '%038d' 0)"
    await end_after(box, f"{COMMIT}; {evil}; {links}")
    (one,) = recovered_work()
    get(repository)
    assert not (box.folder / "ran").exists()
    assert "passwd" not in one.place


async def test_what_was_handed_over_is_not_kept_again(box, repository):
    await end_after(box, f"{COMMIT}; git checkout -q --detach; git tag v1; git branch topic")
    assert recovered_work() == []
    assert git(repository, "log", "--format=%s", "topic") == "work\none\n"


async def test_a_branch_that_was_changed_on_both_sides_has_its_place_in_the_repository(box, repository):
    children = box.mounts()
    await box.bash(children, COMMIT)
    git(repository, "commit", "-q", "--allow-empty", "-m", "owner's")
    await children.aclose()
    assert recovered_work() == []
    assert git(repository, "log", "--format=%s", "refs/from-sandbox/heads/main") == "work\none\n"


async def test_only_the_latest_are_kept(box, repository):
    commit = git(repository, "rev-parse", "HEAD").strip()
    changed = f"{int(commit[0], 16) ^ 1:x}{commit[1:]}"
    for _ in range(MOST_KEPT + 3):
        assert keep_work(str(repository / ".git"), {"refs/heads/x": changed}, str(repository / ".git/objects"), "")
    assert [name[:6] for name in kept_names()] == [f"{number:06}" for number in range(4, MOST_KEPT + 4)]
