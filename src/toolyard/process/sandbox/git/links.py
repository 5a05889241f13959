"""Links in a repository's own folder: git outside writes, prunes and removes through them, wherever they lead.

And pipes: git outside would wait at them without an end, also in the repository around.
"""

from __future__ import annotations

import contextlib
import os
import stat

from toolyard.process.sandbox.mount_points import folder_itself, listing, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_FOLDERS = 2000
OBJECTS = "objects"
"""Of which only the topmost folders are looked at: in those below git makes files and follows nothing."""


class PlantedLinks:
    """Looks for links that tools made, the second time only in folders that have changed."""

    def __init__(self, is_new: Callable[[str], bool]) -> None:
        self._is_new = is_new
        self._seen: dict[str, tuple[int, list[str]]] = {}

    def remove_from(self, git: str) -> dict[str, str]:
        """Remove them; tells of each that it was, and where it led."""
        removed: dict[str, str] = {}
        for link in list(self._links(git)):
            folder, name = os.path.split(link)
            with contextlib.suppress(OSError), folder_itself(folder) as opened, writable(opened):
                is_link = stat.S_ISLNK(os.lstat(name, dir_fd=opened).st_mode)
                what = f"a link to {os.readlink(name, dir_fd=opened)}" if is_link else "a pipe"
                os.unlink(name, dir_fd=opened)
                removed[link] = f"removed: it was {what}"
        return removed

    def _links(self, git: str) -> Iterator[str]:
        waiting = [git]
        for _ in range(MOST_FOLDERS):
            if not waiting:
                return
            folder = waiting.pop()
            below, links = self._look(folder)
            yield from links
            if os.path.dirname(folder) != os.path.join(git, OBJECTS) and folder != os.path.join(git, OBJECTS):
                waiting += below

    def _look(self, folder: str) -> tuple[list[str], list[str]]:
        """The folders in a folder, from memory if nothing was made there since; and the new links."""
        try:
            changed = os.lstat(folder).st_ctime_ns
            if (seen := self._seen.get(folder)) and seen[0] == changed:
                return seen[1], []
            listed = listing(folder)
        except OSError:
            return [], []
        paths = {os.path.join(folder, name): is_folder for name, is_folder in listed.items()}
        links = [path for path, is_folder in paths.items() if not is_folder and is_link_or_pipe(path)]
        links = [path for path in links if self._is_new(path)]
        below = [path for path, is_folder in paths.items() if is_folder]
        if not links:
            self._seen[folder] = changed, below
        return below, links


def is_link_or_pipe(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISLNK(mode) or stat.S_ISFIFO(mode)
