"""Whether the mounts of a sandbox are of what, and where, they were meant to be.

Bubblewrap mounts by path and follows links. Whoever can write the workspace already, in the sandbox of another
application, can exchange a folder for a link in the very moment, and back before anybody looks. The kernel's table of
mounts tells what was mounted where all the same.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORDS_OF = {
    **dict.fromkeys(("--bind", "--ro-bind"), 2),
    **dict.fromkeys(("--tmpfs", "--dev", "--proc", "--remount-ro", "--perms", "--size"), 1),
    **dict.fromkeys(("--uid", "--gid", "--cap-drop", "--chdir"), 1),
}
"""How many words belong to those options of bubblewrap's that we use and that have any."""
MADE_BY_BUBBLEWRAP = ("/dev", "/proc")
ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """One row of the table."""

    device: bytes
    root: str
    """What of the file system is mounted."""
    place: str


def are_as_meant(pid: int, prefix: Sequence[str]) -> bool:
    """Whether a process that bubblewrap has started with these options sees what they say, and nothing else mounted."""
    if not prefix:
        return True
    inside, outside = mounts_of(pid), mounts_of(os.getpid())
    top = {mount.place: mount for mount in inside}  # of several at one place the last is on top
    usual = {mount.place for mount in outside}
    meant = dict(places_in(prefix))
    if not top.keys() - usual <= meant.keys() | {place for place in top if is_below(place, MADE_BY_BUBBLEWRAP)}:
        return False
    writable = [source for option, source in pairwise(prefix) if option == "--bind"]
    return all(
        place in top and (source is None or is_of(top[place], as_mounted(source, writable), outside))
        for place, source in meant.items()
    )


def places_in(prefix: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    """Where something is mounted by these options, and what, if it is part of the disk."""
    at = 1
    while at < len(prefix) and prefix[at] != "--":
        option, count = prefix[at], WORDS_OF.get(prefix[at], 0)
        words = prefix[at + 1 : at + 1 + count]
        if count == 2:
            yield words[1], None if words[1] == os.sep else words[0]
        elif option in ("--tmpfs", "--dev", "--proc"):
            yield words[0], None
        at += 1 + count


def as_mounted(source: str, writable: Sequence[str]) -> str:
    """What a path means to bubblewrap; a link that a tool may have made must have been none."""
    return source if is_below(source, writable) else os.path.realpath(source)


def is_of(mount: Mount, source: str, outside: Sequence[Mount]) -> bool:
    """Whether a mount is of the file or folder that has this path outside."""
    around = max((one for one in outside if is_inside(source, one.place)), key=lambda one: len(one.place), default=None)
    if around is None:  # we are in a folder that is no mount, and the table says nothing of it
        return True
    holding = [one for one in outside if one.place == around.place][-1]
    root = os.path.normpath(os.path.join(holding.root, os.path.relpath(source, holding.place)))
    return (mount.device, mount.root) == (holding.device, root)


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(is_inside(path, folder) for folder in folders)


def mounts_of(pid: int) -> list[Mount]:
    """The table as a process sees it, in the order in which the mounts were made."""
    with open(f"/proc/{pid}/mountinfo", "rb") as table:
        rows = [line.split(b" ", 5) for line in table]
    return [Mount(row[2], unescaped(row[3]), unescaped(row[4])) for row in rows]


def unescaped(word: bytes) -> str:
    return os.fsdecode(ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), word))
