"""A lock that another holds is waited for, and given up."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from toolyard.files.locks import try_lock


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def test_a_lock_that_nobody_gives_back_is_given_up(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    try:
        assert try_lock(first, fcntl.LOCK_EX, 0.0)
        assert not try_lock(second, fcntl.LOCK_EX, 0.05)
    finally:
        os.close(first)
        os.close(second)


def test_a_lock_that_is_given_back_is_had_by_who_waits(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    had: list[bool] = []
    try:
        assert try_lock(first, fcntl.LOCK_EX, 0.0)
        waiting = threading.Thread(target=lambda: had.append(try_lock(second, fcntl.LOCK_EX, 60.0)))
        waiting.start()
        fcntl.flock(first, fcntl.LOCK_UN)
        waiting.join(60)
    finally:
        os.close(first)
        os.close(second)
    assert had == [True]
