"""Whether git is let into a repository: by what that would have it run, or show of others."""

from __future__ import annotations

import os
import subprocess

import pytest

from toolyard.permissions.repositories.index import submodule_paths, tracked_paths
from toolyard.permissions.repositories.inspection import why_not_obeyed

QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": "1"}
QUIET |= {"GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
QUIET |= {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(where, *arguments):
    done = subprocess.run(
        ["git", "-C", str(where), *arguments], env=os.environ | QUIET, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def make_repository(folder):
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def work(tmp_path):
    return make_repository(tmp_path / "work")


@pytest.fixture
def neighbour(tmp_path):
    return make_repository(tmp_path / "neighbour")


def why(folder, workspace=None):
    return why_not_obeyed(str(folder), str(workspace or folder))


@pytest.mark.parametrize(
    "setting",
    [
        ("core.fsmonitor", "./p"), ("core.pager", "./p"), ("core.sshCommand", "./p"), ("core.editor", "./p"),
        ("diff.external", "./p"), ("diff.x.textconv", "./p"), ("diff.x.command", "./p"), ("filter.x.clean", "./p"),
        ("filter.lfs.process", "git-lfs filter-process; ./p"), ("merge.x.driver", "./p"), ("gpg.program", "./p"),
        ("gpg.ssh.program", "./p"), ("log.showSignature", "true"), ("alias.whatchanged", "!./p"),
        ("credential.helper", "!./p"), ("pager.log", "./p"), ("include.path", "../x"),
        ("includeIf.gitdir:/.path", "x"), ("core.worktree", "../../neighbour"), ("remote.o.uploadpack", "./p"),
        ("blame.ignoreRevsFile", "../neighbour/x"), ("mailmap.file", "~/private"), ("core.attributesFile", "x"),
        ("core.hooksPath", "../neighbour"), ("trailer.x.command", "./p"), ("something.new", "x"),
        ("protocol.ext.allow", "always"), ("status.submoduleSummary", "true"), ("url.ext::p.insteadOf", "https:"),
    ],
    ids=lambda setting: setting[0],
)  # fmt: skip
def test_a_setting_that_runs_or_opens_something_is_named(work, setting):
    git(work, "config", *setting)
    assert setting[0].lower() in (why(work) or "").lower()


@pytest.mark.parametrize(
    "setting",
    [
        ("core.fsmonitor", "false"), ("core.hooksPath", ".husky/_"), ("user.name", "Ada"), ("pull.rebase", "true"),
        ("remote.origin.url", "/srv/x.git"), ("branch.main.remote", "origin"), ("pager.log", "false"),
        ("filter.lfs.clean", "git-lfs clean -- %f"), ("filter.lfs.process", "git-lfs filter-process"),
        ("blame.ignoreRevsFile", ".git-blame-ignore-revs"), ("color.ui", "auto"), ("diff.algorithm", "histogram"),
        ("url.https://example.org/.insteadOf", "git@example.org:"), ("submodule.x.update", "rebase"),
    ],
    ids=lambda setting: setting[0],
)  # fmt: skip
def test_a_setting_of_everyday_work_is_not(work, setting):
    git(work, "config", *setting)
    assert why(work) is None


@pytest.mark.parametrize(
    "text",
    [
        "[core]fsmonitor=./p",
        "[core] ; remark\n  FSMonitor = ./p",
        '[user] name = "a" # \\\n[core]\nfsmonitor = ./p',
        "[user] name = a \\\n[core]\nfsmonitor = ./p",
        '[core][user]\n[core]\tfsmonitor="./p"',
        "\ufeff[core]\nfsmonitor = ./p",
        '[user "]"]\n[core]\r\nfsmonitor=./p\r\n',
        "[diff.x]\ncommand = ./p",
        "[core\n]",
        "[core]\n1x = 2",
    ],
)
def test_no_spelling_of_a_setting_is_overlooked(work, text):
    (work / ".git/config").write_text(text)
    assert why(work) is not None


def test_the_hook_that_runs_while_git_looks_is_named_and_others_are_not(work):
    (work / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    assert why(work) is None
    (work / ".git/hooks/post-index-change").write_text("#!/bin/sh\n")
    assert "post-index-change" in why(work)


def test_what_leads_to_a_repository_of_others_is_noticed(work, neighbour):
    for made in ("pointer", "link", "common", "borrower"):
        make_repository(work / made)
    (work / "pointer/.git").rename(work / "pointer/old")
    (work / "pointer/.git").write_text(f"gitdir: {neighbour}/.git\n")
    (work / "link/.git").rename(work / "link/old")
    (work / "link/.git").symlink_to(neighbour / ".git")
    (work / "common/.git/commondir").write_text(f"{neighbour}/.git\n")
    (work / "borrower/.git/objects/info/alternates").write_text(f"{neighbour}/.git/objects\n")
    found = {made: why(work / made, work) for made in ("pointer", "link", "common", "borrower")}
    assert all(found.values()), found


@pytest.mark.parametrize(
    "name", ["HEAD", "index", "packed-refs", "objects/pack/x", "refs/heads/a/b", "logs/refs/heads/x"]
)
def test_a_link_out_of_the_workspace_inside_of_a_repository_is_noticed(work, neighbour, name):
    link = work / ".git" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(neighbour / "a.txt")
    assert "link" in why(work)


def test_working_trees_and_submodules_that_their_owner_knows_are_fine(work, neighbour, tmp_path):
    git(neighbour, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert why(tmp_path / "tree") is None
    git(work, "submodule", "--quiet", "add", str(neighbour), "sub")
    assert (why(work), why(work / "sub"), why(work / "sub", work)) == (None, None, None)
    git(work, "worktree", "add", "-q", str(work / "inner"))
    assert why(work / "inner", work) is None


@pytest.mark.parametrize("version", ["2", "4"])
def test_git_is_not_let_into_a_repository_with_a_hostile_submodule(work, neighbour, version):
    git(work, "submodule", "--quiet", "add", str(neighbour), "deep/sub")
    git(work, "update-index", "--index-version", version)
    index = (work / ".git/index").read_bytes()
    assert submodule_paths(index) == ["deep/sub"]
    assert tracked_paths(index) == [".gitmodules", "a.txt", "deep/sub"]
    assert why(work) is None
    git(work / "deep/sub", "config", "core.fsmonitor", "./p")
    assert "core.fsmonitor" in why(work)


def test_a_repository_above_the_workspace_is_its_owners(work):
    git(work, "config", "core.pager", "less")
    (work / "src").mkdir()
    assert why(work / "src") is None
    assert why(work / "src", work) is not None


def test_a_bare_repository_is_found_where_git_finds_one(work, neighbour):
    git(work, "clone", "-q", "--bare", str(neighbour), "bare")
    assert why(work / "bare", work) is None
    git(work / "bare", "config", "core.pager", "./p")
    assert "core.pager" in why(work / "bare" / "objects", work)


def test_what_is_known_is_looked_up_again_when_a_file_changes(work):
    assert why(work) is None
    git(work, "config", "alias.x", "!./p")
    assert "alias.x" in why(work)
    git(work, "config", "--unset", "alias.x")
    assert why(work) is None


def test_a_folder_that_is_not_there_yet_may_become_any_repository(work):
    assert "not there" in why(work / "made", work)


def test_a_pipe_as_configuration_holds_nobody_up(work):
    (work / ".git/config").unlink()
    os.mkfifo(work / ".git/config")
    assert why(work) is not None


ODD = {
    "a NUL in what git shares": ("commondir", b"a\0b"),
    "a NUL in what objects are taken from": ("objects/info/alternates", b"/a\0b\n"),
    "a NUL in the configuration": ("config", b"[core]\n\tworktree = a\0b\n"),
}


@pytest.mark.parametrize("what", ODD)
def test_what_cannot_be_read_is_a_question_and_no_crash(work, what):
    name, data = ODD[what]
    (work / ".git" / name).write_bytes(data)
    assert why(work)


@pytest.mark.parametrize("data", [b"gitdir: g\0x", b"\0", b"gitdir: " + b"a" * 5000])
def test_a_pointer_that_is_none_is_a_question_and_no_crash(work, data):
    (work / ".git").rename(work / "g")
    (work / ".git").write_bytes(data)
    assert why(work)


def test_a_chain_of_links_without_an_end_is_a_question_and_no_crash(work):
    (work / ".git").rename(work / "g")
    for number in range(1500):
        (work / f"l{number}").symlink_to(f"l{number + 1}")
    (work / "l1500").symlink_to("g")
    (work / ".git").write_text("gitdir: l0\n")
    assert why(work)
