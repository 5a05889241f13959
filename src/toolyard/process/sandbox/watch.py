"""Noticing that files behind the mounts of a sandbox were replaced, so that it must be built anew.

A mount hides the file that was there when it was made. A secret that is created later, or replaced, as most programs do
when they write a file, is behind no mount.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolyard.files.write_times import Identity
    from toolyard.process.sandbox.folder_events import FolderEvents, FolderGroup


MOST_HELD = 128
"""Of the descriptors that a process may have, which are often no more than a thousand."""
HANDLE = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC


class FileWatch:
    """Which file was at each path, or that there was none."""

    def __init__(self, events: FolderEvents, *, guarded: Iterable[str] = (), secret: Iterable[str] = ()) -> None:
        """The two are apart because tools work beside what is guarded, and little happens beside the many secrets."""
        self._held: list[int] = []
        self._watched = [
            (events.new_group(), {path: self._hold(path) for path in guarded}),
            (events.new_group(), {path: identity_of(path) for path in secret}),
        ]

    @property
    def groups(self) -> list[FolderGroup]:
        """Those in which there is something to look at."""
        return [group for group, files in self._watched if files]

    def changed(self) -> bool:
        """Whether it is another one by now, as far as the events were heard."""
        return any(has_changed(group, files) for group, files in self._watched)

    def close(self) -> None:
        for fd in self._held:
            os.close(fd)
        self._held.clear()

    def _hold(self, path: str) -> Identity | None:
        """Which file is at a path; as long as it is held, no other one gets its number."""
        if len(self._held) >= MOST_HELD:
            return identity_of(path)
        try:
            self._held.append(os.open(path, HANDLE))
        except OSError:
            return None
        facts = os.fstat(self._held[-1])
        return facts.st_dev, facts.st_ino


def has_changed(group: FolderGroup, files: Mapping[str, Identity | None]) -> bool:
    if not files or not group.is_look_due(lambda: folders_of(files)):
        return False
    if all(identity_of(path) == which for path, which in files.items()):
        return False
    group.forget()
    return True


def folders_of(paths: Iterable[str]) -> set[str]:
    """The innermost existing folder above each path."""
    found: set[str] = set()
    for path in paths:
        folder = os.path.dirname(path)
        while folder not in found:
            if os.path.isdir(folder):
                found.add(folder)
            elif folder == os.sep:
                break
            else:
                folder = os.path.dirname(folder)
    return found


def identity_of(path: str) -> Identity | None:
    """Which file a path leads to now."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def stamp(path: str) -> tuple[int, int, int]:
    """Something that changes when a file does."""
    try:
        facts = os.lstat(path)
    except OSError:
        return 0, 0, 0
    return facts.st_ino, facts.st_ctime_ns, facts.st_size
