"""A layout as options for bubblewrap, which builds it of mounts in namespaces of its own."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from toolyard.files.inside import is_inside
from toolyard.process.interpreter import find_program
from toolyard.process.sandbox.backends.owner_map import can_map_owners
from toolyard.process.sandbox.draft import nearest
from toolyard.process.sandbox.git.inside_repository import PrivateGitFolder
from toolyard.process.sandbox.secrets import ROOTS_ALONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.process.common_folder import CommonFolder
    from toolyard.process.private_folders import SharedFolder
    from toolyard.process.sandbox.layout import Layout


NOBODY = "65534"
"""Whom root becomes inside; every system knows this user."""
VERSION_PATIENCE = 10.0
DISABLES_USERNS, SIZES_TMPFS = (0, 8), (0, 7)
OLDEST = (0, 5)


class Bubblewrap(NamedTuple):
    """The program and what it can do."""

    path: str
    version: tuple[int, ...]

    def options(
        self, layout: Layout, *, folder: SharedFolder, common: CommonFolder, network: bool, own_pids: bool
    ) -> list[str]:
        """Everything before the program that runs inside."""
        return [
            *("--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"),
            *(("--disable-userns",) if self.version >= DISABLES_USERNS else ()),
            *(() if network else ("--unshare-net",)),
            *(("--unshare-pid", "--as-pid-1") if own_pids else ()),
            *(("--uid", NOBODY, "--gid", NOBODY) if os.geteuid() == 0 else ()),
            *self._mounts(layout, folder, common, own_pids),
            *("--chdir", "/"),
        ]

    def _mounts(self, layout: Layout, folder: SharedFolder, common: CommonFolder, own_pids: bool) -> Iterator[str]:
        base = folder.view if maps_owners(layout) else "/"
        repositories = {one.repository.git: one for one in private_git_folders(layout, folder, common)}
        yield from ("--ro-bind", base, "/", "--dev", "/dev")
        for path in layout.plain if base != "/" else ():
            if nearest(layout.rules, path)[0] == "/":
                yield from ("--ro-bind", path, path)
        if own_pids:
            yield from ("--proc", "/proc")
        mounted = (*layout.rules, folder.exchange, common.handouts)
        hollow = [path for path, access in layout.rules.items() if access == "hidden" and has_below(path, mounted)]
        for path, access in layout.rules.items():
            match access:
                case "write":
                    yield from ("--bind", path, path)
                case "repository":
                    yield from repositories[path].mounts()
                case "read" | "hidden" if path in layout.empty and os.path.lexists(path):
                    yield from ("--ro-bind", common.empty_file, path)
                case "read" if path != "/":
                    yield from ("--ro-bind", path, path)
                case "hidden" if not os.path.lexists(path):
                    continue  # gone since the layout was made; for what is not there bubblewrap would not start
                case "hidden" if path in hollow:
                    yield from ("--tmpfs", path)
                case "hidden" if os.path.isdir(path):
                    # Several times as fast as another folder's mount. It belongs to those inside, who could open it
                    # and fill it, so nothing can be written to it.
                    yield from ("--perms", "0000", "--tmpfs", path, "--remount-ro", path)
                case "hidden":
                    yield from ("--ro-bind", "/dev/null", path)
                case "private" if path in common.temporary:
                    yield from ("--bind", common.temporary[path], path)
                    # Folders on the way to what is mounted below could be moved, for the other sandboxes, too.
                    ways = ways_below(path, mounted)
                    hollow += ways
                    for way in ways:
                        yield from ("--perms", "0755", "--tmpfs", way)
                case "private":
                    yield from self._private(path)
        yield from ("--bind", folder.exchange, folder.exchange, "--ro-bind", common.handouts, common.handouts)
        for path in hollow:
            yield from ("--remount-ro", path)

    def _private(self, path: str) -> Iterator[str]:
        """An empty folder in memory, of which nobody can fill more than a part."""
        if self.version >= SIZES_TMPFS:
            yield from ("--size", str(memory() // 4))
        yield from ("--perms", "1777", "--tmpfs", path)


def private_git_folders(layout: Layout, folder: SharedFolder, common: CommonFolder) -> list[PrivateGitFolder]:
    """The folders that git inside has in the place of others, in memory where they can be, but for new objects."""
    if not layout.repositories:
        return []
    store = os.path.join(common.objects, os.path.basename(folder.path))
    return [
        PrivateGitFolder(one, f"{folder.path}/git-{number}", f"{store}-{number}")
        for number, one in enumerate(layout.repositories)
    ]


def maps_owners(layout: Layout) -> bool:
    """Whether root's files are another's inside; where all of the disk may be written, they are not."""
    return layout.rules.get("/") == "read" and can_map_owners(ROOTS_ALONE)


def has_below(path: str, mounted: Sequence[str]) -> bool:
    """Whether a hidden folder holds something that is not hidden, for which it needs room."""
    return any(other != path and is_inside(other, path) for other in mounted)


def ways_below(folder: str, mounted: Sequence[str]) -> list[str]:
    """The folders in a folder that are not mounted themselves, but something further below is."""
    start = len(folder) + 1
    below = [path for path in mounted if path != folder and is_inside(path, folder)]
    tops = dict.fromkeys(path[:start] + path[start:].partition("/")[0] for path in below)
    return [top for top in tops if top not in mounted]


def find_bubblewrap() -> Bubblewrap | None:
    """The one on PATH that no tool can have put there, if it is new enough."""
    path = find_program("bwrap")
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--version"], capture_output=True, timeout=VERSION_PATIENCE, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = tuple(map(int, re.findall(rb"\d+", said)))
    return Bubblewrap(path, numbers) if numbers >= OLDEST else None


def memory() -> int:
    """The machine's, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
