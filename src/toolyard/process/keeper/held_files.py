"""Files and folders that are guarded, as they were: which ones they are, and what they hold."""

from __future__ import annotations

import os
import stat
import time

MOST_READ = 1 << 20
SETTLED_WITHIN, LOOK_EVERY = 1.0, 0.0002
SAFELY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ONLY_HELD = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_HELD = -1


class HeldFile:
    """What was at a path when it was surely guarded; as long as it is held, nothing else gets its number."""

    def __init__(self, path: str) -> None:
        self.fd = open_or_hold(path)
        self.facts = os.fstat(self.fd) if self.fd != NOT_HELD else facts_at(path)
        self.which = (self.facts.st_dev, self.facts.st_ino) if self.facts else None
        """None where there was nothing."""
        self.content = content(self.fd) if self.is_file else None
        """In the moment of a rename even the file before can be written."""

    @property
    def is_folder(self) -> bool:
        return self.facts is not None and stat.S_ISDIR(self.facts.st_mode)

    @property
    def is_file(self) -> bool:
        return self.facts is not None and stat.S_ISREG(self.facts.st_mode)

    def is_still_at(self, path: str) -> bool:
        return identity(path) == self.which

    def close(self) -> None:
        if self.fd != NOT_HELD:
            os.close(self.fd)
            self.fd = NOT_HELD


def open_or_hold(path: str) -> int:
    """What is at a path, to be read or at least held, as a socket can be; -1 where not even that can be done."""
    for how in (SAFELY, ONLY_HELD):
        try:
            return os.open(path, how)
        except OSError:
            continue
    return NOT_HELD


def facts_at(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def identity(path: str) -> tuple[int, int] | None:
    """Which file is at a path."""
    facts = facts_at(path)
    return (facts.st_dev, facts.st_ino) if facts else None


def content(file: str | int) -> bytes | None:
    """What a regular file holds, by its path or its descriptor; None when it is none, or is too long."""
    try:
        fd = os.open(file, SAFELY) if isinstance(file, str) else os.dup(file)
    except OSError:
        return None
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_READ:
            return None
        return os.pread(fd, MOST_READ, 0)
    except OSError:
        return None
    finally:
        os.close(fd)


def settle(path: str) -> None:
    """Wait until an editor that makes the file anew has done so; not for longer than a moment."""
    give_up_at = time.monotonic() + SETTLED_WITHIN
    while is_written(path) and time.monotonic() < give_up_at:
        time.sleep(LOOK_EVERY)


def is_written(path: str) -> bool:
    """Whether somebody may have a file open for writing, or there is none."""
    import fcntl

    try:
        fd = os.open(path, SAFELY)
    except OSError:
        return True
    try:
        # The kernel gives a lease for reading only on what nobody has open for writing.
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
