"""Repositories that tools make or change below a workspace: git outside runs nothing because of them."""

from __future__ import annotations

import mmap
import os
import subprocess
import time

import pytest

from support import need
from toolyard.process.sandbox.folder_events import LOOK_ANYWAY_AFTER, FolderEvents
from toolyard.process.sandbox.git import links, repository_walk
from toolyard.process.sandbox.git.nested import TICK, NestedRepositories
from toolyard.process.sandbox.git.repository_walk import KnownRepositories, RepositoryWalk
from toolyard.process.sandbox.git.settings import plain_part
from toolyard.process.sandbox.watch import identity_of

EVIL = "core.fsmonitor"
PLANTS = {
    "a repository in a folder": "git init -q sub; git -C sub config core.fsmonitor $EVIL",
    "deep below": "mkdir -p a/b/c/d; git init -q a/b/c/d; git -C a/b/c/d config core.fsmonitor $EVIL",
    "a pointer to a folder": (
        "git init -q x; git -C x config core.fsmonitor $EVIL; mkdir sub; echo gitdir: ../x/.git > sub/.git"
    ),
    "a pointer through a pointer": (
        "git init -q x; git -C x config core.fsmonitor $EVIL; mkdir -p sub/git/refs sub/git/objects;"
        "cp x/.git/HEAD sub/git; echo ../../x/.git > sub/git/commondir; echo gitdir: git > sub/.git; mv x/.git/HEAD y;"
        "cp y x/.git/HEAD"
    ),
    "a repository in two halves": (
        "git init -q --bare lib; git -C lib config alias.planted !$EVIL; mkdir sub; mv lib/HEAD sub;"
        "echo ../lib > sub/commondir"
    ),
    "a link": "git init -q x; git -C x config core.fsmonitor $EVIL; mkdir sub; ln -s ../x/.git sub/.git",
    "a bare repository": "git init -q --bare sub; cd sub; git config core.fsmonitor $EVIL; git config core.bare false;"
    "git config core.worktree $PWD",
    "a configuration for a worktree": (
        "git init -q sub; git -C sub config extensions.worktreeConfig true;"
        "git -C sub config --worktree core.fsmonitor $EVIL"
    ),
    "an included file": "git init -q sub; git -C sub config include.path ../../evil.config;"
    "printf '[core]\\nfsmonitor = %s\\n' $EVIL > evil.config",
    "odd spelling": "git init -q sub; printf '[CORE] FsMonitor = \"%s\" ; x\\n' $EVIL >> sub/.git/config",
    "a continued line": ("git init -q sub; printf '[core]\\nfsmonitor = \\\\\\n%s\\n' $EVIL >> sub/.git/config"),
    "a closed folder": "git init -q sub; git -C sub config core.fsmonitor $EVIL; chmod 555 sub/.git sub",
}


@pytest.fixture
def work(tmp_path):
    need("git")
    (evil := tmp_path / "evil").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    (work := tmp_path / "work").mkdir()
    return work


