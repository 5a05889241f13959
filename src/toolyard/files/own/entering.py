"""Files and folders of the application's own that may lie where tools work: nothing there is reached by a link.

A path here is one that is known to have none (see `Door.real_folder`). Each time it is entered anew by a handle, and
what is in it is opened, listed and removed by that: so it does not matter what anybody exchanges meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from toolyard.files.atomic import replace_within
from toolyard.files.steps import open_folder, open_itself, step_into

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READING = os.O_RDONLY | os.O_CLOEXEC
NEVER_ELSEWHERE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""No link leads away, and nobody is waited for at a pipe."""


def enter(path: str | Path, *, make: bool = False, mode: int = 0o700) -> int:
    """A handle on a folder, made with what is above it if it is missing and shall be; OSError for a link on the way."""
    whole = os.path.abspath(path)

    def step_or_make(name: str, folder: int) -> int:
        try:
            return step_into(name, folder)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=folder)
            return step_into(name, folder)

    try:
        return open_itself(whole)
    except FileNotFoundError:
        if not make:
            raise
        return open_folder(os.sep, filter(None, whole.split(os.sep)), step_or_make)
    except NotADirectoryError as error:
        raise OSError(error.errno, f"{error.strerror}, or a link is on the way to it", whole) from None


@contextlib.contextmanager
def entered(path: str | Path, *, make: bool = False, mode: int = 0o700) -> Iterator[int]:
    """The same for a while."""
    folder = enter(path, make=make, mode=mode)
    try:
        yield folder
    finally:
        os.close(folder)


def open_own(path: str | Path, flags: int = READING, mode: int = 0o600) -> int:
    """Open a regular file; OSError for anything else, such as a link or a pipe."""
    above, name = os.path.split(os.path.abspath(path))
    with entered(above) as folder:
        return open_within(folder, name, flags, mode)


def open_within(folder: int, name: str, flags: int = READING, mode: int = 0o600) -> int:
    """The same in a folder that was entered."""
    try:
        fd = os.open(name, flags | NEVER_ELSEWHERE, mode, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise OSError(error.errno, "it is a link or no regular file", name) from None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "it is no regular file", name)


def reading_own(path: str | Path) -> BinaryIO:
    """A file, to be read."""
    return open(open_own(path), "rb")


def read_own(path: str | Path) -> bytes:
    with reading_own(path) as file:
        return file.read()


def has_own(path: str | Path) -> bool:
    """Whether there is anything of that name, wherever it leads."""
    try:
        facts_of_own(path)
    except OSError:
        return False
    return True


def facts_of_own(path: str | Path) -> os.stat_result:
    """Of a file itself."""
    above, name = os.path.split(os.path.abspath(path))
    with entered(above) as folder:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def touch_own(path: str | Path) -> None:
    """Let a file be of now; one that is a link stays as it is, and so does where it leads."""
    above, name = os.path.split(os.path.abspath(path))
    with entered(above) as folder:
        os.utime(name, dir_fd=folder, follow_symlinks=False)


def replace_own(path: str | Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file as a whole, as `atomic.replace_file` does."""
    above, name = os.path.split(os.path.abspath(path))
    with entered(above) as folder:
        replace_within(folder, name, data, durable=durable)


def remove_own(path: str | Path) -> None:
    """Remove a file, if it is there."""
    above, name = os.path.split(os.path.abspath(path))
    with contextlib.suppress(FileNotFoundError), entered(above) as folder:
        os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def listed(folder: int) -> Iterator[Iterator[os.DirEntry[str]]]:
    """What is in a folder that was entered."""
    fd = os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(fd) as entries:
            yield entries
    finally:
        os.close(fd)
