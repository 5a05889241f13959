"""What git outside obeys because settings name it, at whatever step: nothing of it can be written inside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from owners_git import git
from toolyard.process.sandbox.git.obeyed_files import obeyed_files

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    (home := tmp_path / "home").mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return home


SETTINGS = {
    "an include": ({".git/config": "[include]\n\tpath = ../conf/x\n"}, "conf/x"),
    "an include of an include": (
        {".git/config": "[include]\n\tpath = ../conf/a\n", "conf/a": "[include]\n\tpath = x\n"},
        "conf/x",
    ),
    "over two lines": (
        {".git/config": '[include]\n\tpath = "../conf/\\\n\\\nx"\n'.replace("\\\n\\\n", "\\\n")},
        "conf/x",
    ),
    "with a condition": ({".git/config": '[includeIf "gitdir:/nowhere"]\n\tpath = ../conf/x\n'}, "conf/x"),
    "of a worktree": ({".git/config.worktree": "[include]\n\tpath = ../conf/x\n"}, "conf/x"),
    "of another worktree": (
        {".git/worktrees/w/config.worktree": "[include]\n\tpath = ../../../conf/x\n"},
        "conf/x",
    ),
    "of the user": ({"HOME/.gitconfig": "[include]\n\tpath = WORK/conf/x\n"}, "conf/x"),
    "of the user's other file": ({"HOME/.config/git/config": "[include]\n\tpath = WORK/conf/x\n"}, "conf/x"),
    "hooks": ({".git/config": "[core]\n\thooksPath = conf\n"}, "conf"),
    "hooks of the user": ({"HOME/.gitconfig": "[core]\n\thooksPath = conf\n"}, "conf"),
    "hooks by an include": (
        {".git/config": "[include]\n\tpath = ../conf/a\n", "conf/a": "[core]\n\thooksPath = conf/hooks\n"},
        "conf/hooks",
    ),
    "a template": ({"HOME/.gitconfig": "[init]\n\ttemplateDir = WORK/conf\n"}, "conf"),
    "a program": ({".git/config": "[core]\n\tfsmonitor = conf/run --fast\n", "conf/run": ""}, "conf/run"),
    "a program of a filter": ({".git/config": '[filter "x"]\n\tclean = "./conf/run" %f\n', "conf/run": ""}, "conf/run"),
}


def write(work: Path, home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = Path(name.replace("HOME", str(home))) if name.startswith("HOME") else work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if path.name == "config" and path.exists() else ""
        path.write_text(before + text.replace("WORK", str(work)))


@pytest.mark.parametrize("what", SETTINGS)
def test_all_that_settings_name_is_found(tmp_path, home, what):
    files, named = SETTINGS[what]
    (work := tmp_path / "work" / ".git").mkdir(parents=True)
    write(work.parent, home, files)
    assert str(work.parent / named) in obeyed_files(str(work)).all


def test_what_is_only_data_or_typed_by_name_is_not(tmp_path, home):
    (git_folder := tmp_path / ".git").mkdir()
    (tmp_path / "file").touch()
    (git_folder / "config").write_text(
        "[alias]\n\tx = !file\n[blame]\n\tignoreRevsFile = file\n[commit]\n\ttemplate = file\n[user]\n\tname = file\n"
    )
    found = obeyed_files(str(git_folder))
    assert (found.folders, found.programs) == ((), ())


def test_settings_that_name_each_other_end(tmp_path, home):
    (git_folder := tmp_path / ".git").mkdir()
    (git_folder / "config").write_text("[include]\n\tpath = config\n\tpath = ../a\n")
    (tmp_path / "a").write_text("[include]\n\tpath = a\n\tpath = .git/config\n")
    assert str(tmp_path / "a") in obeyed_files(str(git_folder)).settings


@pytest.mark.parametrize("what", SETTINGS)
async def test_none_of_it_can_be_written_inside(box, work, home, what):
    files, named = SETTINGS[what]
    write(work, home, files)
    children = box.mounts()
    target = work / named
    is_file = not target.is_dir() and "hooks" not in what and what != "a template"
    line = (
        f"mkdir -p {target.parent}; echo evil > {target}" if is_file else f"mkdir -p {target}; echo evil > {target}/x"
    )
    await box.bash(children, f"({line}; rm -rf {target}; {line}; mv conf away; {line}) 2>/dev/null; touch worked")
    planted = target if is_file else target / "x"
    assert not planted.exists() or "evil" not in planted.read_text()
    assert (work / "worked").exists()
    await children.aclose()
    assert git(work, "status", "-s").startswith("??"), "git goes on"


async def test_what_its_owner_lets_git_obey_meanwhile_makes_a_sandbox_stale(box, work, home):
    children = box.mounts()
    await box.bash(children, "true")
    git(work, "config", "user.name", "other")
    assert not children.is_stale(), "that names nothing"
    git(work, "config", "core.hooksPath", "hooks-of-mine")
    assert children.is_stale()
    assert children.is_stale(), "whoever asks again hears the same"
    await children.aclose()


async def test_start_up_files_and_programs_that_are_links_into_the_workspace_cannot_be_written(box, home, monkeypatch):
    dotfiles = {".bashrc": "bashrc", ".gitconfig": "gitconfig", ".npmrc": "npmrc", ".local/bin/program": "run"}
    for link, file in dotfiles.items():
        (box.workspace / file).write_text("owner's\n")
        (home / link).parent.mkdir(parents=True, exist_ok=True)
        (home / link).symlink_to(box.workspace / file)
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{os.environ['PATH']}")
    children = box.mounts()
    await box.bash(children, "for f in bashrc gitconfig npmrc run; do echo evil >> $f; rm -f $f; echo evil > $f; done")
    assert {(box.workspace / file).read_text() for file in dotfiles.values()} == {"owner's\n"}
    await children.aclose()
    assert subprocess.run(["ls", box.workspace], capture_output=True, check=True).stdout.split() == sorted(
        file.encode() for file in dotfiles.values()
    )