def run(work, script: str) -> None:
    env = os.environ | {"EVIL": str(work.parent / "evil"), "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["bash", "-ec", script], cwd=work, env=env, check=True, capture_output=True)


def status(work, *folders: str) -> bool:
    """Whether git ran something planted when its owner looked at some folders."""
    for folder in folders:
        env = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null"}
        for command in ("status", "planted"):
            subprocess.run(["git", "-C", work / folder, command], capture_output=True, env=env)
    return (work.parent / "ran").exists()


@pytest.mark.parametrize("what", PLANTS)
def test_what_git_would_run_is_put_aside(work, what):
    folder = "a/b/c/d" if what == "deep below" else "sub"
    nested = NestedRepositories([str(work)], time.time())
    run(work, PLANTS[what])
    moved = nested.sweep()
    assert moved, "and it is said where it went"
    assert all(os.path.lexists(path) for path in moved.values())
    assert not status(work, folder)


@pytest.mark.parametrize("what", PLANTS)
def test_each_of_them_runs_something_where_nothing_is_put_aside(work, what):
    run(work, PLANTS[what].replace("; chmod 555 sub/.git sub", ""))
    assert status(work, "a/b/c/d" if what == "deep below" else "sub"), "or it would prove nothing"


def test_a_bare_repository_laid_out_in_the_workspace_itself_is_disarmed(work):
    nested = NestedRepositories([str(work)], time.time())
    run(
        work,
        "git init -q --bare x; mv x/* .; for pair in 'fsmonitor $EVIL' 'bare false' \"worktree $PWD\"; do"
        " eval git config -f config core.$pair; done",
    )
    assert nested.sweep()
    assert not status(work, ".")


def test_hooks_are_put_aside_and_samples_stay(work):
    nested = NestedRepositories([str(work)], time.time())
    run(work, "git init -q sub; cp $EVIL sub/.git/hooks/pre-commit; touch sub/.git/hooks/pre-push.sample")
    assert list(nested.sweep()) == [str(work / "sub/.git/hooks/pre-commit")]
    run(work / "sub", "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x")
    assert not (work.parent / "ran").exists()
    assert (work / "sub/.git/hooks/pre-push.sample").exists()


@pytest.mark.parametrize(
    "place", ["x/.git/inner", "x/.git/modules/sub", "x/.git/modules/a/modules/b", "x/.git/objects/ab/inner"]
)
def test_so_are_those_of_repositories_inside_of_a_git_folder(work, place):
    nested = NestedRepositories([str(work)], time.time())
    run(work, f"git init -q x; git init -q --bare {place}; cp $EVIL {place}/hooks/post-receive")
    run(work, f"git -C {place} config core.fsmonitor $EVIL")
    assert sorted(nested.sweep()) == [str(work / place / "config"), str(work / place / "hooks/post-receive")]


def test_a_git_folder_that_cannot_be_looked_through_is_put_aside_whole(work, monkeypatch):
    monkeypatch.setattr(links, "MOST_FOLDERS", 100)
    nested = NestedRepositories([str(work)], time.time())
    run(work, "git init -q x; mkdir x/.git/z{1..200}; mkdir -p x/.git/logs; ln -sf ../../../elsewhere x/.git/logs/HEAD")
    assert list(nested.sweep()) == [str(work / "x/.git")]
    assert not (work / "x/.git").exists()


def test_what_is_written_through_memory_is_seen_although_no_time_changes(work):
    nested = NestedRepositories([str(work)], time.time())
    run(work, "git init -q sub; printf '#%0500d\\n' 0 >> sub/.git/config")
    config = work / "sub/.git/config"
    with config.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        at = memory.find(b"#0000")
        memory[at] = ord("#")
        os.utime(config)
        assert nested.sweep() == {}
        before = config.stat().st_ctime_ns
        planted = f"[core]\nfsmonitor = {work.parent / 'evil'}\n#".encode()
        memory[at : at + len(planted)] = planted
        is_unseen = config.stat().st_ctime_ns == before
    assert list(nested.sweep()) == [str(config)]
    assert not status(work, "sub")
    assert is_unseen, "or it would prove nothing"


def test_ordinary_repositories_are_left_as_they_are(work):
    nested = NestedRepositories([str(work)], time.time())
    run(
        work,
        "git init -q one; cd one; git config user.name 'A B'; git config user.email a@b.c;"
        "git commit -q --allow-empty -m x; git remote add origin https://example.com/x.git; git branch -q other;"
        "cd ..; git clone -q one two; git -C two worktree add -q ../three; git init -q --bare four",
    )
    before = {path: path.read_bytes() for path in work.rglob("config")}
    assert nested.sweep() == {}
    assert before == {path: path.read_bytes() for path in work.rglob("config")}


def test_what_was_there_before_is_its_owner_s(work):
    run(work, "git init -q sub; git -C sub config core.fsmonitor $EVIL")
    nested = NestedRepositories([str(work)], time.time() + 1)
    assert nested.sweep() == {}


def test_what_can_stay_of_a_configuration_stays(work):
    nested = NestedRepositories([str(work)], time.time())
    run(
        work,
        "git init -q sub; git -C sub config alias.x '!evil'; git -C sub remote add origin https://example.com/a.git",
    )
    nested.sweep()
    said = subprocess.run(
        ["git", "config", "-f", work / "sub/.git/config", "-l"], capture_output=True, text=True
    ).stdout
    assert "remote.origin.url=https://example.com/a.git" in said
    assert "alias" not in said


def test_a_change_in_a_place_that_was_looked_at_is_noticed(work):
    nested = NestedRepositories([str(work)], time.time())
    run(work, "mkdir -p a/b; git init -q a/b")
    assert nested.sweep(at_end=True) == {}
    run(work, "touch -r a stamp; git -C a/b config core.fsmonitor $EVIL; touch -r stamp a a/b a/b/.git")
    assert nested.sweep(at_end=True), "whatever was done about its times"


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = x\n",
        "[include]\n\tpath = x\n",
        "[remote \"x\"]\n\turl = ext::sh -c evil\n",
        "[remote \"x\"]\n\tuploadpack = evil\n",
        "[submodule \"x\"]\n\tupdate = !evil\n",
        "[core]\n\tbare = false \\\n",
        "[core]\n\tworktree = /\n",
        "[filter \"x\"]\n\tclean = evil\n",
        "[remote \"x\"]\n\tpromisor = true\n",
        "[remote \"x\"]\n\tpartialclonefilter = blob:none\n",
        "[extensions]\n\tpartialclone = x\n",
        "[core.x]\n\tbare = false\n",
        "[remote \"x\"]\n\turl = /elsewhere/x.git\n",
        "[remote \"x\"]\n\turl = file:///elsewhere/x.git\n",
        "[remote \"x\"]\n\turl = file:///w/%2e%2e/x.git\n",
        "[remote \"x\"]\n\tpushurl = ../../elsewhere\n",
        "[submodule \"x\"]\n\turl = /elsewhere/x.git\n",
        "[branch \"x\"]\n\tremote = /elsewhere/x.git\n",
        "[branch \"x\"]\n\tpushremote = ../elsewhere\n",
        "[core] bare = false\n",
        "\0",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_not_kept(text):
    assert plain_part(text, "/w/.git", ["/w"]) is not None
    assert plain_part("[core]\n\tbare = false\n", "/w/.git", ["/w"]) is None


def test_a_sealed_folder_is_looked_through_only_when_another_has_taken_its_place(work):
    run(work, "mkdir sealed")
    sealed = str(work / "sealed")
    nested = NestedRepositories([str(work)], time.time(), {sealed: identity_of(sealed)}, sealed=[sealed])
    run(work, "git init -q sealed/sub; git -C sealed/sub config core.fsmonitor $EVIL")
    assert nested.sweep(at_end=True) == {}, "only its owner can have done that"
    run(work, "mv sealed other; mkdir sealed; mv other/sub sealed")
    assert nested.sweep(at_end=True)
    assert not status(work, "sealed/sub")


def test_what_a_link_in_the_place_of_a_sealed_repository_leads_to_is_looked_through(work):
    run(work, "mkdir own; git init -q own")
    git = str(work / "own/.git")
    nested = NestedRepositories([str(work)], time.time(), {git: identity_of(git)}, sealed=[git])
    run(work, "git -C own config core.fsmonitor $EVIL")
    assert nested.sweep(at_end=True) == {}, "only its owner can have done that"
    run(work, "mv own/.git moved; ln -s ../moved own/.git")
    assert nested.sweep(at_end=True)
    assert not status(work, "own")


@pytest.fixture
def events():
    events = FolderEvents()
    yield events
    events.close()


def swept(work, events) -> NestedRepositories:
    """Somebody who knows that nothing can have come to be since the last sweep, beside a sealed repository."""
    run(work, "git init -q own")
    git = str(work / "own/.git")
    nested = NestedRepositories([str(work)], time.time() + 60, {git: identity_of(git)}, sealed=[git])
    nested.listen(events)
    for _ in range(repository_walk.FOLLOW_AT):
        assert not nested.is_swept(), "before the kernel tells, all has to be looked at"
        nested.sweep()
    return nested


def test_nothing_is_swept_again_while_nothing_happens(work, events, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(repository_walk.time, "monotonic", lambda: now[0])
    nested = swept(work, events)
    assert nested.is_swept()
    now[0] += LOOK_ANYWAY_AFTER
    assert not nested.is_swept(), "some file systems change from elsewhere"


@pytest.mark.parametrize(
    "script",
    [
        "mkdir new",
        "mv own/.git moved; mkdir own/.git",
        "mv own/.git moved; ln -s ../moved own/.git",
        "mv own other; mkdir own; mv other/.git own/.git",
    ],
)
def test_a_sweep_is_due_when_something_happens(work, events, monkeypatch, script):
    monkeypatch.setattr(repository_walk.time, "monotonic", lambda: 1000.0)
    nested = swept(work, events)
    run(work, script)
    events.hear()
    assert not nested.is_swept()


def test_what_can_be_written_inside_is_swept_each_time(work, events, monkeypatch):
    """No event tells of what is written through memory."""
    monkeypatch.setattr(repository_walk.time, "monotonic", lambda: 1000.0)
    nested = swept(work, events)
    run(work, "git init -q made")
    for _ in range(3):
        events.hear()
        nested.sweep()
        assert not nested.is_swept()


def test_a_sealed_repository_that_was_replaced_unheard_is_swept(work, events, monkeypatch):
    monkeypatch.setattr(repository_walk.time, "monotonic", lambda: 1000.0)
    nested = swept(work, events)
    run(work, "mv own/.git moved; mkdir own/.git")
    assert not nested.is_swept()


def all_of(known: KnownRepositories) -> list[str]:
    """What a sweep looks over."""
    for _ in known.look(set):
        pass
    return known.all()


def test_as_long_as_the_kernel_tells_all_folders_are_looked_at_once_in_a_while_only(work, monkeypatch):
    """Even where that takes no time: after each call it would be a good part of what the call costs."""
    now = [1000.0]
    monkeypatch.setattr(repository_walk.time, "monotonic", lambda: now[0])
    known, events = KnownRepositories(RepositoryWalk(), [str(work)], 0), FolderEvents()
    known.listen(events)
    for _ in range(repository_walk.FOLLOW_AT):
        all_of(known)
    looks = known.looks
    now[0] += LOOK_ANYWAY_AFTER / 2
    assert all_of(known) == []
    assert known.looks == looks
    run(work, "mkdir new; git init -q new")
    events.hear()
    assert all_of(known) == [str(work / "new/.git")], "what it tells of is looked at at once"
    looks = known.looks
    now[0] += LOOK_ANYWAY_AFTER
    all_of(known)
    assert known.looks == looks + 1
    events.close()


def test_addresses_of_other_machines_and_of_folders_that_are_looked_over_stay():
    for url in ("https://example.com/x.git", "git@example.com:x.git", "/w/x.git", "file:///w/x.git"):
        assert plain_part(f'[remote "x"]\n\turl = {url}\n', "/w/.git", ["/w"]) is None


@pytest.mark.parametrize("folder", ["remotes", "branches"])
def test_addresses_of_the_first_years_of_git_are_put_aside(work, folder):
    nested = NestedRepositories([str(work)], time.time())
    run(work, f"git init -q sub; mkdir -p sub/.git/{folder}; echo URL: /elsewhere > sub/.git/{folder}/origin")
    assert list(nested.sweep()) == [str(work / "sub/.git" / folder)]


@pytest.mark.parametrize(
    "target", ["{caches}/1/docs", "{caches}", "up/caches/1/docs", "/proc/self/cwd/../caches/1", "../caches/none/yet"]
)
@pytest.mark.parametrize("at_end", [False, True])
def test_links_to_where_nobody_looks_are_removed_and_others_stay(work, target, at_end):
    caches = work.parent / "caches"
    (caches / "1/docs").mkdir(parents=True)
    (work / "up").symlink_to("..")
    nested = NestedRepositories([str(work)], time.time(), walk=RepositoryWalk(caches=str(caches)))
    run(work, f"ln -s {target.format(caches=caches)} docs; mkdir src; ln -s ../src src/other; ln -s /usr system")
    assert list(nested.sweep(at_end=at_end)) == [str(work / "docs")]
    assert not os.path.lexists(work / "docs")
    assert [os.path.islink(work / name) for name in ("up", "src/other", "system")] == [True] * 3


def folders_of_the_owner(work, number: int) -> None:
    for one in range(number):
        (work / "a" / str(one // 100) / str(one)).mkdir(parents=True)


@pytest.mark.parametrize("at_end", [False, True])
def test_in_a_workspace_of_many_folders_a_repository_in_a_deep_one_is_disarmed(work, at_end):
    folders_of_the_owner(work, 5_500)
    (work / "z/y/x/w/v").mkdir(parents=True)
    nested = NestedRepositories([str(work)], time.time())
    run(work, "git init -q z/y/x/w/v/new; git -C z/y/x/w/v/new config core.fsmonitor $EVIL")
    assert list(nested.sweep(at_end=at_end)) == [str(work / "z/y/x/w/v/new/.git/config")]
    assert not nested.passed_over


def test_neither_folders_that_changed_nor_others_hide_the_rest(work, monkeypatch):
    """Beyond a number of either kind, those of the other are looked at, and it is said that some were passed over."""
    monkeypatch.setattr(repository_walk, "MOST_FOLDERS", 50)
    folders_of_the_owner(work, 40)
    (work / "z").mkdir()
    since = max(folder.stat().st_ctime_ns for folder in (work, *work.rglob("*"))) + 1
    run(work, "mkdir n; for one in {1..60}; do mkdir n/$one; done")
    walk = RepositoryWalk()
    seen = {folder for folder, _ in walk.folders([str(work)], since=since)}
    assert {str(path) for path in (work / "a").rglob("*")} <= seen
    assert walk.passed_over.startswith(str(work / "n"))
    run(work, "rm -r n; mkdir b; cd b; git init -q --bare ../z/new")
    monkeypatch.setattr(repository_walk, "MOST_FOLDERS", 20)
    seen = {folder for folder, _ in walk.folders([str(work)], since=since)}
    assert str(work / "z/new") in seen
    assert walk.passed_over.startswith(str(work / "a"))


def test_what_no_look_came_to_is_said_and_looked_at_in_the_end(work, monkeypatch, caplog):
    monkeypatch.setattr(repository_walk, "MOST_FOLDERS", 20)
    folders_of_the_owner(work, 30)
    (work / "z/y/x/w/v").mkdir(parents=True)
    time.sleep(2 * TICK)  # what is made later is newer, beyond doubt
    nested = NestedRepositories([str(work)], time.time())
    run(work, "git init -q z/y/x/w/v/new; git -C z/y/x/w/v/new config core.fsmonitor $EVIL")
    assert nested.sweep() == {}
    assert nested.passed_over.startswith(str(work))
    assert "too many folders" in caplog.text
    assert list(nested.sweep(at_end=True)) == [str(work / "z/y/x/w/v/new/.git/config")]


def test_where_the_kernel_tells_of_no_more_all_folders_are_looked_at_at_once(work, monkeypatch):
    known, events = KnownRepositories(RepositoryWalk(), [str(work)], 0), FolderEvents()
    known.listen(events)
    for _ in range(repository_walk.FOLLOW_AT):
        all_of(known)
    run(work, "mkdir -p 1/2/3/4; git init -q 1/2/3/4")
    events.hear()
    monkeypatch.setattr(repository_walk, "MOST_FOLLOWED", 3)
    assert all_of(known) == [str(work / "1/2/3/4/.git")]
    events.close()
