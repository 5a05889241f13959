"""A git client outside, which runs all the time as editors do, while scripts inside use every freedom that git has."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from git_client import COMMON, OBEYED, Client, git, look
from support import need, until

pytestmark = pytest.mark.anyio
TRIED = {
    "more than one line": "git config user.name $'a\\n[core]\\n\\tfsmonitor = '\"$EVIL\"",
    "a name with more than one line": (
        "printf '[user]\\n\\tname = \"x\\\\n[core]\\\\n\\\\tfsmonitor = %s\"\\n' \"$EVIL\" >> $p/config"
    ),
    "a remote with a bracket": "git config \"remote.a\\\"]b.url\" https://x/y; git config 'remote.a\"]b.fetch' x",
    "a quote": "printf '[branch \"a\\\\\"]\\\\n[core\"]\\nremote = .\\nmerge = refs/heads/x\\n' >> $p/config",
    "carriage returns": "printf '[user]\\r\\n\\tname = x\\r[core]\\rfsmonitor = %s\\r\\n' \"$EVIL\" >> $p/config",
    "a continued line": "printf '[user]\\n\\tname = x\\\\\\n[core]\\nfsmonitor = %s\\n' \"$EVIL\" >> $p/config",
    "a program as an address": "git remote add e \"ext::$EVIL\"; git config branch.main.remote e",
    "an address of a program": "git config remote.origin.url \"ext::$EVIL\"; git config remote.e.url \"ext::$EVIL\"",
    "an option as an address": "git config remote.e.url --upload-pack=$EVIL; git config branch.main.remote e",
    "an address rewritten": "git config url.\"ext::$EVIL \".insteadOf /; git config url.ext::x.pushInsteadOf /",
    "a legacy remote": "mkdir -p .git/remotes .git/branches; echo \"URL: ext::$EVIL\" > .git/remotes/origin",
    "a link to another configuration": (
        "evil > i; ln -sf $PWD/i $p/config; ln -sf $PWD/i .git/config"
    ),
    "the configuration by its other name": (
        "for c in $p/worktrees/*/config .git/worktrees/*/config; do evil >> $c;"
        " done; for h in $p/worktrees/*/hooks; do cp \"$EVIL\" $h/pre-commit; done"
    ),
    "the common folder by its other name": (
        "for c in $p/worktrees/*/commondir .git/worktrees/*/commondir; do rm -f $c; echo $p > $c; done"
    ),
    "the configuration of a worktree": (
        "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor \"$EVIL\";"
        " for c in .git $p .git/worktrees/*; do evil > $c/config.worktree; done"
    ),
    "a worktree that is elsewhere": (
        "git config core.fsmonitor \"$EVIL\"; for g in .git/worktrees/*; do echo $PWD/nowhere > $g/gitdir; done;"
        " echo \"gitdir: $p\" > tree/.git"
    ),
    "alternates": "echo $PWD/elsewhere > .git/objects/info/alternates; git config core.alternateRefsCommand \"$EVIL\"",
    "links for folders": "rm -rf .git/info; ln -s $PWD .git/info; mv .git/hooks .git/h; ln -s $PWD .git/hooks",
    "everything removed": "git config core.fsmonitor \"$EVIL\"; rm -rf $p/* .git/worktrees .git/info 2>/dev/null; true",
    "a pointer to the folder of git inside": (
        'git config core.fsmonitor "$EVIL"; mkdir s; echo "gitdir: $PWD/.git" > s/.git'
    ),
    "a link to it": 'git config core.fsmonitor "$EVIL"; mkdir s; ln -s "$PWD/.git" s/.git',
    "a common folder that is it": (
        'git config core.fsmonitor "$EVIL"; git init -q s; cp .git/HEAD s/.git; echo "$PWD/.git" > s/.git/commondir'
    ),
    "a loop": (
        "for n in $(seq 300); do evil > $p/config;"
        " git config -f $p/config user.name x$n; ln -sf $PWD/i $p/config; rm -f $p/config; done"
    ),
}  # fmt: skip


@pytest.fixture
def repository(box):
    """A repository with a worktree, a remote, and a program that leaves a mark where nobody inside can."""
    need("git")
    work, env = box.workspace, os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    script = """git init -q -b main . && git config user.name Owner && git config user.email o@o && echo 1 > file
        git add file && git commit -qm one && git worktree add -q tree && git clone -q --bare . ../origin.git
        git remote add origin ../origin.git && git fetch -q"""
    subprocess.run(["bash", "-ec", script], cwd=work, check=True, env=env)
    (evil := work / "evil").write_text(f"#!/bin/sh\ntouch {box.folder}/ran\n")
    evil.chmod(0o755)
    box.env |= {b"EVIL": os.fsencode(evil), b"GIT_CONFIG_GLOBAL": b"/dev/null"}
    return work


def obey_everything(work: Path) -> None:
    """What an owner does next: look, and commit, wherever there is a repository."""
    for folder in (work, work / "tree", *(path.parent for path in work.glob("*/.git"))):
        look(folder)
        git(folder, "commit", "--allow-empty", "-m", "x")


@pytest.mark.parametrize("what", OBEYED)
async def test_each_of_these_runs_something_where_nothing_keeps_it_in(box, repository, what):
    env = os.environ | {name.decode(): value.decode() for name, value in box.env.items()}
    subprocess.run(["bash", "-c", COMMON + OBEYED[what]], cwd=repository, env=env, capture_output=True)
    obey_everything(repository)
    assert (box.folder / "ran").exists(), "or the test below would prove nothing"


@pytest.mark.parametrize("what", {**OBEYED, **TRIED})
async def test_nothing_that_is_written_inside_runs_outside(box, repository, what):
    children = box.mounts()
    await box.bash(children, "true")
    with Client(repository, repository / "tree") as client:
        await box.bash(children, COMMON + {**OBEYED, **TRIED}[what])
        children.sandbox.sweep(at_end=True)
        seen = client.rounds
        async with asyncio.timeout(60):
            while client.rounds < seen + 2:
                await asyncio.sleep(0.01)
        await children.aclose()
    obey_everything(repository)
    assert not (box.folder / "ran").exists()


NESTED = {
    "a pointer to temporary files": (
        'git init -q /tmp/t; git -C /tmp/t config core.fsmonitor "$EVIL"; mkdir s;'
        ' echo "gitdir: $TEMPORARY/t/.git" > s/.git'
    ),
    "a clone": 'git clone -q . s; git -C s config core.fsmonitor "$EVIL"; cp "$EVIL" s/.git/hooks/pre-commit',
    "a worktree that was added": (
        'git worktree add -q s; evil > .git/worktrees/s/config.worktree;'
        ' mkdir c; cp -r .git/. c; evil > c/config; echo ../../../c > .git/worktrees/s/commondir'
    ),
    "hooks by a link": (
        'git clone -q . s; mkdir h; cp "$EVIL" h/pre-commit; cp "$EVIL" h/post-index-change; rm -r s/.git/hooks;'
        ' ln -s ../../h s/.git/hooks'
    ),
    "pointers that end in a space": (
        'git clone -q . s; mkdir "g " "c "; mv s/.git/objects s/.git/refs "c /"; mv s/.git/HEAD s/.git/index "g /";'
        ' rm -r s/.git; printf "gitdir: ../g \\n" > s/.git; printf "../c \\n" > "g /commondir"; evil > "c /config"'
    ),
    "pointers that hold a NUL": (
        'git clone -q . s; mkdir g c; mv s/.git/objects s/.git/refs c; mv s/.git/HEAD s/.git/index g;'
        ' rm -r s/.git; printf "gitdir: ../g\\0x\\n" > s/.git; printf "../c\\0x\\n" > g/commondir; evil > c/config'
    ),
    "hooks with names too long to be moved": (
        'git clone -q . s; for n in 1 2 3 4 5 6 7 8; do : > s/.git/hooks/$(printf "%0250d" $n); done;'
        ' cp "$EVIL" s/.git/hooks/pre-commit; cp "$EVIL" s/.git/hooks/post-index-change'
    ),
    "a bare repository": (
        'git init -q --bare s; git -C s config core.fsmonitor "$EVIL"; git -C s config core.bare false;'
        ' git -C s config core.worktree "$PWD/s"; cp "$EVIL" s/hooks/pre-commit'
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NESTED)
async def test_nor_does_a_repository_below_after_the_call(box, repository, what):
    children = box.mounts()
    await box.bash(children, "true")
    box.env[b"TEMPORARY"] = os.fsencode(children.sandbox.common.temporary["/tmp"])
    await box.bash(children, COMMON + NESTED[what])
    assert children.sandbox.sweep(at_end=True), "and it is said what was done"
    obey_everything(repository)
    look(repository / "s")
    assert not (box.folder / "ran").exists()


FRESH = {
    "templates": 'mkdir -p t/hooks; cp "$EVIL" t/hooks/pre-commit; evil > t/config;'
    " git init -q --template=$PWD/t",
    "settings": 'git init -q; git config core.fsmonitor "$EVIL"; git config alias.status "!$EVIL"',
    "by hand": 'git init -q; evil | tee .git/config .git/config.worktree;'
    ' cp "$EVIL" .git/hooks/pre-commit; mv .git moved; git init -q',
}  # fmt: skip


@pytest.mark.parametrize("what", FRESH)
async def test_nor_does_one_that_is_made_where_there_was_none(box, what):
    need("git")
    (evil := box.workspace / "evil").write_text(f"#!/bin/sh\ntouch {box.folder}/ran\n")
    evil.chmod(0o755)
    box.env |= {b"EVIL": os.fsencode(evil), b"GIT_CONFIG_GLOBAL": b"/dev/null"}
    children = box.mounts()
    await box.bash(children, "true")
    with Client(box.workspace):
        await box.bash(children, COMMON + FRESH[what])
        children.sandbox.sweep(at_end=True)
        await children.aclose()
    look(box.workspace)
    git(box.workspace, "-c", "user.name=o", "-c", "user.email=o@o", "commit", "--allow-empty", "-m", "x")
    assert not (box.folder / "ran").exists()


async def test_a_repository_that_is_put_together_of_what_an_earlier_call_left_is_disarmed(box, repository):
    first = box.mounts()
    await box.bash(first, "true")
    await box.bash(first, COMMON + "git clone -q . t; mv t/.git s; mv s/HEAD h; evil > s/config")
    first.sandbox.sweep(at_end=True)
    await first.aclose()
    await asyncio.sleep(0.1)  # the span of the first ends, and what it wrote is older than the second
    second = box.mounts()
    await box.bash(second, "true")
    await box.bash(second, "mkdir d; mv s d/.git; mv h d/.git/HEAD")
    assert second.sandbox.sweep(at_end=True)
    obey_everything(repository)
    look(repository / "d")
    assert not (box.folder / "ran").exists()
    await second.aclose()


LINKS = {
    "logs/HEAD": ("commit", "--allow-empty", "-m", "x"),
    "index": ("add", "-A"),
    "COMMIT_EDITMSG": ("commit", "--allow-empty", "-m", "x"),
    "worktrees/evil": ("worktree", "prune"),
    "packed-refs": ("pack-refs", "--all"),
    "refs/heads/new": ("branch", "new"),
}


@pytest.mark.parametrize("name", LINKS)
async def test_git_writes_and_removes_nothing_through_a_link_that_was_planted(box, repository, name):
    """Neither while the call runs that plants it nor after it."""
    elsewhere = box.folder / "elsewhere"
    (elsewhere / "docs").mkdir(parents=True)
    (elsewhere / "docs" / "file").write_text("precious")
    target = elsewhere / "docs" if name == "worktrees/evil" else elsewhere / "docs" / "file"
    plant = f"mkdir -p .git/worktrees; rm -f .git/{name}; ln -s {target} .git/{name}; ls -l .git/{name}"
    children = box.mounts()
    job = asyncio.ensure_future(
        box.bash(children, f"{plant}; touch planted; until [ -e go ]; do sleep 0.01; done; {plant}")
    )
    await until((repository / "planted").exists)
    git(repository, "-c", "user.name=o", "-c", "user.email=o@o", *LINKS[name])
    (repository / "go").touch()
    assert (await job).stdout.text.count("->") == 2
    children.sandbox.sweep(at_end=True)
    git(repository, "-c", "user.name=o", "-c", "user.email=o@o", *LINKS[name])
    await children.aclose()
    assert [path.name for path in elsewhere.rglob("*")] == ["docs", "file"]
    assert (elsewhere / "docs" / "file").read_text() == "precious"
    assert not [path for path in (repository / ".git").rglob("*") if path.is_symlink()]
