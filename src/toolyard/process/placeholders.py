"""What stands in the place of files that must not come to be, while a sandbox lasts.

A mount needs something to be mounted on. So an empty folder or file is put there, hidden from nobody, and removed
again by the last sandbox that needs it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.process.sandbox_layout import Placeholder

__all__ = ["Placeholders"]


class Placeholders:
    """Put there at once, and removed when nobody needs them any more."""

    def __init__(self, wanted: Sequence[Placeholder]) -> None:
        self._wanted = wanted
        self._claims = {folder: claim(folder) for folder in {os.path.dirname(one.path) for one in wanted}}
        for one in wanted:
            with contextlib.suppress(FileExistsError):
                put(one)

    def remove(self) -> None:
        """Remove what is still empty and what no other sandbox needs."""
        for folder, fd in self._claims.items():
            with contextlib.suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for one in self._wanted:
                    if os.path.dirname(one.path) == folder:
                        remove_empty(one)
            os.close(fd)
        self._claims.clear()


def claim(folder: str) -> int:
    """Say that we need something in a folder, as long as we hold this."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # whoever holds it for ever shall not stop us
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return fd


def put(one: Placeholder) -> None:
    if one.kind == "folder":
        os.mkdir(one.path)
    else:
        os.close(os.open(one.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))


def remove_empty(one: Placeholder) -> None:
    with contextlib.suppress(OSError):
        if one.kind == "folder":
            os.rmdir(one.path)
        elif os.path.getsize(one.path) == 0:
            os.unlink(one.path)
