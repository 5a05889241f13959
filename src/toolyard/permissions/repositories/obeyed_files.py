"""The files by which git may do something else than its words say, in the repository that it would use in a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.files.door import LARGEST_TEXT, Door
from toolyard.files.plain_text import path_of
from toolyard.files.write_times import spans_above
from toolyard.permissions.paths import entries_of
from toolyard.permissions.repositories.index import IndexUnread
from toolyard.permissions.repositories.inspection import Doubtful, Inspection
from toolyard.permissions.repositories.settings import NotUnderstood, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.permissions.repositories.inspection import GitFolder
    from toolyard.permissions.repositories.settings import Setting


NOT_KNOWN = "the repository that git would use cannot be looked over"
SAMPLE = ".sample"
MOST_INCLUDED = 64
OF_THE_FOLDER = ("commondir", "gitdir", "config", "config.worktree", "objects/info/alternates", "info/attributes")
OF_THE_TREE = (".lfsconfig",)


class NotLookedOver(Exception):
    """What git would obey cannot be known."""


def obeyed_files(folder: str, workspace: str) -> list[str]:
    """Those that are there: pointers to repositories, their settings with what they include, and their hooks."""
    try:
        found = Inspection(workspace).entered_from(folder)
        return [path for one in found for path in files_of(one) if os.path.lexists(path)]
    except (Doubtful, IndexUnread, OSError, ValueError, RecursionError) as error:
        raise NotLookedOver(NOT_KNOWN) from error


def files_of(repository: GitFolder) -> Iterator[str]:
    if repository.pointer:
        yield repository.pointer
    if is_guarded_anywhere(repository.folder):  # a folder that was moved there is as new as its name
        yield repository.folder
    yield from (os.path.join(repository.tree, name) for name in OF_THE_TREE)
    common = common_folder(repository.folder)
    for place in dict.fromkeys((repository.folder, common)):
        yield from (os.path.join(place, name) for name in OF_THE_FOLDER)
        yield from hooks_in(os.path.join(place, "hooks"))
    waiting = [os.path.join(common, "config"), os.path.join(repository.folder, "config.worktree")]
    seen: set[str] = set()
    while waiting:
        file = waiting.pop()
        if file in seen or len(seen) > MOST_INCLUDED:
            continue
        seen.add(file)
        yield file
        for one in settings_of(file):
            if one.section in ("include", "includeif") and one.key == "path":
                waiting.append(located(one.value, os.path.dirname(file)))
            elif (one.section, one.key) == ("core", "hookspath"):
                yield from hooks_in(located(one.value, repository.tree))
            else:
                yield from programs_in(one.value, repository.tree)


def hooks_in(folder: str) -> Iterator[str]:
    yield from (entry.path for entry in entries_of(folder) if not entry.name.endswith(SAMPLE))


def programs_in(value: str, tree: str) -> Iterator[str]:
    """The files among the words of a setting."""
    for word in value.split():
        if "/" in word and os.path.isfile(path := located(word.strip("!'\""), tree)):
            yield path


def settings_of(file: str) -> list[Setting]:
    """What a file sets. One that is not understood has to be its owner's to be obeyed, and names nothing to us."""
    try:
        return list(read_settings(read_if_there(file)))
    except NotUnderstood:
        return []


def common_folder(folder: str) -> str:
    given = read_if_there(os.path.join(folder, "commondir")).rstrip(b"\r\n")
    return os.path.realpath(os.path.join(folder, path_of(given))) if given else folder


def read_if_there(file: str) -> bytes:
    """By the door: a pipe in the place of a file would have us wait."""
    try:
        return Door().read(file, largest=LARGEST_TEXT).data
    except (FileNotFoundError, NotADirectoryError):
        return b""


def located(value: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(value)))


def is_guarded_anywhere(folder: str) -> bool:
    """Whether what tools could not write is known of the workspace that a folder is in."""
    return any(span.guarded for span in spans_above(folder))
