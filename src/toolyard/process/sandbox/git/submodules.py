"""Finding submodules: their repositories in a git folder, and the folders in which one may come to be."""

from __future__ import annotations

import os

from toolyard.files.plain_text import data_itself
from toolyard.process.sandbox.mount_points import folder_itself, listing_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


MOST_REPOSITORIES, DEEPEST = 64, 6
"""The most submodules that git inside has for itself: each takes some mounts, whose number is limited."""

LONGEST_INDEX = 1 << 26


def modules_of(git: str) -> Iterator[str | None]:
    """The repositories of submodules, which may lie in folders of their own; None for what lies too deep."""
    waiting = [(os.path.join(git, "modules"), 0)]
    looked_at = 0
    while waiting:
        folder, depth = waiting.pop()
        names = entries_of(folder)
        looked_at += 1
        if depth > DEEPEST or looked_at > MOST_REPOSITORIES * DEEPEST:
            yield None
            return
        if "HEAD" in names and "config" in names:
            yield folder
            names = ["modules"] if "modules" in names else []
        below = (os.path.join(folder, name) for name in names)
        waiting += [(path, depth + 1) for path in below if os.path.isdir(path) and not os.path.islink(path)]


def folders_in(top: str, index: str) -> list[str]:
    """The folders of a working tree that are submodules by its index, as far as it says what they are.

    Git outside steps into each where there is a repository, whoever made it; it needs no `.gitmodules` for that.
    """
    from toolyard.process.sandbox.git.outgoing.index_file import MODULE, read_index

    data, beside = data_itself(index, LONGEST_INDEX), os.path.dirname(index)
    for id_length in (20, 32) if MODULE in data else ():
        try:
            found = read_index(data, id_length, lambda name: data_itself(f"{beside}/{name}", LONGEST_INDEX))
        except (ValueError, IndexError):
            continue
        return [os.path.join(top, os.fsdecode(one.name)) for one in found.entries if one.mode == MODULE]
    return []


def entries_of(folder: str) -> list[str]:
    """The names in a folder itself; none where a link leads to it, or there is none."""
    try:
        with folder_itself(folder) as opened:
            return sorted(listing_at(opened))
    except OSError:
        return []
