"""What stays of a guarded folder that its owner replaced, or of one further up, while something ran inside.

All inside has ended when this is asked. What is in the new folder then may have been put there by somebody inside, but
for what is just as it was in the folder that was guarded. It is put aside; what comes later is its owner's.
"""

from __future__ import annotations

import os
import stat
import time

from toolyard.process.keeper.held_files import SAFELY, SETTLED_WITHIN, settle
from toolyard.process.sandbox.mount_points import folder_itself, move_aside, writable
from toolyard.process.sandbox.replaced_files import Outcome, content_at, put_aside

MOST_COMPARED = 2_000
"""Entries; of a folder that holds more, all is put aside."""
AS_FOLDER = SAFELY | os.O_DIRECTORY


class TooManyEntries(Exception):
    """More than can be compared while somebody waits."""


def put_folder_aside(path: str, before: int) -> list[Outcome]:
    """Put aside what is at a path and was not so in the folder that is held open."""
    if not os.path.lexists(path):
        return []
    try:
        with folder_itself(os.path.dirname(path)) as above:
            new = os.open(os.path.basename(path), AS_FOLDER, dir_fd=above)
    except OSError:  # it is none, or somebody closed it to us
        return [put_aside(path)]
    try:
        return Comparison().put_aside(path, new, before)
    except (TooManyEntries, OSError):
        return [put_aside(path)]
    finally:
        os.close(new)


class Comparison:
    """Of a new folder with the one that was there before it."""

    def __init__(self) -> None:
        self._left = MOST_COMPARED
        self._give_up_at = time.monotonic() + SETTLED_WITHIN

    def put_aside(self, path: str, new: int, before: int) -> list[Outcome]:
        """Give another name to each entry that was not there before, or was another one."""
        found: list[Outcome] = []
        for name in os.listdir(new):
            self._left -= 1
            if self._left < 0:
                raise TooManyEntries
            place = os.path.join(path, name)
            if is_folder(name, new) and is_folder(name, before):
                found += self._below(place, name, new, before)
            elif not is_same(name, new, before) and not self._becomes_same(name, new, before):
                with writable(new):
                    found.append(Outcome(place, os.path.join(path, move_aside(name, new)), "ended"))
        return found

    def _becomes_same(self, name: str, new: int, before: int) -> bool:
        """Whether it is as before once its owner, who writes it just now, has done so."""
        if time.monotonic() > self._give_up_at or not is_same_kind(name, new, before):
            return False
        settle(f"/proc/self/fd/{new}/{name}")
        return is_same(name, new, before)

    def _below(self, path: str, name: str, new: int, before: int) -> list[Outcome]:
        opened = [os.open(name, AS_FOLDER, dir_fd=folder) for folder in (new, before)]
        try:
            return self.put_aside(path, *opened)
        finally:
            for fd in opened:
                os.close(fd)


def is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def is_same_kind(name: str, new: int, before: int) -> bool:
    """Whether both folders have a regular file under a name."""
    try:
        return all(stat.S_ISREG(os.stat(name, dir_fd=each, follow_symlinks=False).st_mode) for each in (new, before))
    except OSError:
        return False


def is_same(name: str, new: int, before: int) -> bool:
    """Whether two folders have the same file, or the same link, under a name; who may run it counts, too."""
    try:
        facts = [os.stat(name, dir_fd=folder, follow_symlinks=False) for folder in (new, before)]
        if facts[0].st_mode != facts[1].st_mode:
            return False
        if stat.S_ISLNK(facts[0].st_mode):
            return os.readlink(name, dir_fd=new) == os.readlink(name, dir_fd=before)
        data = [content_at(name, folder) for folder in (new, before)]
    except OSError:
        return False
    return data[0] is not None and data[0] == data[1]
