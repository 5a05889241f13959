"""Going through the files of a workspace, folder by folder and by their handles, without what git ignores."""

from __future__ import annotations

import os

from toolyard.files.workspace.ignores import IGNORE_FILE, REPOSITORY, ignores_above, rules_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.files.workspace.ignores import Ignores
    from toolyard.files.workspace.places import Spot, Workspace

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 200


class Listed:
    """The entries of one folder that are not ignored."""

    __slots__ = ("fd", "files", "folders", "others", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        """Open as long as the walk stands here."""
        self.path = path
        """From where the walk began; ends with a slash, or is empty."""
        self.files: list[str] = []
        self.folders: list[str] = []
        self.others: list[str] = []
        """Links, pipes and the like."""


def walked(workspace: Workspace, start: Spot, *, ignoring: bool = True, depth: int = DEEPEST) -> Iterator[Listed]:
    """Each folder from a place on, before those in it; one that cannot be read is left out."""
    above, prefix = ignores_above(workspace.top, start.path, workspace.excludes)
    opened: list[tuple[Listed, Ignores | None, list[str]]] = []

    def enter(name: str, folder: int, path: str, ignores: Ignores | None) -> Listed:
        listed, inner = read_folder(os.open(name, FOLDER, dir_fd=folder), path, prefix, ignores)
        opened.append((listed, inner, listed.folders[::-1] if len(opened) < depth - 1 else []))
        return listed

    try:
        yield enter(start.name, start.folder, "", above if ignoring else None)
        while opened:
            listed, ignores, waiting = opened[-1]
            if not waiting:
                os.close(opened.pop()[0].fd)
                continue
            name = waiting.pop()
            try:
                below = enter(name, listed.fd, f"{listed.path}{name}/", ignores)
            except OSError:  # it is gone by now, or nobody may look into it
                continue
            yield below
    finally:
        for listed, _, _ in opened:
            os.close(listed.fd)


def read_folder(fd: int, path: str, prefix: str, ignores: Ignores | None) -> tuple[Listed, Ignores | None]:
    """What is in a folder, and the rules that hold in it."""
    listed = Listed(fd, path)
    try:
        with os.scandir(fd) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        os.close(fd)
        raise
    if ignores and any(entry.name == IGNORE_FILE for entry in found) and (rules := rules_in(fd)):
        ignores = ignores.below(prefix + path, rules)
    for entry in found:
        is_folder = entry.is_dir(follow_symlinks=False)
        if ignores and (entry.name == REPOSITORY or ignores.hides(prefix + path + entry.name, is_folder)):
            continue
        if is_folder:
            listed.folders.append(entry.name)
        elif entry.is_file(follow_symlinks=False):
            listed.files.append(entry.name)
        else:
            listed.others.append(entry.name)
    return listed, ignores
