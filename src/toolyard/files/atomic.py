"""Writing a file so that a reader, or a crash, sees the old content or the new, and never half of it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, data: bytes, *, durable: bool = False, with_folder: bool = True) -> None:
    """Write beside the file and move into place; with `durable` it is on the disk when this returns.

    Who moves more into the same folder syncs that once, at the end, and says so by `with_folder`.
    """
    # Named here and not by `tempfile`, which takes five milliseconds to import.
    name = os.path.join(path.parent, f".{path.name}.{os.urandom(8).hex()}")
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(fd)
        os.replace(name, path)
        if durable and with_folder:
            sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def sync_folder(folder: Path) -> None:
    """A file that was moved into place is there after a crash only when its folder is on the disk, too."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
