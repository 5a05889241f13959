"""Repositories beside the one in the workspace's root: worktrees elsewhere, one above, one that is not there yet."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from git_work import work
from support import need, need_backend, until
from users import ORDINARY

pytestmark = pytest.mark.anyio
OWNER = ["-c", "user.name=Owner", "-c", "user.email=owner@example.org"]
MONITOR = "printf '[core]\\n\\tbare = false\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = %s\\n' \"$EVIL\""
WAIT = "touch planted; until [ -e go ]; do sleep 0.01; done"


def git(folder: Path, *words: str, check: bool = True) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    ran = subprocess.run(["git", *OWNER, *words], cwd=folder, capture_output=True, text=True, env=env, timeout=60)
    assert not check or ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def evil(box) -> Path:
    """Exists once a program of the workspace ran outside."""
    need("git")
    (program := box.workspace / "evil").write_text(f"#!/bin/sh\ntouch {box.folder}/ran\n")
    program.chmod(0o755)
    box.env |= {b"EVIL": os.fsencode(program), b"GIT_CONFIG_GLOBAL": b"/dev/null"}
    return box.folder / "ran"


def make_repository(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")


async def test_settings_of_a_worktree_elsewhere_cannot_be_planted(box, evil):
    """Also those that git obeys because its owner wants settings for each worktree."""
    make_repository(box.workspace)
    git(box.workspace, "config", "extensions.worktreeConfig", "true")
    git(box.workspace, "worktree", "add", "-q", str(tree := box.folder / "tree"))
    children = box.mounts()
    plant = f"{MONITOR} | tee .git/worktrees/tree/config.worktree .git/config.worktree"
    job = asyncio.ensure_future(box.bash(children, f"{plant}; {WAIT}; {plant}"))
    await until((box.workspace / "planted").exists)
    for folder in (tree, box.workspace):
        git(folder, "status")
    (box.workspace / "go").touch()
    assert (await job).exit_code == 0
    children.sandbox.sweep(at_end=True)
    await children.aclose()
    for folder in (tree, box.workspace):
        git(folder, "status")
    assert not evil.exists()


@pytest.mark.parametrize("where", ["of which the workspace is a worktree", "above the workspace"])
async def test_nothing_is_written_or_removed_through_links_in_a_repository_elsewhere(box, evil, where):
    (docs := box.folder / "docs").mkdir()
    (docs / "file").write_text("precious")
    if where == "above the workspace":
        main, workspace = box.folder, box.workspace
        make_repository(main)
    else:
        (main := box.folder / "main").mkdir()
        make_repository(main)
        git(main, "worktree", "add", "-q", str(workspace := box.folder / "tree"))
    backend = need_backend("bubblewrap", "bubblewrap-pids")
    children = box.children(backend, places={"workspace": [str(workspace)]})
    own = f"{main}/.git"
    plant = f"cd {own}; mkdir -p worktrees; for n in index logs/HEAD COMMIT_EDITMSG packed-refs refs/heads/new; do"
    plant += f" rm -f $n; ln -s {docs}/file $n; done; ln -sfn {docs} worktrees/evil; ls -l worktrees; cd {workspace}"
    job = asyncio.ensure_future(box.bash(children, f"{plant}; {WAIT}; {plant}", cwd=workspace))
    await until((workspace / "planted").exists)
    use_everything(main)
    (workspace / "go").touch()
    assert (await job).stdout.text.count("evil ->") == 2
    children.sandbox.sweep(at_end=True)
    await children.aclose()
    use_everything(main)
    assert [path.name for path in docs.iterdir()] == ["file"]
    assert (docs / "file").read_text() == "precious"
    assert not [path for path in (main / ".git").rglob("*") if path.is_symlink()]


def use_everything(folder: Path) -> None:
    for words in (
        "commit -q --allow-empty -m x",
        "worktree prune",
        "add -A .git/..",
        "pack-refs --all",
        "branch -f new",
    ):
        git(folder, *words.split(), check=False)


BARE = f"""mkdir -p objects refs; echo ref: refs/heads/main > HEAD
    {MONITOR} > config; printf '\\tworktree = %s\\n' "$PWD" >> config"""


async def test_a_workspace_without_a_repository_is_not_made_one_by_what_lies_in_it(box, evil):
    """Neither while the call runs; and nothing is left of what keeps git from it."""
    children = box.mounts()
    job = asyncio.ensure_future(box.bash(children, f"{BARE}; {WAIT}; ls; {BARE}"))
    await until((box.workspace / "planted").exists)
    git(box.workspace, "status", check=False)
    (box.workspace / "go").touch()
    assert (await job).stdout.text.split() == ["HEAD", "config", "evil", "go", "objects", "planted", "refs"]
    assert children.sandbox.sweep(at_end=True), "it is said"
    await children.aclose()
    assert not (box.workspace / ".git").exists()
    git(box.workspace, "status", check=False)
    assert not evil.exists()


async def test_what_lies_in_it_would_be_obeyed_where_nothing_keeps_git_from_it(box, evil):
    env = os.environ | {name.decode(): value.decode() for name, value in box.env.items()}
    subprocess.run(["bash", "-c", BARE], cwd=box.workspace, env=env, check=True)
    git(box.workspace, "status", check=False)
    assert evil.exists(), "or the test above would prove nothing"


async def test_a_repository_that_its_owner_makes_meanwhile_stays_and_is_there_inside(box, evil):
    children = box.mounts()
    await box.bash(children, "true")
    make_repository(box.workspace)
    said = await box.bash(
        children, "git log --format=%s; git config user.name In; git config user.email i@n; git rm -q x"
    )
    assert said.stdout.text == "one\n"
    await box.bash(children, "git commit -q --allow-empty -m two")
    await children.aclose()
    assert git(box.workspace, "log", "--format=%s") == "two\none\n"
    assert not evil.exists()


async def test_two_applications_in_a_fresh_folder_have_one_repository(box, evil):
    one, two = box.mounts(), box.mounts()
    await box.bash(two, "true")
    await box.bash(one, "git init -q -b main; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one")
    await one.aclose()
    assert (await box.bash(two, "git log --format=%s")).stdout.text == "one\n"
    await two.aclose()
    assert git(box.workspace, "log", "--format=%s") == "one\n"
    assert not evil.exists()


def test_a_folder_that_a_tool_closed_before_cannot_be_opened_where_the_owners_repository_is_in_it():
    """As an ordinary user, who cannot tell what is there when the sandbox is built."""
    need("git")
    need_backend("bubblewrap", "bubblewrap-pids")
    with tempfile.TemporaryDirectory() as name:
        deep = (workspace := (place := Path(os.path.realpath(name))) / "work") / "sub" / "deep"
        deep.mkdir(parents=True)
        git(deep, "init", "-q")
        for folder in (place, workspace, workspace / "sub", *deep.rglob("*"), deep):
            folder.chmod(0o755)
            if os.geteuid() == 0:
                os.chown(folder, ORDINARY, ORDINARY)
        (workspace / "sub").chmod(0)
        lines = [
            "chmod 755 sub; git config -f sub/deep/.git/config core.fsmonitor evil",
            "mv sub elsewhere",
            "echo > new",
        ]
        ((first, said), (second, _), (third, _)) = work(place, workspace, lines, ordinary=True)
        assert (first != 0, second != 0, third) == (True, True, 0), said
        assert (workspace / "sub").stat().st_mode & 0o777 == 0
        (workspace / "sub").chmod(0o755)
        assert "fsmonitor" not in (deep / ".git" / "config").read_text()


def test_a_repository_in_a_folder_that_cannot_be_listed_is_disarmed():
    """As an ordinary user, whom the mode of a folder stops."""
    need("git")
    need_backend("bubblewrap", "bubblewrap-pids")
    with tempfile.TemporaryDirectory() as name:
        (workspace := (place := Path(os.path.realpath(name))) / "work").mkdir()
        for folder in (place, workspace):
            folder.chmod(0o755)
            if os.geteuid() == 0:
                os.chown(folder, ORDINARY, ORDINARY)
        line = (
            "mkdir -p d/r; cd d/r; git init -q .; git -c user.name=a -c user.email=b commit -q --allow-empty -m a;"
            f" git config core.fsmonitor 'touch {place}/ran; false'; cp /bin/true .git/hooks/pre-commit;"
            " chmod 0311 .git/hooks .."
        )
        ((code, said),) = work(place, workspace, [line], ordinary=True)
        (workspace / "d").chmod(0o755)
        assert (code, "would be obeyed outside" in said) == (0, True), said
        assert "fsmonitor" not in (workspace / "d/r/.git/config").read_text()
        assert not (workspace / "d/r/.git/hooks/pre-commit").exists()
