"""Writing a file so that a reader, or a crash, sees the old content or the new, and never half of it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from toolyard.files.steps import PASSING

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write beside the file and move into place; with `durable` it is on the disk when this returns."""
    folder = os.open(path.parent, PASSING)
    try:
        replace_within(folder, path.name, data, durable=durable)
    finally:
        os.close(folder)


def replace_within(folder: int, path: str, data: bytes, *, durable: bool = False, with_folder: bool = True) -> None:
    """The same in an open folder.

    Who moves more into it syncs that once, at the end, and says so by `with_folder`.
    """
    # Named here and not by `tempfile`, which takes five milliseconds to import.
    name = f".{path}.{os.urandom(8).hex()}"
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(fd)
        os.replace(name, path, src_dir_fd=folder, dst_dir_fd=folder)
        if durable and with_folder:
            sync_folder(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def sync_folder(folder: int) -> None:
    """A file that was moved into place is there after a crash only when its folder is on the disk, too."""
    fd = os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
