"""A repository and the folder that git inside has in its place: what changed on one side comes to the other."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import toolyard
from owners_git import WRITE, git, inside
from support import until
from toolyard.files.user_folders import is_named_in_record
from toolyard.process.sandbox.folder_events import FolderEvents
from toolyard.process.sandbox.git.outgoing.objects import copy_checked

pytestmark = pytest.mark.anyio


async def test_what_was_done_inside_is_there_outside_after_the_call(box, work):
    children = box.mounts()
    script = f"{WRITE} echo two > file; git commit -qam two; git tag v1; git checkout -qb topic; git branch -D other"
    script += "; echo three > file; git stash -q; echo new > new; git add new"
    assert await inside(box, children, script) == []
    assert git(work, "status", "-sb") == "## topic\nA  new\n"
    assert git(work, "log", "--format=%s", "topic") == "two\none\n"
    assert git(work, "branch", "--format=%(refname:short)") == "main\ntopic\n"
    assert "WIP on topic" in git(work, "stash", "list")
    assert "checkout: moving from main to topic\ncommit: two\n" in git(work, "reflog", "--format=%gs")
    git(work, "stash", "pop")
    git(work, "fsck", "--strict")


async def test_one_call_in_a_folder_without_a_repository_asks_the_kernel_to_follow_nothing(box, monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr(FolderEvents, "follow_one", lambda _, folder, *flags: asked.append(folder) or -1)
    children = box.mounts()
    children.start()
    await box.bash(children, "true")
    children.sandbox.is_settled()
    await children.sandbox.exchange_repositories()
    assert asked == []


async def test_what_was_done_outside_is_there_inside_in_the_next_call(box, work):
    children = box.mounts()
    await inside(box, children, "git status")
    (work / "file").write_text("two\n")
    git(work, "commit", "-qam", "two")
    git(work, "checkout", "-qb", "topic")
    git(work, "branch", "-D", "other")
    git(work, "pack-refs", "--all")
    git(work, "gc", "-q", "--prune=now")
    await inside(box, children, 'test "$(git log -1 --format=%s)" = two; test "$(git branch --show-current)" = topic')
    await inside(box, children, '! git rev-parse -q --verify other; test -z "$(git status --porcelain)"')


async def test_packed_branches_go_and_come_like_others(box, work):
    git(work, "tag", "-a", "-m", "x", "v1")
    git(work, "pack-refs", "--all")
    children = box.mounts()
    assert await inside(box, children, f"{WRITE} git branch -D other; git commit -q --allow-empty -m two") == []
    assert git(work, "for-each-ref", "--format=%(refname)") == "refs/heads/main\nrefs/tags/v1\n"
    assert git(work, "log", "-1", "--format=%s") == "two\n"
    assert await inside(box, children, "git gc -q; git pack-refs --all; git branch later") == []
    assert "refs/heads/later" in git(work, "for-each-ref", "--format=%(refname)")


async def test_a_branch_that_both_changed_stays_as_its_owner_has_it_and_the_other_is_kept(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    job = asyncio.ensure_future(
        box.bash(
            children, f"{WRITE} git commit -q --allow-empty -m in; touch done; until [ -e go ]; do sleep 0.01; done"
        )
    )
    await until((work / "done").exists)
    git(work, "commit", "-q", "--allow-empty", "-m", "out")
    (work / "go").touch()
    await job
    await children.sandbox.exchange_repositories()
    (note,) = [one for one in children.sandbox.take_notes() if "refs/heads/main" in one]
    assert "what it was inside is kept as refs/from-sandbox/heads/main" in note
    assert git(work, "log", "-1", "--format=%s", "main") == "out\n"
    assert git(work, "log", "-1", "--format=%s", "refs/from-sandbox/heads/main") == "in\n"
    await inside(box, children, 'test "$(git log -1 --format=%s)" = out')


async def test_what_both_staged_stays_as_its_owner_has_it(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    job = asyncio.ensure_future(
        box.bash(children, "echo a > a; git add a; touch done; until [ -e go ]; do sleep 0.01; done")
    )
    await until((work / "done").exists)
    (work / "b").write_text("b")
    git(work, "add", "b")
    (work / "go").touch()
    await job
    await children.sandbox.exchange_repositories()
    assert any(one.startswith("[git: index was changed outside, too") for one in children.sandbox.take_notes())
    assert git(work, "diff", "--cached", "--name-only") == "b\n"


async def test_an_owner_s_status_in_between_is_no_conflict(box, work):
    """It writes the index anew, with nothing else staged."""
    children = box.mounts()
    await inside(box, children, "true")
    os.utime(work / "file", (1, 1))
    git(work, "status")
    assert await inside(box, children, "echo a > a; git add a; git status") == []
    assert git(work, "diff", "--cached", "--name-only") == "a\n"


async def test_a_commit_on_a_branch_that_is_locked_until_the_end_is_kept(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    (work / ".git/refs/heads/main.lock").touch()
    await inside(box, children, f"{WRITE} git commit -q --allow-empty -m two")
    await children.aclose()
    assert git(work, "log", "-1", "--format=%s", "refs/from-sandbox/heads/main") == "two\n"
    assert git(work, "log", "-1", "--format=%s", "main") == "one\n"


async def test_a_branch_can_take_the_place_of_a_folder_of_branches(box, work):
    git(work, "branch", "a/b")
    children = box.mounts()
    assert await inside(box, children, "git branch -D a/b; git branch a") == []
    assert "refs/heads/a\n" in git(work, "for-each-ref", "--format=%(refname)")
    git(work, "branch", "-D", "a")
    git(work, "branch", "a/c")
    await inside(box, children, 'test "$(git branch --list a/c)" = "  a/c"; git branch -D a/c; git branch a')
    assert "refs/heads/a\n" in git(work, "for-each-ref", "--format=%(refname)")


@pytest.mark.parametrize("lock", ["refs/heads/main", "index", "HEAD"])
async def test_what_is_locked_outside_is_handed_over_later(box, work, lock):
    children = box.mounts()
    await inside(box, children, "true")
    (work / ".git" / f"{lock}.lock").touch()
    script = f"{WRITE} echo a > a; git add a; git commit -qm two; git checkout -qb topic; git rm -q --cached file"
    assert any(f"{lock} is locked" in one for one in await inside(box, children, script))
    (work / ".git" / f"{lock}.lock").unlink()
    assert await inside(box, children, "true") == []
    assert git(work, "log", "-1", "--format=%s", "main") == "two\n"
    assert git(work, "status", "-s") == "D  file\n?? file\n"
    assert git(work, "branch", "--show-current") == "topic\n"


FORGED = {
    "an object that is another": (
        "o=$(echo real | git hash-object -w --stdin); f=.git/objects/${o:0:2}/${o:2}; chmod u+w $f;"
        " printf 'blob 5\\0fake\\n' | python3 -c 'import sys, zlib;"
        " sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))' > $f; git update-ref refs/tags/forged $o"
    ),
    "a commit that is not there": "echo 1234567890123456789012345678901234567890 > .git/refs/heads/forged",
    "a commit whose tree is not there": (
        "a='a <a> 1 +0000'; c=$(printf \"tree $(seq -s '' 0 24)\\nauthor $a\\ncommitter $a\\n\\nx\\n\""
        " | git hash-object -t commit -w --stdin --literally); echo $c > .git/refs/heads/forged"
    ),
    "a pack that is none": (
        "o=1234567890123456789012345678901234567890; echo PACK > .git/objects/pack/pack-$o.pack;"
        " cp .git/objects/pack/pack-$o.pack .git/objects/pack/pack-$o.idx; echo $o > .git/refs/heads/forged"
    ),
    "a name that is none": "mkdir -p .git/refs/heads/..x; git rev-parse HEAD > .git/refs/heads/..x/forged",
    "a value that is none": "echo 'ref: ../../forged' > .git/refs/heads/forged",
    "another object instead": "git update-ref refs/replace/$(git rev-parse HEAD) $(git rev-parse HEAD^{tree})",
    "an object store elsewhere": "echo /forged > .git/objects/info/alternates",
    "remotes of old": "mkdir .git/remotes; echo URL: forged > .git/remotes/origin",
    "a pipe": "mkfifo .git/refs/heads/forged .git/FORGED_HEAD .git/logs/forged; rm .git/index; mkfifo .git/index",
    "a link": (
        "for n in index refs/heads/forged FORGED_HEAD info logs; do rm -rf .git/$n; ln -s $PWD/forged .git/$n; done"
    ),
    "links for folders": "mkdir forged; cp -r .git/refs forged; rm -rf .git/refs; ln -s $PWD/forged/refs .git/refs",
    "a worktree elsewhere": (
        "mkdir -p .git/worktrees/forged; cd .git/worktrees/forged; echo /etc/.git > gitdir; echo ../.. > commondir;"
        " echo ref: refs/heads/main > HEAD"
    ),
    "a common folder elsewhere": (
        "git worktree add -q tree; echo $PWD/forged > .git/worktrees/tree/commondir"
    ),
    "settings of a worktree": "git config extensions.worktreeConfig true; echo forged > .git/config.worktree",
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
async def test_what_is_not_what_it_says_stays_inside(box, work, what):
    children = box.mounts()
    await box.bash(children, FORGED[what])
    children.sandbox.sweep(at_end=True)
    await children.aclose()
    found = [path for path in (work / ".git").rglob("*") if "forged" in path.name.lower() or path.is_symlink()]
    found += [path for path in (work / ".git").rglob("*") if path.is_file() and b"forged" in path.read_bytes()]
    assert found == []
    assert not (work / ".git" / "refs" / "replace").exists()
    assert git(work, "log", "-1", "--format=%s") == "one\n"
    git(work, "fsck", "--strict")
    git(work, "status")


async def test_removing_the_repository_inside_removes_it_nowhere_else(box, work):
    children = box.mounts()
    (note,) = await inside(box, children, "rm -rf .git/* 2>/dev/null || true")
    assert "outside it stays" in note
    assert git(work, "log", "-1", "--format=%s") == "one\n"
    assert children.is_stale(), "so that the next call has another one"


async def test_an_index_that_was_removed_inside_is_there_again(box, work):
    children = box.mounts()
    (work / "new").write_text("x")
    git(work, "add", "new")
    assert await inside(box, children, "rm .git/index; ln -s /etc/hostname .git/index") == []
    assert git(work, "status", "-s") == "A  new\n"
    await inside(box, children, 'test "$(git status -s)" = "A  new"')


async def test_a_job_that_goes_on_is_handed_over_with_the_next_call(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    job = asyncio.ensure_future(
        box.bash(
            children, f"{WRITE} git commit -q --allow-empty -m bg; touch done; until [ -e go ]; do sleep 0.01; done"
        )
    )
    await until((work / "done").exists)
    await inside(box, children, "true")
    assert git(work, "log", "-1", "--format=%s") == "bg\n"
    (work / "go").touch()
    await job


async def test_submodules_can_be_committed_to_and_added(box, work):
    other = box.folder / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main", ".")
    git(other, "commit", "-q", "--allow-empty", "-m", "lib")
    git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "lib")
    git(work, "commit", "-qm", "with a module")
    children = box.mounts()
    script = f"cd lib; {WRITE} git commit -q --allow-empty -m more; cd ..; git clone -q --bare lib bare.git;"
    script += " git -c protocol.file.allow=always submodule --quiet add ./bare.git second; git add lib"
    script += "; git -c user.name=a -c user.email=a@b commit -qm both"
    await inside(box, children, script)
    await children.aclose()
    assert git(work / "lib", "log", "-1", "--format=%s") == "more\n"
    assert git(work / "second", "log", "-1", "--format=%s") == "more\n"
    assert "second" in git(work, "submodule", "status")
    assert git(work, "status", "-s") == "?? bare.git/\n"


async def test_a_clone_of_the_repository_inside_is_whole_outside(box, work):
    children = box.mounts()
    await inside(
        box, children, f"{WRITE} git commit -q --allow-empty -m two; git clone -q . copy; git clone -q -s . thin"
    )
    await children.aclose()
    for copy in ("copy", "thin"):
        assert git(work / copy, "log", "--format=%s") == "two\none\n"
        git(work / copy, "fsck")


async def test_what_an_application_did_that_was_killed_is_handed_over_by_whoever_cleans_up(box, work):
    children = box.mounts()
    await box.bash(children, f"{WRITE} git commit -q --allow-empty -m two")
    record, saved = children.sandbox.cleanup_file, box.folder / "record.json"
    left = json.loads(Path(record).read_text())
    assert git(work, "log", "-1", "--format=%s") == "one\n"
    for place in (left["claimed"], *left["common"]):
        assert is_named_in_record(os.path.basename(place)), "so that no other application removes it before"
    saved.write_text(json.dumps({**left, "claimed": "", "groups": []}))
    argv = [sys.executable, "-I", "-S", "-c", "import sys; sys.path.append(sys.argv[1]);"]
    argv[-1] += "from toolyard.process.sandbox.cleanup import clean_up; clean_up(sys.argv[2])"
    ran = subprocess.run([*argv, str(Path(toolyard.__file__).parents[1]), saved], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert git(work, "log", "-1", "--format=%s") == "two\n"


async def test_a_large_object_and_a_pack_are_handed_over_whole(box, work):
    children = box.mounts()
    script = "head -c 3000000 /dev/urandom > big; head -c 5000000 /dev/zero > zero; git add big zero; "
    script += f"{WRITE} git commit -qm big; git repack -adq; git prune-packed -q"
    assert await inside(box, children, script) == []
    assert git(work, "show", "--stat", "--format=%s").startswith("big\n")
    git(work, "fsck", "--strict")
    assert git(work, "status", "-s") == ""


def test_objects_are_read_in_pieces(tmp_path):
    data = b"blob 1048576\0" + bytes(1 << 20)
    name = hashlib.sha1(data).hexdigest()
    for content, given, is_whole in (
        (zlib.compress(data), name, True),
        (zlib.compress(data) + b"x", name, False),
        (zlib.compress(data)[:-3], name, False),
        (zlib.compress(data.replace(b"1048576", b"1048577")), name, False),
        (b"x", name, False),
    ):
        (tmp_path / "from").write_bytes(content)
        with (tmp_path / "from").open("rb") as source, (tmp_path / "to").open("wb") as target:
            assert copy_checked(source.fileno(), target.fileno(), given) is is_whole


async def test_a_repository_that_is_too_large_is_not_there_inside_and_that_is_said(box, work, monkeypatch):
    monkeypatch.setattr("toolyard.process.sandbox.git.git_files.MOST_FILES", 5)
    children = box.mounts()
    (note,) = await inside(box, children, "! git status")
    assert "too many loose refs and logs" in note
    assert await inside(box, children, "! git status") == []
    assert git(work, "log", "-1", "--format=%s") == "one\n"


@pytest.mark.parametrize("has_repository", [True, False])
async def test_where_nothing_changed_nothing_is_compared_at_the_next_call(box, request, has_repository):
    if has_repository:
        request.getfixturevalue("work")
    children = box.mounts()

    async def nothing_is_due() -> bool:
        await inside(box, children, "true")
        return not children.sandbox._repositories.is_due()

    for _ in range(100):  # a change of just now may have had company
        if await nothing_is_due():
            break
    assert await nothing_is_due()
    await inside(box, children, f"git init -q; {WRITE} echo x > x; git add x; git commit -qm x")
    assert git(box.workspace, "config", "--local", "user.name") == "In\n"
    assert git(box.workspace, "log", "-1", "--format=%s") == "x\n"
