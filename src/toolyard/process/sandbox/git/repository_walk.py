"""Finding repositories in folders below a workspace, the second time only where something has changed."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import NamedTuple

from toolyard.process.sandbox.git.inside_repository import is_like_git
from toolyard.process.sandbox.mount_points import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


MOST_FOLDERS = 5000
JUST_NOW = 100_000_000
"""Nanoseconds within which another change may have the same time as the one that was seen."""
LOOKED_AT_LAST = frozenset(("node_modules", "__pycache__", "target", "venv", ".venv", ".tox"))
"""Folders of which there are thousands below, and seldom a repository."""


class RepositoryWalk:
    """Looks through folders, shallow ones first, up to a number of them."""

    def __init__(self, made: Collection[str] = ()) -> None:
        """`made` is what came to be while sandboxes of the same application lasted."""
        self.made = set(made)
        self.known: set[str] = set()
        """What was there when this sandbox was built."""
        self._seen: dict[str, tuple[int, FolderContents]] = {}

    def repositories(
        self, roots: Sequence[str], closed: Collection[str] = (), *, with_late: bool = True
    ) -> Iterator[str]:
        """The folders that git would take its configuration from, and pointers to some; none below what is closed.

        `with_late` tells whether also folders are looked through of which there are thousands below.
        """
        waiting, late = deque(roots), deque[str]()
        for _ in range(MOST_FOLDERS):
            if not waiting and with_late:
                waiting, late = late, deque()
            if not waiting:
                return
            found = self._look(waiting.popleft())
            yield from found.repositories
            waiting.extend(folder for folder in found.below if folder not in closed)
            late.extend(folder for folder in found.late if folder not in closed)

    def _look(self, folder: str) -> FolderContents:
        """What is in a folder; from memory if nothing was made or removed since."""
        try:
            changed = os.lstat(folder).st_ctime_ns
            if (seen := self._seen.get(folder)) and seen[0] == changed:
                return seen[1]
            listed = listing(folder)
        except OSError:
            return FolderContents((), (), ())
        below = [name for name, is_folder in listed.items() if is_folder and name != ".git"]
        found = FolderContents(
            [f"{folder}/{name}" for name in below if name not in LOOKED_AT_LAST],
            [f"{folder}/{name}" for name in below if name in LOOKED_AT_LAST],
            [*([f"{folder}/.git"] if ".git" in listed else ()), *([folder] if is_like_git(listed.keys()) else ())],
        )
        self._seen[folder] = (changed if time.time_ns() - changed > JUST_NOW else 0, found)
        return found


class FolderContents(NamedTuple):
    """The folders in a folder, those that are looked at last, and the repositories there."""

    below: Sequence[str]
    late: Sequence[str]
    repositories: Sequence[str]
