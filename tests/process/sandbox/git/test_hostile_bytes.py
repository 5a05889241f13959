"""Whatever bytes are written inside into files that are read outside: nothing stays armed, and no end is missed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from owners_git import WRITE, git, inside
from support import need
from toolyard.files.user_folders import records_folder
from toolyard.process.sandbox.folder_events import FolderEvents
from toolyard.process.sandbox.git.nested import NestedRepositories

pytestmark = pytest.mark.anyio

VALUES = {
    "nul": r"printf 'a\0b\n' > {}",
    "no text": r"printf '\377\376 = \200\n[\377]\n' > {}",
    "long": "head -c 300000 /dev/zero | tr '\\0' x > {}",
    "many lines": r"yes '[user] name = x' | head -c 300000 > {}",
    "nothing": ": > {}",
    "a link to itself": "ln -sfn itself {}",
    "a chain of links": "ln -sfn $PWD/l1 {}",
    "a pipe": "rm -rf {0}; mkfifo {0}",
}
OF_THE_WORKSPACE = [
    *("HEAD", "index", "config", "packed-refs", "refs/heads/main", "refs/heads/new", "logs/HEAD", "shallow"),
    *("logs/refs/heads/main", "info/exclude", "MERGE_HEAD", "objects/info/alternates", "rebase-merge/onto"),
    *("worktrees/x/gitdir", "worktrees/x/commondir", "worktrees/x/HEAD", "worktrees/x/index", "modules/m/HEAD"),
]
BELOW = [
    ".git",
    ".git/config",
    ".git/commondir",
    ".git/HEAD",
    ".git/objects/info/alternates",
    ".git/hooks",
    ".git/index",
]
ARM = "git init -q {0}; git -C {0} config core.fsmonitor $PWD/planted; "
PLANT = "printf '#!/bin/sh\\ntouch {}\\n' > planted; chmod +x planted; "
CHAIN = "import os; [os.symlink(f'l{n + 1}', f'l{n}') for n in range(1, 1500)]"


def has_run(box, *folders: str) -> bool:
    """Whether the owner's git ran what was planted, in these folders."""
    for folder in folders:
        subprocess.run(["git", "status"], cwd=box.workspace / folder, capture_output=True, timeout=60)
    return (box.folder / "ran").exists()


@pytest.mark.parametrize("name", OF_THE_WORKSPACE)
async def test_no_file_of_the_git_folder_inside_keeps_what_is_planted_elsewhere(box, work, name):
    children = box.mounts()
    await box.bash(children, PLANT.format(box.folder / "ran"))
    await box.python(children, CHAIN)
    for number, write in enumerate(VALUES.values()):
        made = "mkdir -p .git/worktrees/x .git/modules/m .git/rebase-merge; cp .git/HEAD .git/worktrees/x; "
        script = f"rm -rf .git/{name}; {made}{write.format(f'.git/{name}')}; "
        await box.bash(children, f"{script}{ARM.format(f'a{number}')}")
        await children.sandbox.exchange_repositories()
        children.sandbox.sweep()
        assert not has_run(box, f"a{number}"), "after a call"
        "".join(children.sandbox.take_notes()).encode()
    await box.bash(children, ARM.format("last"))
    await children.aclose()
    assert not has_run(box, "last"), "at the end"
    assert not any(str(work) in one.read_text() for one in Path(records_folder()).iterdir())
    git(work, "status")
    git(work, "fsck")


@pytest.mark.parametrize("name", BELOW)
async def test_no_repository_below_keeps_what_is_planted_in_another(box, work, name):
    children = box.mounts()
    await box.bash(children, PLANT.format(box.folder / "ran"))
    folders = []
    await box.python(children, CHAIN)
    for number, write in enumerate(VALUES.values()):
        place = f"m{number}/{name}"
        script = f"{ARM.format(f'm{number}')} rm -rf {place}; {write.format(place)};"
        await box.bash(children, f"{script}{ARM.format(f'a{number}')}{ARM.format(f'z/z{number}')}")
        folders += [f"m{number}", f"a{number}", f"z/z{number}"]
        children.sandbox.sweep()
        assert not has_run(box, *folders), "after a call"
    await box.bash(children, "".join(ARM.format(f"last{one}") for one in "am"))
    await children.aclose()
    assert not has_run(box, *folders, "lasta", "lastm"), "at the end"


