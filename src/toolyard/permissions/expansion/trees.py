"""What the names of the files below a folder can do to a command that is given them all."""

from __future__ import annotations

import os
import re
from collections import deque

from toolyard.bash.syntax.expansion import UNKNOWN, Value
from toolyard.files.inside import is_inside

MOST_ENTRIES = 1500
"""Files that are looked at. Beyond them nothing is known, and the sandbox alone keeps what is read inside."""
LOOKED_AT_LAST = frozenset({".git", "node_modules", ".venv", "__pycache__", "target", "dist", "build"})
BREAKS_OUT = re.compile(r"[\n\\]|\s\Z|\s(?:\.\.|/)")
"""A name that would be several lines or another name, or behind a blank of which a path would begin anew."""
BLANK = re.compile(r"[\s'\"\\*?\[]")


def names_below(start: str, workspace: str) -> Value:
    """Whether the names below a folder all lead to files inside the workspace, and whether they are single words."""
    real = os.path.realpath(workspace)
    waiting, last, seen, splits, dashes = deque([start]), deque[str](), 0, False, False
    while (waiting or last) and seen < MOST_ENTRIES:
        folder = (waiting or last).popleft()
        for entry in entries_of(folder):
            seen += 1
            if BREAKS_OUT.search(entry.name) or (
                entry.is_symlink() and not is_inside(os.path.realpath(entry.path), real)
            ):
                return UNKNOWN
            splits = splits or bool(BLANK.search(entry.name))
            dashes = dashes or entry.name.startswith("-")
            if entry.is_dir(follow_symlinks=False):
                (last if entry.name in LOOKED_AT_LAST else waiting).append(entry.path)
    return Value(inside=True, relative=True, splits=splits, dashes=dashes)


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []
