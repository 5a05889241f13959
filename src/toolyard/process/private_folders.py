"""Folders that only we can enter, in memory where there is such a place."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time

__all__ = ["SharedFolder", "private_folder"]

PREFIX = "toolyard-"
SHARED = "toolyard-shared-"
UNCLAIMED_FOR = 60.0
"""How old a folder without an owner must be before it counts as left behind."""


def private_folder(base: str | None = None) -> str:
    """A new folder, in `base` or in the first place that has room; OSError when there is none."""
    return new_folder([base] if base else bases(), PREFIX)


class SharedFolder:
    """A folder for what the inside and the outside of a sandbox share, claimed as long as we live.

    Whoever is killed leaves its folder behind; the next one to make a folder removes it.
    """

    def __init__(self) -> None:
        self.path = new_folder(bases(), SHARED)
        self._claim = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._claim, fcntl.LOCK_SH)
        for name in ("empty", "tmp"):
            os.mkdir(os.path.join(self.path, name), 0o700)
        sweep(os.path.dirname(self.path))

    def remove(self) -> None:
        """Give it up, with all that is in it."""
        os.close(self._claim)
        shutil.rmtree(self.path, ignore_errors=True)


def bases() -> list[str]:
    """Where such folders may be, the best place first."""
    places = (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm", tempfile.gettempdir())  # noqa: S108 - ours alone
    return [place for place in places if place and os.access(place, os.W_OK | os.X_OK)]


def new_folder(places: list[str], prefix: str) -> str:
    reason: OSError = FileNotFoundError("no folder for temporary files can be written")
    for place in places:
        try:
            return os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=place))
        except OSError as error:
            reason = error
    raise reason


def sweep(place: str) -> None:
    """Remove shared folders of processes that are no more."""
    with os.scandir(place) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(SHARED)]
    for path in found:
        try:
            if os.lstat(path).st_uid == os.geteuid() and time.time() - os.lstat(path).st_mtime > UNCLAIMED_FOR:
                remove_unclaimed(path)
        except OSError:
            continue


def remove_unclaimed(path: str) -> None:
    claim = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(claim)
