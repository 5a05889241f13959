"""Folders that only our user can enter, in memory where there is such a place.

What runs in a sandbox may put anything into a folder that it shares with us: a link in the place of a file must not
make us read or write elsewhere. So files are opened by one name, relative to the open folder, and never through a link.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from typing import TYPE_CHECKING

from toolyard.files.removal import remove_tree
from toolyard.files.user_folders import is_named_in_record, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


PREFIX = "toolyard-"
SHARED = "toolyard-shared-"
UNCLAIMED = "toolyard-new-"
"""Of a folder that is about to be claimed."""
UNCLAIMED_FOR = 60.0
"""How old such a one must be before it counts as left behind."""
MOST_READ = 1 << 26
SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class PrivateFolder:
    """A new folder of ours, whose files others may have changed or replaced."""

    def __init__(self, base: str | None = None) -> None:
        """In `base`, or in the first usual place that can be written; OSError when there is none."""
        self.path = new_folder([base] if base else base_folders(), PREFIX)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | SAFELY)

    def place(self, name: str) -> str:
        return os.path.join(self.path, name)

    def new_file(self, name: str) -> int:
        """An open file that was not there before."""
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | SAFELY, 0o600, dir_fd=self._fd)

    def write(self, name: str, data: bytes) -> None:
        with open(self.new_file(name), "wb") as file:
            file.write(data)

    def read(self, name: str, most: int = MOST_READ) -> bytes:
        """What a file holds, at most so much of it; OSError when it is none."""
        fd = os.open(name, os.O_RDONLY | SAFELY, dir_fd=self._fd)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError("it is not a file")
            return file.read(most)

    def new_pipe(self, name: str, mode: int) -> int:
        os.mkfifo(name, 0o600, dir_fd=self._fd)
        fd = os.open(name, mode | SAFELY, dir_fd=self._fd)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError("it is not a pipe")
        return fd

    def remove_file(self, name: str) -> None:
        os.unlink(name, dir_fd=self._fd)

    def remove(self) -> None:
        self.close()
        remove_tree(self.path)

    def close(self) -> None:
        """Close it; whoever else uses it removes it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SharedFolder:
    """The folder that the inside and the outside of a sandbox share, locked as long as we live.

    An application that is killed leaves its folder behind; the next one to make a folder removes it.
    """

    def __init__(self, base: str | None = None) -> None:
        self.path, self._claim = claim_folder([base] if base else base_folders())
        self.exchange = os.path.join(self.path, "exchange")
        """Written by both sides."""
        self.view = os.path.join(self.path, "view")
        """Where a sandbox can put a view of all files, in mounts of its own."""
        os.mkdir(self.exchange, 0o700)
        remove_abandoned(os.path.dirname(self.path))

    def remove(self) -> None:
        os.close(self._claim)
        remove_tree(self.path)


def base_folders() -> list[str]:
    """Where such folders may be, the best one first."""
    places = (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm", temporary_folder())  # noqa: S108 - ours alone
    return [place for place in places if place and os.access(place, os.W_OK | os.X_OK)]


def new_folder(places: list[str], prefix: str) -> str:
    reason: OSError = FileNotFoundError("no folder for temporary files can be written")
    for place in places:
        try:
            os.mkdir(path := os.path.join(os.path.realpath(place), f"{prefix}{os.urandom(8).hex()}"), 0o700)
            return path
        except OSError as error:
            reason = error
    raise reason


def claim_folder(places: list[str]) -> tuple[str, int]:
    """A new folder, and the descriptor that holds its lock as long as we live. It gets its name when it is locked."""
    unclaimed = new_folder(places, UNCLAIMED)
    claim = os.open(unclaimed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(claim, fcntl.LOCK_SH)
    path = os.path.join(os.path.dirname(unclaimed), SHARED + os.path.basename(unclaimed).removeprefix(UNCLAIMED))
    os.rename(unclaimed, path)
    return path, claim


def remove_abandoned(base: str) -> None:
    """Remove shared folders of processes that are no more."""
    with os.scandir(base) as entries:
        found = [entry.path for entry in entries if entry.name.startswith((SHARED, UNCLAIMED))]
    for path in found:
        with contextlib.suppress(OSError):
            facts = os.lstat(path)
            is_new = os.path.basename(path).startswith(UNCLAIMED) and time.time() - facts.st_mtime < UNCLAIMED_FOR
            if facts.st_uid == os.geteuid() and not is_new and not is_named_in_record(os.path.basename(path)):
                remove_if_unclaimed(path)


def remove_if_unclaimed(path: str) -> None:
    with claimed_alone(path):
        remove_tree(path)


@contextlib.contextmanager
def claimed_alone(path: str) -> Iterator[None]:
    """Hold the lock of a folder whose owner is gone; OSError when the owner lives or the folder is not there."""
    claim = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(claim)
