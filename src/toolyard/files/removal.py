"""Removing a folder that others filled: however deep it is, whatever they closed, and never anything but it."""

from __future__ import annotations

import contextlib
import itertools
import os

from toolyard.files.steps import set_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def remove_tree(path: str) -> None:
    """Remove a folder with all that is in it, as far as that can be done.

    Folders in folders are moved to the top before they are emptied. So depth costs neither calls within calls nor open
    files, and no path is ever too long.
    """
    with contextlib.suppress(OSError), opened(path) as top:
        mark = f".{os.urandom(8).hex()}"
        names = (f"{mark}-{number}" for number in itertools.count())
        waiting = raise_folders(top, top, names)
        while waiting:
            name = waiting.pop()
            with contextlib.suppress(OSError):
                with opened(name, top) as folder:
                    waiting += raise_folders(folder, top, names)
                os.rmdir(name, dir_fd=top)
    with contextlib.suppress(OSError):
        os.rmdir(path)


def raise_folders(folder: int, top: int, names: Iterator[str]) -> list[str]:
    """Empty a folder: its files are gone then, and its folders at the top under new names, which are returned."""
    raised = []
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                move(name, folder, fresh := next(names), top)
                set_mode(fresh, 0o700, top)
                raised.append(fresh)
    return raised


def move(name: str, folder: int, fresh: str, top: int) -> None:
    """Move a folder. What is mounted in it cannot be moved, and so is neither entered nor given other rights."""
    try:
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:  # of one that is closed to us only we ourselves can tell
        set_mode(name, 0o700, folder)
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)


@contextlib.contextmanager
def opened(path: str, above: int | None = None) -> Iterator[int]:
    """A folder, never one that a link leads to."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)
