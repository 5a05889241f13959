"""Waiting for a lock on an open file, but not for ever."""

from __future__ import annotations

import fcntl
import time

AGAIN_AFTER = 0.001
LONGEST_PAUSE = 0.02


def try_lock(fd: int, kind: int, patience: float) -> bool:
    """Lock a file as `fcntl.LOCK_EX` or `LOCK_SH`; False when that could not be had within so many seconds."""
    give_up_at, pause = 0.0, AGAIN_AFTER
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            give_up_at = give_up_at or time.monotonic() + patience
            if time.monotonic() >= give_up_at:
                return False
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