async def test_a_step_of_the_end_that_fails_keeps_no_other(box, work, monkeypatch):
    children = box.mounts()
    script = f"{WRITE} git commit -q --allow-empty -m two; {PLANT.format(box.folder / 'ran')}{ARM.format('sub')}"
    await box.bash(children, script)
    children.sandbox._repositories.exchange = lambda **_: 1 / 0
    await children.aclose()
    assert not has_run(box, "sub")
    assert not any(name.startswith("toolyard.json") for name in os.listdir(work)), "what was made for mounts is gone"


async def test_a_failing_exchange_changes_no_result(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    children.sandbox._repositories.exchange = lambda **_: 1 / 0
    assert "something there cannot be read" in "".join(
        await inside(box, children, "git commit -q --allow-empty -m x || :")
    )


@pytest.fixture
def plain(tmp_path):
    need("git")
    (folder := tmp_path / "plain").mkdir()
    return folder


def plant(folder) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True, timeout=60)
    subprocess.run(["git", "-C", folder, "config", "core.fsmonitor", "/planted"], check=True, timeout=60)


def is_armed(folder) -> bool:
    return "planted" in (folder / ".git/config").read_text()


def test_no_number_of_folders_puts_a_look_off(plain):
    events, nested = FolderEvents(), NestedRepositories([str(plain)], time.time())
    nested.listen(events)
    for number in range(5200):
        (plain / f"a{number}").mkdir()
    for number in range(6):
        plant(plain / f"z{number}")
        (plain / f"a{number}/deep/er").mkdir(parents=True)
        plant(plain / f"a{number}/deep/er")
        events.hear()
        nested.sweep()
        assert not is_armed(plain / f"z{number}")
        assert not is_armed(plain / f"a{number}/deep/er")
    events.close()


def test_what_takes_the_place_of_a_folder_that_is_known_is_looked_at(plain):
    events, nested = FolderEvents(), NestedRepositories([str(plain)], time.time())
    nested.listen(events)
    (plain / "known/below").mkdir(parents=True)
    (plain / "x/.git").mkdir(parents=True)
    for _ in range(3):
        nested.sweep()
    plant(plain / "x/.git/hidden/below/sub")
    (plain / "known/below").rmdir()
    (plain / "known").rmdir()
    (plain / "x/.git/hidden").rename(plain / "known")
    events.hear()
    nested.sweep()
    assert not is_armed(plain / "known/below/sub")
    events.close()


def test_a_configuration_that_is_written_by_another_name_is_looked_at(plain):
    """A hard link in a folder that is not followed: nothing is told of the repository."""
    events, nested = FolderEvents(), NestedRepositories([str(plain)], time.time())
    nested.listen(events)
    subprocess.run(["git", "init", "-q", plain / "sub"], check=True, timeout=60)
    os.link(plain / "sub/.git/config", plain / "other")
    for _ in range(3):
        nested.sweep()
    with open(plain / "other", "a") as file:
        file.write("[core]\n\tfsmonitor = /planted\n")
    events.hear()
    nested.sweep()
    assert not is_armed(plain / "sub")
    events.close()


@pytest.mark.parametrize(
    "line", [" " * 16000 + "!", "a=" + " " * 16000 + '"', "[a " + '"' + "\\" * 15000, "a" * 16000 + '"']
)
def test_no_line_takes_long_to_be_looked_over(plain, line):
    """It would not end before the test does."""
    nested = NestedRepositories([str(plain)], time.time())
    plant(plain / "sub")
    with open(plain / "sub/.git/config", "a") as file:
        file.write(f"{line}\n")
    assert nested.sweep()
    assert not is_armed(plain / "sub")
