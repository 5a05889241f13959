"""The folder of a call: what it is, and where links lead."""

from __future__ import annotations

import os

import pytest

from toolyard.permissions.folders.call_folder import folder_of_call
from toolyard.permissions.paths import OwnFolders

NOTHING = OwnFolders()


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    os.symlink(tmp_path / "beside", tmp_path / "work" / "out")
    os.symlink("sub", tmp_path / "work" / "in")
    os.symlink(".", tmp_path / "work" / "here")
    os.symlink(tmp_path / "work", tmp_path / "link")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("written", "kind", "real"),
    [
        ("", "top", ""),
        ("here", "top", ""),
        ("sub", "below", "sub"),
        ("in", "below", "sub"),
        ("out", "elsewhere", "../beside"),
        ("..", "elsewhere", ".."),
        ("not/there", "below", "not/there"),
    ],
)
def test_a_folder_is_told_by_where_it_really_is(workspace, written, kind, real):
    cwd = os.path.normpath(workspace / written)
    found = folder_of_call(cwd, str(workspace), NOTHING)
    assert (found.kind, found.path) == (kind, os.path.normpath(workspace / real))
    assert found.by_link == (cwd if written in ("here", "in", "out") else "")


def test_a_workspace_that_a_link_leads_to_is_its_own_top(workspace):
    link = str(workspace.parent / "link")
    assert folder_of_call(link, link, NOTHING).kind == "top"
    below = folder_of_call(f"{link}/sub", link, NOTHING)
    assert (below.kind, below.path, below.by_link) == ("below", str(workspace / "sub"), "")


@pytest.mark.parametrize(("folder", "kind"), [("/tmp/x", "temporary"), ("/tmp/theirs/x", "elsewhere")])
def test_temporary_files_of_its_own_are_another_folder_outside(workspace, folder, kind):
    own = OwnFolders(("/tmp",), ("/tmp/theirs",), (str(workspace / "sub"),))
    assert folder_of_call(folder, str(workspace), own).kind == kind


def test_without_mounts_they_are_the_same_folder_outside(workspace):
    place = str(workspace.parent / "beside")
    own = OwnFolders((place,), (), (place,))
    assert folder_of_call(f"{place}/x", str(workspace), own).kind == "elsewhere"
