"""A repository that a sandbox works in."""

from __future__ import annotations

from pathlib import Path

import pytest

from owners_git import git
from support import need


@pytest.fixture
def work(box) -> Path:
    """A repository with a commit and a second branch."""
    need("git")
    box.env[b"GIT_CONFIG_GLOBAL"] = b"/dev/null"
    git(box.workspace, "init", "-q", "-b", "main", ".")
    (box.workspace / "file").write_text("one\n")
    git(box.workspace, "add", "file")
    git(box.workspace, "commit", "-qm", "one")
    git(box.workspace, "branch", "other")
    return box.workspace
