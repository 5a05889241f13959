"""Removing folders that others filled."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support import PATIENCE, need
from toolyard.files.removal import remove_tree


def test_a_tree_is_removed_however_deep_it_is_and_whatever_was_closed_in_it(tmp_path):
    (top := tmp_path / "top").mkdir()
    (top / "closed").mkdir()
    (top / "closed" / "file").touch()
    (top / "closed").chmod(0)
    here = os.open(".", os.O_RDONLY)
    os.chdir(top)
    for _ in range(1500):
        os.mkdir("a" * 100)
        os.chdir("a" * 100)
    os.fchdir(here)
    os.close(here)
    remove_tree(str(top))
    assert list(tmp_path.iterdir()) == []


def test_what_links_lead_to_stays(tmp_path):
    (kept := tmp_path / "kept").mkdir(mode=0o750)
    (kept / "file").touch()
    (top := tmp_path / "top").mkdir()
    (top / "link").symlink_to(kept)
    remove_tree(str(top))
    assert sorted(os.listdir(tmp_path)) == ["kept"]
    (tmp_path / "top").symlink_to(kept)
    remove_tree(str(tmp_path / "top"))
    assert ([path.name for path in kept.iterdir()], kept.stat().st_mode & 0o777) == (["file"], 0o750)
    remove_tree(str(tmp_path / "nothing"))


MOUNTED_WITHIN = """
import os, subprocess, sys
from toolyard.files.removal import remove_tree
top, other = sys.argv[1:]
subprocess.run(["mount", "--bind", other, os.path.join(top, "mounted")], check=True)
remove_tree(top)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_what_is_mounted_in_a_tree_is_neither_emptied_nor_given_other_rights(tmp_path):
    top, other = tmp_path / "top", tmp_path / "other"
    (top / "mounted").mkdir(parents=True)
    (top / "sub").mkdir()
    (other / "kept").mkdir(parents=True)
    (other / "file").write_text("x")
    other.chmod(0o755)
    argv = [need("unshare"), "--mount", sys.executable, "-c", MOUNTED_WITHIN, top, other]
    subprocess.run(argv, check=True, timeout=PATIENCE)
    assert sorted(path.name for path in other.iterdir()) == ["file", "kept"]
    assert other.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in top.iterdir()] == ["mounted"]
