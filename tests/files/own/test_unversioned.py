"""A folder of ours in somebody's repository: git takes no notice of it."""

from __future__ import annotations

import subprocess

from toolyard.files.own.unversioned import make_unversioned


def test_a_new_folder_ignores_itself_in_git(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    make_unversioned(tmp_path / "sessions")
    (tmp_path / "sessions" / "audit").mkdir()
    (tmp_path / "sessions" / "audit" / "today").write_text("x")
    assert subprocess.check_output(["git", "-C", tmp_path, "status", "--porcelain"]) == b""


def test_a_folder_that_is_there_already_stays_as_it_is(tmp_path):
    make_unversioned(tmp_path)
    assert list(tmp_path.iterdir()) == []
