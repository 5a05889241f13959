"""Whatever is written into the git folder inside: the owner outside loses no commit, and is not deceived."""

from __future__ import annotations

import asyncio

import pytest

from owners_git import WRITE, git, inside
from support import need, until

pytestmark = pytest.mark.anyio


LOSES = {
    "an end of history": "git rev-parse HEAD > .git/shallow",
    "a line that is none": "echo ref: bad > .git/shallow",
    "no log": "rm -r .git/logs",
    "a log of nothing": "echo garbage > .git/logs/HEAD",
    "nothing but HEAD": "rm -rf .git/logs .git/refs/* .git/packed-refs; echo ref: refs/heads/none > .git/HEAD",
    "a branch elsewhere": "git branch -f other HEAD~1; git checkout -q --detach HEAD~2; git branch -D main",
    "no stash": "git stash clear",
    "a tree for a branch": "git rev-parse HEAD^{tree} > .git/refs/heads/main",
    "a branch for a branch": "echo ref: refs/heads/other > .git/refs/heads/main",
    "links of branches": "for n in 1 2; do echo ref: refs/heads/l$((3-n)) > .git/refs/heads/l$n; done",
    "a merge of nothing": "echo zzzz > .git/MERGE_HEAD; git rev-parse HEAD^{tree} > .git/CHERRY_PICK_HEAD",
    "a file for all branches": "c=$(git rev-parse HEAD); rm -rf .git/refs/heads; echo $c > .git/refs/heads",
    "no end of packed refs": "truncate -s 300M .git/packed-refs; rm -rf .git/refs/heads/*",
}


@pytest.mark.parametrize("what", LOSES)
async def test_the_owner_loses_no_commit_and_no_stash(box, work, what):
    """However soon unused objects are removed outside, and nobody has a log of before."""
    for number in range(3):
        git(work, "commit", "-q", "--allow-empty", "-m", f"of the owner {number}")
    (work / "file").write_text("stashed\n")
    git(work, "stash", "-q")
    ours = git(work, "rev-parse", "main", "stash").split()
    children = box.mounts()
    await box.bash(children, LOSES[what])
    children.sandbox.sweep(at_end=True)
    await children.aclose()
    git(work, "gc", "-q", "--prune=now")
    assert [git(work, "rev-list", "--count", commit) for commit in ours] == ["4\n", "6\n"]
    git(work, "fsck", "--strict")
    git(work, "status")


