"""Opening a folder step by step, so that no link on the way makes us work elsewhere, and making things in it.

Also whoever cleans up after us needs this, with nothing installed, so it imports next to nothing.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PASSING = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""A handle that is only for going on from there."""


NAMED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
"""A handle on something itself, for which no rights on it are needed."""


def set_mode(name: str, mode: int, folder: int) -> None:
    """Of a folder or a file itself, never of what a link leads to that may by now be in its place."""
    fd = os.open(name, NAMED, dir_fd=folder)
    try:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            return
        if hasattr(os, "O_PATH"):
            os.chmod(f"/proc/self/fd/{fd}", mode)  # such a handle gives no rights by itself
        else:
            os.fchmod(fd, mode)
    finally:
        os.close(fd)


def step_into(name: str, folder: int) -> int:
    """Open a folder in an open folder; OSError for a link."""
    return os.open(name, PASSING | os.O_NOFOLLOW, dir_fd=folder)


def own_like(name: str, folder: int) -> None:
    """What root makes in a folder of somebody's is that one's."""
    if os.geteuid() == 0:
        facts = os.fstat(folder)
        os.chown(name, facts.st_uid, facts.st_gid, dir_fd=folder, follow_symlinks=False)


def spare_name() -> str:
    """A name that nothing has, for a file that is written beside another and moved into its place."""
    return f".toolyard-{os.urandom(8).hex()}"


def open_folder(top: str, names: Iterable[str], step: Callable[[str, int], int] = step_into) -> int:
    """The folder that names lead to from a top, of which all that is above is trusted."""
    return walk_from(os.open(top, PASSING), names, step)


def open_itself(path: str, step: Callable[[str, int], int] = step_into) -> int:
    """The folder at an absolute path, with no link on the way; OSError where there is one.

    Mostly one step is enough: where the kernel itself calls what was opened by that path, no link has led there.
    """
    try:
        fd = os.open(path, PASSING | os.O_NOFOLLOW)
    except OSError:
        return open_folder("/", filter(None, path.split(os.sep)), step)
    try:
        if os.readlink(f"/proc/self/fd/{fd}") == path:
            return fd
    except OSError:
        pass  # it cannot tell
    os.close(fd)
    return open_folder("/", filter(None, path.split(os.sep)), step)


def walk_from(fd: int, names: Iterable[str], step: Callable[[str, int], int]) -> int:
    """The folder that names lead to from an open one, which is closed."""
    try:
        for name in names:
            above, fd = fd, step(name, fd)
            os.close(above)
    except BaseException:
        os.close(fd)
        raise
    return fd
