"""What of a workspace is kept: which folders are left out, how large a file may be, and where nothing is kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.agent_settings import CACHES
from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from pathlib import Path

REPOSITORIES = frozenset({".git", ".hg", ".svn", ".jj"})
"""A repository's own files are never read nor written: they are their owner's, and go on while we look."""
CACHE_TAG = "CACHEDIR.TAG"
"""The file by which programs mark a folder as one that need not be kept."""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a workspace, and how much."""

    largest_file: int = 100 << 20
    most_files: int = 200_000
    total: int = 4 << 30
    """Bytes on disk; beyond that the oldest states are dropped."""
    leave_out: frozenset[str] = frozenset(CACHES)
    """Names of folders that are not kept, wherever they are."""

    def leaves_out(self, name: str) -> bool:
        """Whether folders of this name are not kept."""
        return name in REPOSITORIES or name in self.leave_out


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Something of a workspace that no state has, and why."""

    path: str
    reason: str


def workspace_refusal(workspace: Path, home: Path) -> str | None:
    """Why the states of a folder are not kept at all; None for one whose states are."""
    real, own = os.path.realpath(workspace), os.path.realpath(home)
    if real == os.sep:
        return "the workspace is the root of the file system"
    if is_inside(own, real):
        return "the workspace is the home folder" if own == real else "the home folder is inside the workspace"
    return None
