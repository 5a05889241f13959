"""What of an index from inside is for git outside: what is staged in the workspace, and nothing that hides changes."""

from __future__ import annotations

import os

from toolyard.files.inside import is_inside
from toolyard.process.sandbox.git.outgoing.index_file import FOLDER, MODE, MODULE, SKIPPED, STAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.process.sandbox.git.outgoing.index_file import GitIndex, IndexEntry

EVERYWHERE = (b"",)
ASSUMED = 0x8000
"""Git does not look whether such a file was changed."""


def paths_in(roots: Sequence[str], git: str) -> tuple[bytes, ...]:
    """What the paths in the index of a repository begin with that lie in one of these folders."""
    top = os.path.realpath(os.path.dirname(git))
    if os.path.basename(git) != ".git" or any(is_inside(top, root) for root in roots):
        return EVERYWHERE
    return tuple(os.fsencode(os.path.relpath(root, top)) + b"/" for root in roots if is_inside(root, top))


def limited(inside: GitIndex, outside: GitIndex | None, prefixes: tuple[bytes, ...]) -> GitIndex:
    """The index that git outside gets; paths that do not begin with one of these stay as they are there.

    Files that git is not to look at are those that the owner has told it; ValueError where that cannot be. What git
    remembers of the files on the disk, by which it sees that they were not changed, is what git outside saw itself.
    """
    owners = {one.place: one for one in outside.entries} if outside else {}
    is_sparse = any(one.extended & SKIPPED for one in owners.values())
    ours = [shown(one, owners.get(one.place), is_sparse) for one in inside.entries if one.name.startswith(prefixes)]
    others = [one for one in owners.values() if not one.name.startswith(prefixes)]
    return inside._replace(entries=sorted([*ours, *others], key=lambda one: one.place))


def shown(one: IndexEntry, owners: IndexEntry | None, is_sparse: bool) -> IndexEntry:
    """An entry without marks that the owner has not given it; a new one may be left out of a sparse working tree."""
    may_skip = is_sparse and (owners is None or bool(owners.extended & SKIPPED))
    if one.mode == FOLDER and not may_skip:
        raise ValueError("a folder that is left out inside only")
    is_assumed = owners is not None and bool(owners.flags & ASSUMED)
    is_same = owners is not None and (owners.id, owners.mode) == (one.id, one.mode)
    return one._replace(
        flags=one.flags if is_assumed else one.flags & ~ASSUMED,
        extended=one.extended if may_skip else one.extended & ~SKIPPED,
        stat=owners.stat if owners and is_same else unseen(one),
    )


def unseen(one: IndexEntry) -> bytes:
    """What git writes of a file that it has not looked at yet."""
    return bytes(MODE.start) + one.mode + bytes(STAT - MODE.stop)


def has_new_modules(index: GitIndex, outside: GitIndex | None) -> bool:
    """Whether there is a submodule that was none before: git outside steps into its folder."""
    return not set(modules_in(index)) <= set(modules_in(outside) if outside else ())


def modules_in(index: GitIndex) -> Iterator[bytes]:
    """The folders that are submodules."""
    return (one.name for one in index.entries if one.mode == MODULE)


def new_objects(index: GitIndex, outside: GitIndex | None) -> set[str]:
    """What has to be there outside for an index, and did not have to before."""
    return set(index.objects()) - (set(outside.objects()) if outside else set())
