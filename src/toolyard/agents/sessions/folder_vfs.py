"""How SQLite opens the file of all sessions: in a folder that was entered, whatever is put in its place meanwhile.

SQLite knows files by their paths, and opens some late and removes some at the end. So it gets paths that begin with the
handle of the folder, and leaves those as they are. A file that a database names itself, as a journal can that somebody
made up, is neither opened nor removed.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING

import apsw

from toolyard.files.own.entering import enter

if TYPE_CHECKING:
    from pathlib import Path

NAME = "toolyard-folder"
HANDLES = "/proc/self/fd"
OURS = re.compile(rf"{HANDLES}/\d+/[^/]+\.sqlite(-wal|-journal)?")
USUAL = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW


class FolderVFS(apsw.VFS):
    """The usual way to files, but for how a path becomes that of a file."""

    def __init__(self) -> None:
        super().__init__(NAME, "unix")

    def xFullPathname(self, name: str) -> str:
        """The path as it is, which leads by the handle; the usual one would be the folder's path of this moment."""
        if not OURS.fullmatch(name):
            raise apsw.CantOpenError("this is no file of the store")
        return name

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """None is a temporary file, which has no name for long."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is not None and not OURS.fullmatch(path):
            raise apsw.CantOpenError("this is no file of the store")
        return super().xOpen(name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Only what belongs to the store is removed."""
        if not OURS.fullmatch(filename):
            raise apsw.CantOpenError("this is no file of the store")
        super().xDelete(filename, syncdir)


class FolderConnection(apsw.Connection):
    """A connection that holds the handle of its folder as long as it is open."""

    folder = -1

    def close(self, force: bool = False) -> None:
        super().close(force)
        folder, self.folder = self.folder, -1
        if folder >= 0:
            os.close(folder)


def open_database(path: Path) -> FolderConnection:
    """Open a file, or make it; apsw.Error or OSError when that cannot be done, as for a link in its place."""
    folder = enter(path.parent)
    try:
        if not os.path.isdir(f"{HANDLES}/{folder}"):  # a system without such paths has no sandbox either
            return FolderConnection(os.path.realpath(path.parent / ".") + os.sep + path.name, flags=USUAL)
        registered()
        connection = FolderConnection(f"{HANDLES}/{folder}/{path.name}", flags=USUAL, vfs=NAME)
        connection.folder, folder = folder, -1
        return connection
    finally:
        if folder >= 0:
            os.close(folder)


@cache
def registered() -> FolderVFS:
    """SQLite knows it by its name from here on; once in a process."""
    return FolderVFS()
