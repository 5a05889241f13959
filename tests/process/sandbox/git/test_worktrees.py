"""Worktrees that git inside adds say outside where their repository is there."""

from __future__ import annotations

import os

import pytest

from toolyard.process.sandbox.git.worktrees import AddedWorktrees


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "repository/worktrees/toolyard").mkdir(parents=True)
    return tmp_path / "repository"


def add(repository, name: str) -> str:
    """What git inside leaves of a worktree, where its repository is at /inside."""
    worktree = repository.parent / name
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: /inside/worktrees/{name}\n")
    (repository / "worktrees" / name).mkdir()
    (repository / "worktrees" / name / "gitdir").write_text(f"{worktree}/.git\n")
    return str(worktree / ".git")


def said(pointer: str) -> str:
    with open(pointer) as file:
        return file.read().removeprefix("gitdir: ").rstrip("\n")


def test_they_are_true_inside_during_calls_and_outside_after_them(repository):
    worktrees = AddedWorktrees(str(repository), "/inside", [str(repository.parent)])
    pointer = add(repository, "one")
    worktrees.tell_outside()
    assert said(pointer) == f"{repository}/worktrees/one"
    worktrees.tell_inside()
    assert said(pointer) == "/inside/worktrees/one"


@pytest.mark.parametrize("looks_before", [0, 1, 5])
def test_one_is_found_however_often_there_was_none(repository, looks_before):
    folder = repository / "worktrees"
    os.utime(folder, (1, 1))
    worktrees = AddedWorktrees(str(repository), "/inside", [str(repository.parent)])
    for _ in range(looks_before):
        worktrees.tell_outside()
    pointer = add(repository, "late")
    os.utime(folder, (1, 1))  # what is inside can set the time of a folder back
    worktrees.tell_outside()
    assert said(pointer) == f"{repository}/worktrees/late"


def test_one_whose_place_is_written_after_its_folder_is_found_too(repository):
    (repository / "worktrees/slow").mkdir()
    worktrees = AddedWorktrees(str(repository), "/inside", [str(repository.parent)])
    worktrees.tell_outside()
    (repository / "worktrees/slow").rmdir()
    (repository / "worktrees/other").mkdir()
    worktrees.tell_outside()
    (repository / "worktrees/other").rmdir()
    pointer = add(repository, "slow")
    worktrees.tell_outside()
    assert said(pointer) == f"{repository}/worktrees/slow"
