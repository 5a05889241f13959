"""What differs between two kept states, file by file, and as text."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.agents.checkpoints.objects import (
    EMPTY_FOLDER,
    Digest,
    FileEntry,
    FolderEntry,
    LinkEntry,
    TreeEntry,
    decode_listing,
)
from toolyard.agents.checkpoints.packs import Damaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.agents.checkpoints.objects import Listing
    from toolyard.agents.checkpoints.packs import Packs

LARGEST_TEXT = 1 << 20
"""Of a file whose difference is shown line by line."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One path that is not the same in two states."""

    path: str
    """Below the workspace; odd bytes in it as Python writes them."""
    before: TreeEntry | None
    after: TreeEntry | None

    @property
    def verb(self) -> Literal["added", "removed", "changed"]:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


def differences(packs: Packs, before: Digest, after: Digest, below: str = "") -> Iterator[Change]:
    """Every path that differs; a folder comes before what is in it."""
    if before == after:
        return
    old, new = listing_of(packs, before), listing_of(packs, after)
    for raw in sorted(old.keys() | new.keys()):
        one, other = old.get(raw), new.get(raw)
        if one == other:
            continue
        path = f"{below}/{os.fsdecode(raw)}" if below else os.fsdecode(raw)
        if not same_folder(one, other):
            yield Change(path=path, before=one, after=other)
        yield from differences(packs, listing_in(one), listing_in(other), path)


def same_folder(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    """Whether both are folders of the same mode, so that only what is in them differs."""
    return isinstance(one, FolderEntry) and isinstance(other, FolderEntry) and one.mode == other.mode


def listing_in(entry: TreeEntry | None) -> Digest:
    return entry.listing if isinstance(entry, FolderEntry) else EMPTY_FOLDER


def listing_of(packs: Packs, digest: Digest) -> Listing:
    """What a folder of a state has; Damaged when that is nothing that could have been kept."""
    if digest == EMPTY_FOLDER:
        return {}
    try:
        return decode_listing(packs.read(digest))
    except msgspec.MsgspecError as error:
        raise Damaged(f"the kept listing {digest.hex()} is damaged: {error}") from None


def entry_at(packs: Packs, root: Digest, path: str) -> TreeEntry | None:
    """What a state has at a path."""
    *folders, name = path.split("/")
    listing = listing_of(packs, root)
    for folder in folders:
        entry = listing.get(os.fsencode(folder))
        if not isinstance(entry, FolderEntry):
            return None
        listing = listing_of(packs, entry.listing)
    return listing.get(os.fsencode(name))


def of_paths(changes: Sequence[Change], paths: Sequence[str]) -> list[Change]:
    """Those of some paths and of what is below them, and the folders that have to be there for them."""
    made = [change.path for change in changes if change.after is not None and is_among(change.path, paths)]

    def is_needed(change: Change) -> bool:
        is_new = isinstance(change.after, FolderEntry) and not isinstance(change.before, FolderEntry)
        return is_new and any(path.startswith(f"{change.path}/") for path in made)

    return [change for change in changes if is_among(change.path, paths) or is_needed(change)]


def is_among(path: str, paths: Sequence[str]) -> bool:
    """Whether a path is one of some, or below one."""
    return any(path == one or path.startswith(f"{one}/") for one in paths)


def unified_diff(packs: Packs, changes: Sequence[Change]) -> str:
    """The changes as a patch that people and programs read."""
    return "".join(line for change in changes for line in diff_of(packs, change))


def diff_of(packs: Packs, change: Change) -> Iterator[str]:
    old, new = f"a/{change.path}", f"b/{change.path}"
    yield f"diff {old} {new}\n"
    modes = [entry.mode for entry in (change.before, change.after) if isinstance(entry, FileEntry | FolderEntry)]
    if change.verb == "changed" and len(set(modes)) == 2:
        yield f"old mode {modes[0]:o}\nnew mode {modes[1]:o}\n"
    before, after = text_of(packs, change.before), text_of(packs, change.after)
    if before is None or after is None:
        yield f"Binary files {old} and {new} differ\n"
        return
    if isinstance(change.before or change.after, FolderEntry):
        yield f"{change.verb} folder\n"
        return
    names = ("/dev/null" if change.before is None else old, "/dev/null" if change.after is None else new)
    for line in difflib.unified_diff(before, after, *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def text_of(packs: Packs, entry: TreeEntry | None) -> list[str] | None:
    """The lines of a file, or where a link points; None for what is no text or too long."""
    match entry:
        case FileEntry():
            data = packs.read(entry.content) if entry.size <= LARGEST_TEXT else b"\0"
            try:
                return None if b"\0" in data else data.decode().splitlines(keepends=True)
            except UnicodeDecodeError:
                return None
        case LinkEntry():
            return [os.fsdecode(entry.target)]
        case _:
            return []
