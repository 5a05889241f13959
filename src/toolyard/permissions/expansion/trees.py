"""What the names of the files below a folder can do to a command that is given them all."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import deque

import msgspec

from toolyard.bash.syntax.expansion import UNKNOWN, Value
from toolyard.files.door import LARGEST_TEXT, Door
from toolyard.files.inside import is_inside
from toolyard.permissions.paths import entries_of
from toolyard.permissions.repositories.index import IndexUnread, tracked_paths

MOST_ENTRIES = 1500
"""Files that are looked at. Beyond them nothing is known, and the sandbox alone keeps what is read inside."""
LOOKED_AT_LAST = frozenset({".git", "node_modules", ".venv", "__pycache__", "target", "dist", "build"})
BREAKS_OUT = re.compile(r"[\n\\]|\s\Z|\s(?:\.\.|/)")
"""A name that would be several lines or another name, or behind a blank of which a path would begin anew."""
BLANK = re.compile(r"[\s'\"\\*?\[]")


class Chosen(msgspec.Struct, frozen=True):
    """Which of the files below a folder are meant."""

    names: str = "*"
    links: bool = True
    """Whether links are among them."""


ALL = Chosen()


def names_below(start: str, workspace: str, chosen: Chosen) -> Value:
    """Whether the names below a folder all lead to files inside the workspace, and whether they are single words."""
    real = os.path.realpath(workspace)
    waiting, last, seen, splits, dashes = deque([start]), deque[str](), 0, False, False
    while (waiting or last) and seen < MOST_ENTRIES:
        folder = (waiting or last).popleft()
        for entry in entries_of(folder):
            seen += 1
            is_meant = chosen.links and fnmatch.fnmatchcase(entry.name, chosen.names)
            if BREAKS_OUT.search(entry.name) or (is_meant and leads_out(entry.path, real)):
                return UNKNOWN
            splits = splits or bool(BLANK.search(entry.name))
            dashes = dashes or (folder == start and entry.name.startswith("-"))
            if entry.is_dir(follow_symlinks=False):
                (last if entry.name in LOOKED_AT_LAST else waiting).append(entry.path)
    return Value(inside=True, relative=True, splits=splits, dashes=dashes)


def tracked_names(top: str, workspace: str) -> Value:
    """The same for the files that git tracks in a working tree; not known when they are too many."""
    try:
        names = tracked_paths(Door().read(os.path.join(top, ".git", "index"), largest=LARGEST_TEXT).data)
    except (OSError, IndexUnread):
        return UNKNOWN
    if len(names) > MOST_ENTRIES or any(map(BREAKS_OUT.search, names)):
        return UNKNOWN
    real, folders = os.path.realpath(workspace), {os.path.dirname(name) for name in names}
    for folder in list(folders):
        while folder := os.path.dirname(folder):
            folders.add(folder)
    if any(leads_out(os.path.join(top, name), real) for name in (*folders, *names)):
        return UNKNOWN
    dashes, splits = any(name.startswith("-") for name in names), any(map(BLANK.search, names))
    return Value(inside=True, relative=True, splits=splits, dashes=dashes)


def leads_out(path: str, workspace: str) -> bool:
    """Whether a path is a link to somewhere outside."""
    return os.path.islink(path) and not is_inside(os.path.realpath(path), workspace)
