"""What lies in a repository's own folder: further repositories, and links, through which git outside writes anywhere.

And pipes: git outside would wait at them without an end, also in the repository around.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from typing import NamedTuple

from toolyard.process.sandbox.git.inside_repository import is_like_git
from toolyard.process.sandbox.mount_points import folder_itself, listing_at, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_FOLDERS = 20_000
"""In one git folder; large files that are kept apart have some thousands."""
JUST_NOW = 100_000_000
"""Nanoseconds within which another change may have the same time as the one that was seen."""


class TooManyFolders(Exception):
    """A git folder that cannot be looked through; whoever asked must not take it for a harmless one."""


class GitFolderPart(NamedTuple):
    """What is in one folder of it: folders, links and pipes, and whether git could be sent there as to a repository."""

    below: list[str]
    links: list[str]
    is_repository: bool


class GitFolderWalk:
    """Looks through git folders, the second time only at folders that have changed."""

    def __init__(self, is_new: Callable[[str, os.stat_result], bool]) -> None:
        """`is_new` tells of a link or a pipe, by its path and what the system says of it, whether tools may have made
        it."""
        self._is_new = is_new
        self._seen: dict[str, tuple[int, GitFolderPart]] = {}

    def remove_links(self, git: str) -> dict[str, str]:
        """Remove links and pipes that tools made; tells of each that it was, and where it led."""
        removed: dict[str, str] = {}
        for link in [link for _, part in self._parts(git) for link in part.links]:
            removed |= remove_link(link, self._is_new)
        return removed

    def repositories(self, git: str) -> list[str]:
        """The folders in a git folder that are repositories themselves, of submodules or by anybody's choice."""
        return [folder for folder, part in self._parts(git) if part.is_repository and folder != git]

    def _parts(self, git: str) -> Iterator[tuple[str, GitFolderPart]]:
        waiting = [git]
        for _ in range(MOST_FOLDERS):
            if not waiting:
                return
            folder = waiting.pop()
            part = self._look(folder)
            yield folder, part
            waiting += part.below
        if waiting:
            raise TooManyFolders(git)

    def _look(self, folder: str) -> GitFolderPart:
        """What is in a folder, from memory if nothing was made there since."""
        try:
            # By path, as all that decides only whether to look again.
            if (seen := self._seen.get(folder)) and seen[0] == os.lstat(folder).st_ctime_ns:
                return seen[1]
            with folder_itself(folder) as opened:
                changed, listed = os.fstat(opened).st_ctime_ns, listing_at(opened)
                links = [
                    path
                    for name, is_folder in listed.items()
                    if not is_folder and self._is_unwanted(path := f"{folder}/{name}", name, opened)
                ]
        except OSError:
            return GitFolderPart([], [], False)
        below = [f"{folder}/{name}" for name, is_folder in listed.items() if is_folder]
        part = GitFolderPart(below, links, is_like_git(listed.keys()))
        if not part.links and time.time_ns() - changed > JUST_NOW:
            self._seen[folder] = changed, part
        return part

    def _is_unwanted(self, path: str, name: str, folder: int) -> bool:
        """Whether what has a name in an open folder is a link or a pipe that tools may have made."""
        try:
            facts = os.lstat(name, dir_fd=folder)
        except OSError:
            return False
        return is_link_or_pipe(facts.st_mode) and self._is_new(path, facts)


def remove_link(link: str, is_new: Callable[[str, os.stat_result], bool]) -> dict[str, str]:
    """Remove a link or a pipe that tools may have made; tells that it was, and where it led."""
    folder, name = os.path.split(link)
    with contextlib.suppress(OSError), folder_itself(folder) as opened, writable(opened):
        facts = os.lstat(name, dir_fd=opened)
        if not is_link_or_pipe(facts.st_mode) or not is_new(link, facts):
            return {}  # it is another one by now
        is_link = stat.S_ISLNK(facts.st_mode)
        what = f"a link to {os.readlink(name, dir_fd=opened)}" if is_link else "a pipe"
        os.unlink(name, dir_fd=opened)
        return {link: f"removed: it was {what}"}
    return {}


def is_link_or_pipe(mode: int) -> bool:
    return stat.S_ISLNK(mode) or stat.S_ISFIFO(mode)
