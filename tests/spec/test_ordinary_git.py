"""Ordinary work with git passes inside, and what it did is there outside."""

from __future__ import annotations

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from git_work import work
from support import need, need_backend
from users import ORDINARY

OWNER = ["-c", "user.name=Owner", "-c", "user.email=owner@example.org"]
LINES = [
    "git config user.email ada@example.org && git config user.name Ada",
    "echo one > file && git add file && git commit -m first",
    "git remote add origin https://example.org/x.git",
    "git branch topic && git branch -u topic",
    "git checkout -q -b draft && git branch -M draft-2 && git status -sb | grep draft-2",
    "git checkout -q --track -b tracking topic",
    "git checkout -q topic && git branch -D draft-2",
    "git worktree add -q tree tracking && git -C tree commit -q --allow-empty -m 'in a tree' && git worktree list",
    "git -C tree status",
    "echo two >> file && git stash && git stash pop && git commit -qam second",
    "git rebase -q tracking && git log --oneline",
    "git gc -q && git fsck",
    "git clone -q $(git rev-parse --show-toplevel) sub && git -C sub status",
    "git init -q --bare bare.git && git remote add local $PWD/bare.git",
    "git push -qu local topic && git fetch -q local",
    "git worktree remove --force tree && git switch -q -c last && git tag v1 && git merge -q tracking",
    "git worktree add -q tree tracking && git worktree remove tree",
    "/usr/bin/git config branch.last.rebase true",
]  # fmt: skip
WHERE = ("fresh", "repository", "below")


@pytest.fixture
def place():
    """A folder that an ordinary user can get to, too."""
    need("git")
    need_backend("bubblewrap", "bubblewrap-pids")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        (top := Path(os.path.realpath(folder)) / "top").mkdir()
        yield top


