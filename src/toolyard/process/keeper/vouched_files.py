"""What the guards of several applications in one workspace know of each other, so that they do not undo one another.

Each writes down what it has put into a guarded place, beside its list of what it guards. Another that finds just that
there, unchanged and open to nobody for writing, leaves it. They act one after the other, each with its inside stopped.
"""

from __future__ import annotations

import os
import time

from toolyard.process.keeper.held_files import LOOK_EVERY, content, facts_at, is_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SEPARATOR = b"\0"
TURN_WITHIN = 5.0
"""How long to wait for others; nobody takes so long."""
LOCK = "toolyard-guards.lock"


class VouchedFiles:
    """What we and others have put in place of what was replaced."""

    def __init__(self, listed: str) -> None:
        self._name = f"{os.path.basename(listed)}.vouched"
        self._own = os.path.join(os.path.dirname(listed), self._name)
        self._around = os.path.dirname(os.path.dirname(listed))
        self._lock = -1

    def take_turn(self) -> None:
        """Wait until no other guard is at work; where that takes too long, or cannot be known, go on."""
        import fcntl

        try:
            how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._lock = os.open(os.path.join(self._around, LOCK), how, 0o600)
        except OSError:
            return
        give_up_at = time.monotonic() + TURN_WITHIN
        while time.monotonic() < give_up_at:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(LOOK_EVERY)
            else:
                return

    def end_turn(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def vouch_for(self, paths: Iterable[str]) -> None:
        """From here on nothing but this is what their owner wants there."""
        told = b"".join(fingerprint(path) for path in paths)
        with open(os.open(self._own, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(told)

    def holds(self, path: str) -> bool:
        """Whether what is at a path is what one of us has put there, and nobody has changed it or can."""
        mark, facts = fingerprint(path), facts_at(path)
        if facts is None or facts.st_nlink != 1 or not mark or is_written(path):
            return False
        return any(mark in told for told in self._told())

    def _told(self) -> Iterable[bytes]:
        try:
            ours = os.geteuid()
            beside = [one.path for one in os.scandir(self._around) if one.stat(follow_symlinks=False).st_uid == ours]
        except OSError:
            return
        for folder in beside:
            yield content(os.path.join(folder, self._name)) or b""


def fingerprint(path: str) -> bytes:
    """Which file is at a path, with whose rights, and what it holds; nothing where none can be read."""
    import hashlib

    facts, data = facts_at(path), content(path)
    if facts is None or data is None:
        return b""
    numbers = f"{facts.st_dev} {facts.st_ino} {facts.st_mode} {facts.st_uid} {hashlib.sha256(data).hexdigest()}"
    return SEPARATOR + os.fsencode(path) + SEPARATOR + numbers.encode() + SEPARATOR
