"""Repositories, worktrees and submodules of the owner's in folders below: git outside obeys nothing from inside there.

A client outside looks at all of them all the time, while a job inside does what it can.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from git_client import COMMON, OBEYED, Client, git, look
from owners_git import git as owners_git
from support import need, need_backend, until
from toolyard.process.sandbox.git import guards, repository_walk
from toolyard.process.sandbox.git.submodules import MOST_REPOSITORIES

pytestmark = pytest.mark.anyio
PLACES = ("sub", "deep/er/repository", "tree", "module", "store.git", "tree-of-sub")
SCENE = """git init -q -b main . && echo 1 > file && git add file && git commit -qm one && git worktree add -q tree
git init -q -b main sub && cd sub && echo 1 > file && git add file && git commit -qm one
git worktree add -q ../tree-of-sub && cd .. && git clone -q --bare sub store.git && mkdir -p deep/er
git clone -q store.git deep/er/repository && git -C sub remote add origin ../store.git
git -c protocol.file.allow=always submodule --quiet add ./store.git module && git commit -qm module"""
ANOTHER = 'git init -q $P; git -C $P config core.fsmonitor "$EVIL"; git -C $P config core.bare false'
"""What is planted where something was taken away."""
REPLACED = {
    "another git folder": f"mv $P/.git old || rm -rf $P/.git; {ANOTHER}",
    "another folder": f"mv $P old; {ANOTHER}",
    "another folder above": f"mv deep old; {ANOTHER}",
    "a pointer elsewhere": (
        'git init -q x; git -C x config core.fsmonitor "$EVIL"; rm -rf $P/.git; echo "gitdir: $PWD/x/.git" > $P/.git'
    ),
    "a pointer that is written in place": (
        'git init -q x; git -C x config core.fsmonitor "$EVIL"; echo "gitdir: $PWD/x/.git" > $P/.git'
    ),
    "a link": 'git init -q x; git -C x config core.fsmonitor "$EVIL"; rm -rf $P/.git; ln -s $PWD/x/.git $P/.git',
}


@pytest.fixture
def scene(box):
    """All kinds of them, and a program that leaves a mark where nobody inside can."""
    need("git")
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    env |= {f"GIT_{who}_{what}": "o@o" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["bash", "-ec", SCENE], cwd=box.workspace, check=True, env=env)
    (evil := box.workspace / "evil").write_text(f"#!/bin/sh\ntouch {box.folder}/ran\n")
    evil.chmod(0o755)
    box.env |= {b"EVIL": os.fsencode(evil), b"GIT_CONFIG_GLOBAL": b"/dev/null"}
    return box.workspace


def use(folder: Path) -> None:
    """What an owner does next."""
    look(folder)
    git(folder, "-c", "user.name=o", "-c", "user.email=o@o", "commit", "--allow-empty", "-m", "x")


async def attack(box, scene: Path, place: str, scripts: Iterable[str]) -> None:
    """Do some things inside while a client looks at a place, and at what is around it, more than once after each."""
    children = box.mounts()
    wait = "touch done; until [ -e go ]; do sleep 0.01; done; rm -f done go"
    with Client(scene, scene / place) as client:
        job = asyncio.ensure_future(box.bash(children, "".join(f"({each}); {wait}\n" for each in scripts)))
        for _ in scripts:
            await until((scene / "done").exists)
            seen = client.rounds
            await until(lambda seen=seen: client.rounds >= seen + 2)
            (scene / "go").touch()
            await until(lambda: not (scene / "go").exists())
        await job
        await children.sandbox.exchange_repositories()
        children.sandbox.sweep(at_end=True)
        await children.aclose()
    use(scene)
    use(scene / place)
    assert not (box.folder / "ran").exists()


@pytest.mark.parametrize("what", OBEYED)
async def test_nothing_that_is_written_there_runs_outside(box, scene, what):
    await attack(box, scene, "sub", [f"cd sub; {COMMON}{OBEYED[what]}"])


@pytest.mark.parametrize("place", PLACES)
async def test_nor_does_what_is_written_in_worktrees_and_submodules(box, scene, place):
    await attack(box, scene, place, [f"cd {place}; {COMMON}{each}" for each in OBEYED.values()])


@pytest.mark.parametrize("place", PLACES)
async def test_none_of_them_can_be_replaced(box, scene, place):
    await attack(box, scene, place, [f"P={place}; {each}" for each in REPLACED.values()])


@pytest.mark.parametrize("place", ["sub", "deep/er/repository", "store.git"])
async def test_what_is_planted_there_would_be_obeyed_where_nothing_keeps_it_in(box, scene, place):
    env = os.environ | {name.decode(): value.decode() for name, value in box.env.items()}
    subprocess.run(["bash", "-c", f"P={place}; {ANOTHER}"], cwd=scene, env=env, check=True)
    use(scene / place)
    assert (box.folder / "ran").exists(), "or the tests above would prove nothing"


@pytest.mark.parametrize("what", REPLACED)
async def test_each_of_them_could_be_replaced_where_nothing_keeps_it_in(box, scene, what):
    place = "deep/er/repository"
    env = os.environ | {name.decode(): value.decode() for name, value in box.env.items()}
    subprocess.run(["bash", "-c", f"P={place}; {REPLACED[what]}"], cwd=scene, env=env)
    use(scene / place)
    assert (box.folder / "ran").exists() or "in place" in what, "or the tests above would prove nothing"


@pytest.mark.parametrize("kept_in", [True, False], ids=["inside", "where nothing keeps it in"])
@pytest.mark.parametrize("tree", [".", "tree", "without a list"])
async def test_where_a_submodule_is_missing_nothing_can_be_made_that_git_steps_into(box, scene, tree, kept_in):
    if tree == "without a list":
        owners_git(scene, "submodule", "deinit", "-q", "-f", "module")
        (scene / ".gitmodules").unlink()
        tree = "."
    elif tree == ".":
        owners_git(scene, "submodule", "deinit", "-q", "-f", "module")
    else:
        owners_git(scene / tree, "merge", "-q", "main")
    plant = (
        f"P={tree}/module; mkdir -p $P; {ANOTHER}; cd $P; git -c user.name=a -c user.email=b commit -qm x --allow-empty"
    )
    if kept_in:
        await attack(box, scene, tree, [plant, f"rmdir {tree}/module; {plant}", f"mv {tree}/module x; {plant}"])
        return
    env = os.environ | {name.decode(): value.decode() for name, value in box.env.items()}
    subprocess.run(["bash", "-c", plant], cwd=scene, env=env, check=True)
    use(scene / tree)
    assert (box.folder / "ran").exists(), "or it would prove nothing"


async def test_work_there_is_seen_outside(box, scene):
    children = box.mounts()
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m inside"
    for place in PLACES:
        folder, line = (scene / place, commit) if place != "store.git" else (scene / "sub", "git push -q origin main")
        assert (await box.bash(children, line, cwd=folder)).exit_code == 0, place
        await children.sandbox.exchange_repositories()
    await children.aclose()
    for place in PLACES:
        assert "inside" in owners_git(scene / place, "log", "--format=%s"), place
        assert owners_git(scene / place, "fsck") is not None


async def test_one_that_was_made_inside_is_guarded_in_the_next_sandbox(box, scene):
    first = box.mounts()
    made = "git init -q new; git -C new -c user.name=a -c user.email=b commit -q --allow-empty -m one"
    assert (await box.bash(first, f"{made}; git clone -q new other; rm -rf other")).exit_code == 0
    await first.aclose()
    second = box.mounts()
    assert str(scene / "new/.git") in second.sandbox.layout.nested
    assert (await box.bash(second, "git -C new log --format=%s; git -C new config core.fsmonitor x")).exit_code == 0
    await second.aclose()
    assert "fsmonitor" not in (scene / "new/.git/config").read_text()


async def test_a_worktree_can_be_removed_inside(box, scene):
    children = box.mounts()
    await box.bash(children, "git worktree remove tree; git -C sub worktree remove ../tree-of-sub")
    await children.sandbox.exchange_repositories()
    notes = children.sandbox.take_notes()
    await children.aclose()
    for name, main in (("tree", scene), ("tree-of-sub", scene / "sub")):
        assert not (scene / name).exists()
        assert f"{scene / name} " not in owners_git(main, "worktree", "list")
        assert f"[git: the worktree {scene / name} is removed]" in notes


async def test_a_worktree_that_holds_anything_stays(box, scene):
    children = box.mounts()
    await box.bash(children, "git worktree remove tree; echo > tree/more; rm -r sub/.git/worktrees")
    await children.sandbox.exchange_repositories()
    await children.aclose()
    assert sorted(path.name for path in (scene / "tree").iterdir()) == [".git", "more"]
    assert (scene / "tree-of-sub" / "file").exists()


async def test_one_that_is_made_up_in_another_way_can_only_be_read(box, scene):
    (scene / "sub/.git/commondir").write_text(".\n")
    children = box.mounts()
    assert children.sandbox.layout.nested[str(scene / "sub/.git")] == "it is made up otherwise than usual"
    said = await box.bash(children, "git -C sub log --format=%s; git -C sub config core.fsmonitor x")
    assert said.stdout.text == "one\n"
    assert said.exit_code != 0


async def test_beyond_a_number_they_can_only_be_read(box, scene):
    for number in range(MOST_REPOSITORIES + 6):
        subprocess.run(["git", "init", "-q", str(scene / "many" / f"{number:03}")], check=True)
    children = box.mounts()
    nested = children.sandbox.layout.nested
    closed = [git for git, why in nested.items() if why]
    assert len(closed) == 6 + 3, "which are in the scene; the deepest are last"
    assert nested[closed[0]] == f"there are more than {MOST_REPOSITORIES} repositories below"
    said = await box.bash(children, "for d in many/*; do git -C $d config core.fsmonitor x && echo ok; done | wc -l")
    assert int(said.stdout.text) == MOST_REPOSITORIES - 2
    assert (await box.bash(children, "mv many/069 x || mv many x")).exit_code != 0
    await children.aclose()
    assert not any("fsmonitor" in path.read_text() for path in (scene / "many").glob("*/.git/config"))


async def test_one_that_is_a_link_is_named_and_where_it_leads_can_only_be_read(box, scene):
    (scene / "sub/.git").rename(scene / "git-of-sub")
    (scene / "sub/.git").symlink_to("../git-of-sub")
    children = box.mounts()
    assert children.sandbox.layout.unguarded == [f"{scene}/sub/.git"]
    assert (await box.bash(children, "git -C sub log --format=%s && ! echo x >> git-of-sub/config")).exit_code == 0


async def test_what_is_beyond_all_numbers_is_named(box, scene, monkeypatch):
    """As everything that cannot be guarded: the doctor shows it, and `require` refuses."""
    monkeypatch.setattr(guards, "MOST_NESTED", 5)
    sandbox = box.mounts().sandbox
    (named,) = sandbox.layout.unguarded
    assert named == f"{scene}/deep/er/repository/.git and others of more than 5 repositories below the workspace"
    assert sandbox.keeps == "partly"


async def test_one_in_a_deep_folder_is_guarded_however_many_folders_there_are(box, scene):
    for number in range(5_500):
        (scene / "many" / str(number // 100) / str(number)).mkdir(parents=True)
    deep = scene / "z/y/x/w/v/own"
    deep.mkdir(parents=True)
    owners_git(deep, "init", "-q", ".")
    children = box.mounts()
    await box.bash(children, f"echo '[core] fsmonitor = /evil' >> {deep}/.git/config")
    assert "evil" not in (deep / ".git/config").read_text()
    assert not children.sandbox.layout.unguarded


async def test_where_there_are_too_many_folders_to_look_through_that_is_named(box, scene, monkeypatch):
    monkeypatch.setattr(repository_walk, "MOST_FOLDERS", 3)
    children = box.mounts()
    (named,) = children.sandbox.layout.unguarded
    assert named.startswith(f"{scene}/")
    assert named.endswith(" and other folders, in which too many are to be looked through")
    assert children.sandbox.keeps == "partly"
    await box.bash(children, "true")
    await children.sandbox.sweep_after_call()
    (note,) = children.sandbox.take_notes()
    assert "there are too many folders to look for repositories" in note
    await children.sandbox.sweep_after_call()
    assert children.sandbox.take_notes() == [], "it is said once"


@pytest.fixture
def named(box) -> Path:
    """A repository beside the workspace."""
    (folder := box.home / "lib").mkdir()
    owners_git(folder, "init", "-q", ".")
    return folder


async def test_in_a_folder_that_the_configuration_names_nothing_that_is_obeyed_can_be_written(box, named):
    backend = need_backend("bubblewrap", "bubblewrap-pids")
    children = box.children(backend, places={"also_writable": [str(named)]})
    plant = "echo '[core] fsmonitor = /evil' >> .git/config; touch .git/hooks/pre-commit; echo {} > toolyard.json;"
    await box.bash(children, f"cd {named}; {plant} git init -q sub; git -C sub config core.fsmonitor /evil; touch work")
    moved = await children.sandbox.sweep_after_call()
    assert sorted(moved) == [f"{named}/sub/.git/config", f"{named}/toolyard.json"]
    assert "evil" not in (named / ".git/config").read_text()
    assert not (named / ".git/hooks/pre-commit").exists()
    assert (named / "work").exists()


async def test_a_git_folder_that_is_named_itself_can_be_written(box, named):
    backend = need_backend("bubblewrap", "bubblewrap-pids")
    children = box.children(backend, places={"also_writable": [str(named), f"{named}/.git"]})
    await box.bash(children, f"touch {named}/.git/made")
    assert (named / ".git/made").exists()


async def test_the_owner_can_remove_one_while_something_runs(box, scene):
    children = box.mounts()
    job = asyncio.ensure_future(box.bash(children, "touch done; until [ -e go ]; do sleep 0.01; done; echo lives"))
    await until((scene / "done").exists)
    owners_git(scene, "worktree", "remove", "tree")
    subprocess.run(["rm", "-r", str(scene / "deep")], check=True)
    (scene / "go").touch()
    assert (await job).stdout.text == "lives\n"
    assert children.is_stale()


ADD = "git -c protocol.file.allow=always submodule --quiet add ./store.git added"
BRANCH = (
    "tree=$(printf '160000 commit %s\\tinto\\n' $(git -C added rev-parse HEAD) | git mktree);"
    " git branch with-module $(git -c user.name=a -c user.email=a@b commit-tree -m x $tree)"
)
"""A branch that has another one, which git makes without looking for it."""


async def test_a_submodule_that_is_added_inside_is_known_outside_when_all_has_ended(box, scene):
    """Else git outside would step into it, and whoever still runs could make another repository of it."""
    children = box.mounts()
    await box.bash(children, f"{ADD}; {BRANCH}; git tag plain HEAD")
    await children.sandbox.exchange_repositories()
    notes = children.sandbox.take_notes()
    for name in ("index", "refs/heads/with-module"):
        assert any(f"{name} stays inside: git outside would step into a new submodule" in note for note in notes), notes
    assert "added" not in owners_git(scene, "ls-files")
    assert owners_git(scene, "branch", "--list", "with-module") == ""
    assert owners_git(scene, "tag") == "plain\n", "what has none does not wait"
    await box.bash(children, "git branch again with-module")
    await children.sandbox.exchange_repositories()
    assert owners_git(scene, "branch", "--list", "again") == "", "its commit is there outside by now"
    await children.aclose()
    assert "added" in owners_git(scene, "ls-files").split()
    assert owners_git(scene, "branch", "--list", "with-module", "again").split() == ["again", "with-module"]
    assert str(scene / "added/.git") in box.mounts().sandbox.layout.nested
    assert owners_git(scene / "added", "log", "--format=%s") == "one\n"


async def test_it_is_not_while_another_application_works_there(box, scene):
    children, others = box.mounts(), box.mounts()
    await box.bash(others, "true")
    await box.bash(children, ADD)
    await children.aclose()
    assert "added" not in owners_git(scene, "ls-files")
    await others.aclose()


async def test_new_commits_of_a_submodule_that_the_owner_has_do_not_wait(box, scene):
    children = box.mounts()
    commit = "git -c user.name=a -c user.email=a@b commit -q"
    await box.bash(children, f"(cd module && {commit} --allow-empty -m more); {commit} -am moved")
    await children.sandbox.exchange_repositories()
    assert owners_git(scene, "log", "-1", "--format=%s") == "moved\n"
    await children.aclose()