async def test_each_of_two_conflicts_is_kept_and_said(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    said = []
    for number in ("1", "2"):
        script = f"{WRITE} git commit -q --allow-empty -m in{number}; touch done{number};"
        job = asyncio.ensure_future(box.bash(children, f"{script} until [ -e go{number} ]; do sleep 0.01; done"))
        await until((work / f"done{number}").exists)
        git(work, "commit", "-q", "--allow-empty", "-m", f"out{number}")
        (work / f"go{number}").touch()
        await job
        await children.sandbox.exchange_repositories()
        said += [one for one in children.sandbox.take_notes() if "refs/heads/main" in one]
    assert len(said) == 2
    assert git(work, "log", "-1", "--format=%s", "refs/from-sandbox/heads/main") == "in1\n"
    assert git(work, "log", "-1", "--format=%s", "refs/from-sandbox/heads/main-2") == "in2\n"
    assert git(work, "log", "--format=%s", "main") == "out2\nout1\none\n"


async def test_a_fetch_of_only_the_last_commit_travels_and_so_does_the_rest_later(box, work):
    (other := work / "far").mkdir()
    git(other, "init", "-q", "-b", "main", ".")
    for number in range(3):
        git(other, "commit", "-q", "--allow-empty", "-m", f"far {number}")
    children = box.mounts()
    fetch = "git -c protocol.file.allow=always fetch -q file://$PWD/far main:refs/remotes/far/main"
    await inside(box, children, f"{fetch} --depth 1")
    assert git(work, "log", "--format=%s", "far/main") == "far 2\n"
    await inside(box, children, f"{fetch} --depth 2")
    assert git(work, "log", "--format=%s", "far/main") == "far 2\nfar 1\n"
    await inside(box, children, f"{fetch} --unshallow")
    assert git(work, "log", "--format=%s", "far/main") == "far 2\nfar 1\nfar 0\n"
    assert not (work / ".git" / "shallow").exists()
    git(work, "fsck", "--strict")


async def test_a_rebase_that_waits_is_gone_on_with_outside_unless_it_would_run_something(box, work):
    children = box.mounts()
    script = f"{WRITE} git checkout -q other; echo o > file; git commit -qam o; git checkout -q main; echo m > file;"
    await inside(box, children, f"{script} git commit -qam m; ! git rebase -q other >&2")
    (work / "file").write_text("both\n")
    git(work, "add", "file")
    git(work, "-c", "core.editor=true", "rebase", "--continue")
    assert git(work, "log", "--format=%s") == "m\no\none\n"
    await inside(box, children, "true")
    notes = await inside(box, children, "! GIT_EDITOR=true git rebase -q -x 'touch ran' -x false HEAD~1; rm -f ran")
    assert any("rebase-merge/done stays inside" in one for one in notes), notes
    assert not (work / ".git" / "rebase-merge").exists()


async def test_what_hides_changes_from_the_owner_stays_inside(box, work):
    children = box.mounts()
    script = "git update-index --assume-unchanged file; echo evil > file; echo hidden >> .git/info/exclude"
    notes = await inside(box, children, f"{script}; touch hidden")
    assert any("info/exclude stays inside" in one for one in notes)
    assert git(work, "status", "-s") == " M file\n?? hidden\n"
    git(work, "checkout", "-q", "file")
    await inside(box, children, "git update-index --skip-worktree file; echo evil > file")
    assert git(work, "status", "-s") == " M file\n?? hidden\n"


async def test_a_worktree_elsewhere_stays_as_it_is(box, work):
    place = box.folder / "elsewhere"
    git(work, "worktree", "add", "-q", str(place), "other")
    children = box.mounts()
    script = "w=$PWD/.git/worktrees/elsewhere; b=$(echo evil | git hash-object -w --stdin);"
    script += "GIT_INDEX_FILE=$w/index git update-index --cacheinfo 100644,$b,file; git rev-parse HEAD > $w/HEAD"
    assert len(await inside(box, children, script)) == 2
    await children.aclose()
    assert git(place, "status", "-sb") == "## other\n"
    children = box.mounts()
    assert await inside(box, children, "git branch -m other another") == []
    assert git(place, "status", "-sb") == "## another\n", "but its branch may get another name"


async def test_an_object_that_was_wrong_once_is_handed_over_when_it_is_right(box, work):
    children = box.mounts()
    script = "echo data > new; h=$(git hash-object new); d=.git/objects/${h:0:2}; mkdir -p $d; "
    await inside(box, children, f"{script} echo bad > $d/${{h:2}}; {WRITE} git commit -q --allow-empty -m poke")
    await inside(box, children, f"{script} rm -f $d/${{h:2}}; git add new; git commit -qm real")
    assert git(work, "log", "-1", "--format=%s") == "real\n"
    assert git(work, "show", "main:new") == "data\n"


async def test_what_is_staged_and_is_not_there_stays_inside(box, work):
    children = box.mounts()
    await inside(box, children, "git update-index --add --cacheinfo 100644,$(seq -s '' 0 24),new")
    assert git(work, "ls-files") == "file\n"


async def test_lines_of_a_log_that_its_owner_removed_do_not_come_back(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    job = asyncio.ensure_future(
        box.bash(
            children, f"{WRITE} git commit -q --allow-empty -m in; touch done; until [ -e go ]; do sleep 0.01; done"
        )
    )
    await until((work / "done").exists)
    git(work, "reflog", "expire", "--expire=now", "--all")
    (work / "go").touch()
    await job
    await children.sandbox.exchange_repositories()
    assert git(work, "reflog", "--format=%gs") == "commit: in\n"


async def test_nothing_is_staged_above_the_workspace(box):
    """Where a later checkout would write it."""
    need("git")
    box.env[b"GIT_CONFIG_GLOBAL"] = b"/dev/null"
    top = box.workspace.parent
    git(top, "init", "-q", "-b", "main", ".")
    (top / "Makefile").write_text("all:\n")
    (box.workspace / "file").write_text("one\n")
    git(top, "add", "Makefile", "work/file")
    git(top, "commit", "-qm", "one")
    children = box.mounts()
    script = "b=$(echo evil | git hash-object -w --stdin); echo two > file; git add file; cd ..;"
    (note,) = await inside(box, children, f"{script} git update-index --cacheinfo 100644,$b,Makefile")
    assert "beside the workspace" in note
    assert git(top, "diff", "--cached", "--name-only") == "work/file\n"
