"""Seeing that a sandbox made of mounts does not hide or guard any more what it should.

A mount hides the file that was there when it was made. A secret that its owner writes anew, as most programs do by
putting a new file in the place of the old one, or that comes to be only later, is behind no mount.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Watch", "identity_of"]


class Watch:
    """Which file was at each path, or that there was none; asked at every call, so that it must be quick."""

    def __init__(self, exactly: Iterable[str] = (), roughly: Iterable[str] = ()) -> None:
        """`exactly` is looked at each time; `roughly`, of which there are many, when its folder has changed."""
        self._exactly = {path: identity_of(path) for path in exactly}
        self._roughly = {path: identity_of(path) for path in roughly}
        self._folders = folders_of(self._roughly)

    def changed(self) -> bool:
        """Whether another file is at one of the paths."""
        for path, identity in self._exactly.items():
            if identity_of(path) != identity:
                return True
        for folder, changed in self._folders.items():
            if changed_at(folder) != changed:
                return self._look_again()
        return False

    def _look_again(self) -> bool:
        folders = folders_of(self._roughly)
        if any(identity_of(path) != identity for path, identity in self._roughly.items()):
            return True
        self._folders = folders
        return False


def folders_of(paths: Iterable[str]) -> dict[str, int]:
    """The innermost folders above the paths that there are, and when something last came to be or went in each."""
    found: dict[str, int] = {}
    for path in paths:
        folder = os.path.dirname(path)
        while folder not in found:
            if changed := changed_at(folder):
                found[folder] = changed
            elif folder == "/":
                break
            else:
                folder = os.path.dirname(folder)
    return found


def changed_at(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def identity_of(path: str) -> tuple[int, int] | None:
    """Which file a path leads to now."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