@pytest.fixture
def mark():
    """A file that only somebody outside can make, whoever that is."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder) / "ran"


def git(folder: Path, *words: str) -> str:
    """What git says outside, as the owner of a folder; a failure fails the test."""
    owner = [] if os.geteuid() else ["setpriv", f"--reuid={folder.stat().st_uid}", "--clear-groups"]
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    ran = subprocess.run([*owner, "git", *OWNER, *words], cwd=folder, capture_output=True, text=True, env=env)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def prepare(place: Path, where: str, *, ordinary: bool) -> tuple[Path, Path]:
    """A workspace, and the folder whose repository it works on."""
    (workspace := place / "sub-folder" if where == "below" else place).mkdir(exist_ok=True)
    if ordinary and os.geteuid() == 0:
        for folder in (place.parent, place, workspace):
            os.chown(folder, ORDINARY, ORDINARY)
    if where != "fresh":
        git(place, "init", "-q", "-b", "main")
        git(place, "commit", "-q", "--allow-empty", "-m", "zero")
        hook = place / ".git" / "hooks" / "pre-commit"
        hook.write_text("#!/bin/sh\necho the hook ran >&2\n")
        hook.chmod(0o755)
    return workspace, place


@pytest.mark.parametrize("ordinary", [False, True], ids=["as who runs the tests", "as an ordinary user"])
@pytest.mark.parametrize("where", WHERE)
def test_E07_git_work_passes(place, where, ordinary):
    workspace, top = prepare(place, where, ordinary=ordinary)
    lines = [*(["git init -q"] if where == "fresh" else []), *LINES]
    answers = work(place.parent, workspace, lines, ordinary=ordinary)
    failed = [(line, *answer) for line, answer in zip(lines, answers, strict=True) if answer[0] != 0]
    assert failed == []
    assert "first" in git(top, "log", "--oneline", "--all")
    assert git(top, "rev-parse", "--abbrev-ref", "HEAD") == "last\n"
    assert git(top, "fsck") is not None
    settings = git(top, "config", "--local", "-l")
    for line in (
        "user.email=ada@example.org",
        "remote.origin.url=https://example.org/x.git",
        "branch.topic.merge=refs/heads/topic",
        "branch.last.rebase=true",
    ):
        assert line in settings
    assert "draft" not in settings
    assert "local" not in settings, "a push would run the hooks of a folder that tools can write"
    if where != "fresh":
        assert "the hook ran" in answers[1][1]
    left = {"commondir", "gitdir", "locked", "config.lock", "config.lock.free"} & set(os.listdir(top / ".git"))
    assert left == set()


@pytest.mark.parametrize("where", WHERE)
def test_E07_git_work_passes_under_landlock_alone(place, where):
    need_backend("landlock")
    workspace, top = prepare(place, where, ordinary=False)
    lines = [*(["git init -q"] if where == "fresh" else []), *LINES]
    answers = work(place.parent, workspace, lines, contained=True)
    failed = [(line, *answer) for line, answer in zip(lines, answers, strict=True) if answer[0] != 0]
    assert failed == []
    assert "user.email=ada@example.org" in git(top, "config", "--local", "-l")


NESTED = [
    "cd sub && git config user.email ada@example.org && git config user.name Ada",
    "cd sub && echo two > file && git add file && git commit -qm inside && git branch topic",
    "cd sub && git checkout -q topic && echo 3 >> file && git stash && git stash pop && git commit -qam three",
    "cd sub && git worktree add -q ../sub-tree && git -C ../sub-tree commit -q --allow-empty -m there",
    "cd sub && git remote add up $PWD/../store.git && git push -q up topic && git fetch -q up && git gc -q && git fsck",
    "cd tree && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'in a tree' && git status",
    "git -c protocol.file.allow=always submodule --quiet add ./store.git module && git -C module log --oneline",
    "git init -q made && git -C made -c user.name=a -c user.email=a@b commit -q --allow-empty -m made",
    "git clone -q sub made/clone && cd made/clone && git log --oneline && git status && cd ../.. && rm -rf made",
    "git -C sub worktree remove ../sub-tree && cp file sub/copied && mv sub/copied copied",
]  # fmt: skip


@pytest.mark.parametrize("how", ["as who runs the tests", "as an ordinary user", "under landlock alone"])
def test_E07_git_work_passes_in_repositories_below(place, how):
    if how == "under landlock alone":
        need_backend("landlock")
    ordinary = how == "as an ordinary user"
    workspace, top = prepare(place, "repository", ordinary=ordinary)
    (sub := workspace / "sub").mkdir()
    if ordinary and os.geteuid() == 0:
        os.chown(sub, ORDINARY, ORDINARY)
    git(sub, "init", "-q", "-b", "main")
    git(sub, "commit", "-q", "--allow-empty", "-m", "zero")
    git(top, "clone", "-q", "--bare", "sub", "store.git")
    git(top, "worktree", "add", "-q", "tree")
    lines = ["echo one > file", *NESTED]
    answers = work(place.parent, workspace, lines, ordinary=ordinary, contained=how == "under landlock alone")
    failed = [(line, *answer) for line, answer in zip(lines, answers, strict=True) if answer[0] != 0]
    assert failed == []
    assert git(sub, "log", "--format=%s").split() == ["three", "inside", "zero"]
    assert git(top / "store.git", "log", "--format=%s", "topic").split()[0] == "three"
    assert "user.email=ada@example.org" in git(sub, "config", "--local", "-l")
    assert "in a tree" in git(top / "tree", "log", "--format=%s")
    assert git(sub, "fsck") is not None


MONITOR = 'printf "[core]\\n\\tfsmonitor = %s\\n" "$PWD/evil"'
HOSTILE = [
    'for n in $(seq 20); do git -C sub config core.fsmonitor "$PWD/evil"; git -C sub status; done',
    f"{MONITOR} > sub/.git/config; {MONITOR} > tree/.git; mkdir sub/.git/hooks; cp evil sub/.git/hooks/pre-commit",
    "mv sub old; mv sub/.git old; rm -rf tree/.git; for n in tree sub; do git init -q $n;"
    " git -C $n config core.fsmonitor $PWD/evil; done",
]


@pytest.mark.parametrize("ordinary", [False, True], ids=["as who runs the tests", "as an ordinary user"])
def test_E05_git_outside_obeys_nothing_in_repositories_below(place, mark, ordinary):
    """While its owner looks at them all the time, and commits there in the end."""
    workspace, top = prepare(place, "repository", ordinary=ordinary)
    (sub := workspace / "sub").mkdir()
    if ordinary and os.geteuid() == 0:
        os.chown(sub, ORDINARY, ORDINARY)
    git(sub, "init", "-q", "-b", "main")
    git(sub, "commit", "-q", "--allow-empty", "-m", "zero")
    git(top, "worktree", "add", "-q", "tree")
    (evil := workspace / "evil").write_text(f"#!/bin/sh\ntouch {mark}\n")
    evil.chmod(0o755)
    with ThreadPoolExecutor() as pool:
        job = pool.submit(work, place.parent, workspace, HOSTILE, ordinary=ordinary)
        while not job.done():
            for folder in (sub, top, top / "tree"):
                git(folder, "status")
        assert len(job.result()) == len(HOSTILE)
    for folder in (sub, top, top / "tree"):
        git(folder, "commit", "-q", "--allow-empty", "-m", "owner's")
    assert not mark.exists()
    git(sub, "config", "core.fsmonitor", str(evil))
    git(sub, "status")
    assert mark.exists(), "or it would prove nothing"


def test_E06_git_says_why_a_repository_below_can_only_be_read_or_cannot_be_moved(place):
    workspace, top = prepare(place, "repository", ordinary=False)
    for name in ("sub", "odd"):
        git(top, "init", "-q", name)
    (workspace / "odd/.git/commondir").write_text(".\n")
    answers = work(place.parent, workspace, ["git -C odd config user.name a", "mv sub elsewhere", "git -C odd status"])
    assert f"{workspace}/odd/.git can only be read inside" in answers[0][1]
    assert "made up otherwise than usual" in answers[0][1]
    assert "neither moved nor removed" in answers[1][1]
    assert (answers[2][0], "[sandbox" in answers[2][1]) == (0, False)


def test_E06_git_says_that_a_repository_below_cannot_be_read_and_all_else_goes_on(place):
    """As an ordinary user, whom the mode of a file stops."""
    workspace, _ = prepare(place, "repository", ordinary=True)
    (sub := workspace / "sub").mkdir()
    if os.geteuid() == 0:
        os.chown(sub, ORDINARY, ORDINARY)
    git(sub, "init", "-q", "-b", "main")
    git(sub, "commit", "-q", "--allow-empty", "-m", "zero")
    (log := sub / ".git/logs/HEAD").chmod(0)
    answers = work(place.parent, workspace, ["git log --oneline && ls -d sub", "git log --oneline"], ordinary=True)
    log.chmod(0o644)
    assert [code for code, _ in answers] == [0, 0]
    assert f"{sub}/.git is not there inside, since not all of it can be read: Permission denied" in answers[0][1]
    assert git(sub, "log", "--format=%s") == "zero\n"


def test_E07_git_worktrees_that_were_added_inside_are_worktrees_outside(place):
    workspace, top = prepare(place, "repository", ordinary=False)
    lines = [
        "git worktree add -q tree",
        "git -C tree -c user.name=a -c user.email=a@b commit -q --allow-empty -m there",
    ]
    assert [code for code, _ in work(place.parent, workspace, lines)] == [0, 0]
    assert "there" in git(workspace / "tree", "log", "--oneline")
    assert str(workspace / "tree") in git(top, "worktree", "list")
    assert "zero" in git(top, "log", "--oneline", "main")


def test_E07_git_in_a_worktree_of_a_repository_elsewhere(place):
    _, top = prepare(place, "repository", ordinary=False)
    git(top, "worktree", "add", "-q", str(place.parent / "tree"))
    lines = ["git config user.email a@b.c; git config user.name a; git commit -q --allow-empty -m there", "git status"]
    assert [code for code, _ in work(place.parent, place.parent / "tree", lines)] == [0, 0]
    assert "there" in git(place.parent / "tree", "log", "--oneline")
    assert "user.email=a@b.c" in git(top, "config", "-l", "--local")


def test_E07_git_settings_that_stay_inside_are_named_once(place):
    workspace, top = prepare(place, "repository", ordinary=False)
    git(top, "remote", "add", "origin", "https://example.org/x.git")
    lines = [
        "git config alias.st status && git st",
        "git remote set-url origin https://elsewhere.example/x.git && git remote get-url origin",
        "git config alias.st",
    ]
    answers = work(place.parent, workspace, lines)
    assert [code for code, _ in answers] == [0, 0, 0]
    assert "[sandbox: git's setting 'alias.st' counts inside only" in answers[0][1]
    assert "'remote.origin.url' counts inside only" in answers[1][1]
    assert "[sandbox" not in answers[2][1]
    assert git(top, "remote", "get-url", "origin") == "https://example.org/x.git\n"
    assert "alias" not in git(top, "config", "-l", "--local")


def test_E07_git_inside_has_what_its_owner_sets_meanwhile(place):
    workspace, top = prepare(place, "repository", ordinary=False)
    lines = ["git config alias.x status; true", "git config user.name; git config alias.x"]
    answers = work(place.parent, workspace, [lines[0], lines[1]])
    assert "\nstatus\n" in answers[1][1]
    git(top, "config", "user.name", "Owner")
    assert "Owner" in work(place.parent, workspace, ["git config user.name"])[0][1]
