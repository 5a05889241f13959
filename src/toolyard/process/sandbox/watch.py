"""Noticing that files behind the mounts of a sandbox were replaced, so that it must be built anew.

A mount hides the file that was there when it was made. A secret that is created later, or replaced, as most programs do
when they write a file, is behind no mount.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from toolyard.process.sandbox.backends.kernel import Kernel
from toolyard.process.sandbox.backends.system_calls import numbers_on

if TYPE_CHECKING:
    from collections.abc import Iterable


LOOK_ANYWAY_AFTER = 1.0
"""Since the kernel does not tell when a folder further up is replaced."""
CHANGES = 0x100 | 0x200 | 0x40 | 0x80 | 0x400 | 0x800
"""Flags of inotify: something was created, deleted or moved in a folder, or the folder itself was."""
ONLY_FOLDERS = 0x01000000
NOT_WATCHING = -1
FOLLOW_AT = 2
"""Which time of asking the kernel is asked to tell: to stop it again takes longer than to look once."""
MOST_HELD = 128
"""Of the descriptors that a process may have, which are often no more than a thousand."""
HANDLE = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC


class FileWatch:
    """Which file was at each path, or that there was none; asked at every call, so that it must be quick."""

    def __init__(self, exactly: Iterable[str] = (), roughly: Iterable[str] = ()) -> None:
        """`exactly` is checked each time; `roughly`, of which there are many, when its folder has changed."""
        self._held: list[int] = []
        self._exactly = {path: self._hold(path) for path in exactly}
        self._roughly = {path: identity_of(path) for path in roughly}
        self._events = NOT_WATCHING
        self._folders: dict[str, WatchedFolder] = {}
        self._looked = 0.0
        self._times_asked = 0

    def changed(self) -> bool:
        for path, identity in self._exactly.items():
            if identity_of(path) != identity:
                return True
        self._times_asked += 1
        if self._times_asked < FOLLOW_AT:
            return self._is_another()
        if self._times_asked == FOLLOW_AT or self._was_told():
            return self._look_again()
        if self._events != NOT_WATCHING and time.monotonic() - self._looked <= LOOK_ANYWAY_AFTER:
            return False
        self._looked = time.monotonic()
        return folders_of(self._roughly) != self._folders and self._look_again()

    def replaced(self, path: str) -> None:
        """A file was replaced and is guarded again: from now on it is the one that is there."""
        self._exactly[path] = self._hold(path)

    def close(self) -> None:
        for fd in self._held:
            os.close(fd)
        self._held.clear()
        self._stop_following()

    def _hold(self, path: str) -> tuple[int, int] | None:
        """Which file is at a path; as long as it is held, no other one gets its number."""
        if len(self._held) >= MOST_HELD:
            return identity_of(path)
        try:
            self._held.append(os.open(path, HANDLE))
        except OSError:
            return None
        facts = os.fstat(self._held[-1])
        return facts.st_dev, facts.st_ino

    def _stop_following(self) -> None:
        if self._events != NOT_WATCHING:
            os.close(self._events)
            self._events = NOT_WATCHING

    def _was_told(self) -> bool:
        """Whether the kernel told of a change in one of the folders."""
        if self._events == NOT_WATCHING:
            return False
        try:
            os.read(self._events, 1 << 16)
        except BlockingIOError:
            return False
        return True

    def _look_again(self) -> bool:
        """Compare the files themselves; before that follow other folders, if they are others by now."""
        folders = folders_of(self._roughly)
        if {path: facts.which for path, facts in folders.items()} == {
            path: facts.which for path, facts in self._folders.items()
        }:
            self._folders = folders
        else:
            self._follow()
        return self._is_another()

    def _is_another(self) -> bool:
        return any(identity_of(path) != identity for path, identity in self._roughly.items())

    def _follow(self) -> None:
        """Ask the kernel to tell of changes in the folders, and remember how they are now."""
        self._stop_following()
        if self._roughly:
            self._events = follow_folders(folders_of(self._roughly))
            self._folders = folders_of(self._roughly)


def follow_folders(folders: Iterable[str]) -> int:
    """A descriptor that can be read when something happens in one of them; NOT_WATCHING if the kernel has no more."""
    calls = numbers_on(os.uname().machine)
    kernel = Kernel()
    events = kernel.call(calls["inotify_init1"], os.O_NONBLOCK | os.O_CLOEXEC)
    if events < 0:
        return NOT_WATCHING
    for folder in folders:
        if kernel.call(calls["inotify_add_watch"], events, os.fsencode(folder) + b"\0", CHANGES | ONLY_FOLDERS) < 0:
            os.close(events)
            return NOT_WATCHING
    return events


class WatchedFolder(NamedTuple):
    """Which folder it is, and when something was last made or removed in it."""

    which: tuple[int, int]
    changed: int


def folders_of(paths: Iterable[str]) -> dict[str, WatchedFolder]:
    """The innermost existing folder above each path."""
    found: dict[str, WatchedFolder] = {}
    for path in paths:
        folder = os.path.dirname(path)
        while folder not in found:
            if facts := folder_facts(folder):
                found[folder] = facts
            elif folder == "/":
                break
            else:
                folder = os.path.dirname(folder)
    return found


def folder_facts(folder: str) -> WatchedFolder | None:
    try:
        facts = os.stat(folder)
    except OSError:
        return None
    return WatchedFolder((facts.st_dev, facts.st_ino), facts.st_mtime_ns)


def identity_of(path: str) -> tuple[int, int] | None:
    """Which file a path leads to now."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
