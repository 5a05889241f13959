"""Whether a tree of files has changed, by a look at each file's stamp: cheap enough to be asked at every call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.files.file_tree import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MOST_FILES = 2000
"""Trees beyond that are looked at in part: the first files, folder by folder."""


def tree_stamp(paths: Iterable[str]) -> int:
    """A number that changes when a file below the paths is written, added or removed."""
    seen: list[tuple[str, int, int, int]] = []
    for path in paths:
        for stamp in stamps_below(path):
            seen.append(stamp)
            if len(seen) >= MOST_FILES:
                return hash(tuple(seen))
    return hash(tuple(seen))


def stamps_below(path: str) -> Iterator[tuple[str, int, int, int]]:
    """Of all files below, folder by folder, however deep they lie."""
    waiting, looked_at = [path], 0
    while waiting and looked_at < MOST_FILES:
        looked_at += 1
        folders: list[str] = []
        yield from stamps_in(waiting.pop(), folders)
        waiting += sorted(folders, reverse=True)


def stamps_in(path: str, folders: list[str]) -> Iterator[tuple[str, int, int, int]]:
    """Of the files in one folder, or of the file that it is; its folders are added to a list."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name in LEFT_OUT or entry.name.endswith(".pyc"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    stat = entry.stat(follow_symlinks=False)
                    yield entry.path, stat.st_mtime_ns, stat.st_size, stat.st_ino
    except NotADirectoryError:
        stat = os.stat(path)
        yield path, stat.st_mtime_ns, stat.st_size, stat.st_ino
    except OSError:
        return
