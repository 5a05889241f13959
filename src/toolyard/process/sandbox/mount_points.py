"""What stands in the place of files that must not come to be, while a sandbox lasts.

A mount needs something to be mounted on. So an empty folder, or a file that changes nothing for whoever reads it, is
put there, hidden from nobody, and removed again by the last sandbox that needs it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


Placeholder = tuple[str, bytes | None]
"""A path, and the content of a file; None for a folder."""
MOST_KEPT = 100
CLAIM_TRIES, CLAIM_PAUSE = 20, 0.002
STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Placeholders:
    """Put there at once, and removed when nobody needs them any more."""

    def __init__(self, wanted: Sequence[Placeholder]) -> None:
        # Claimed first: another sandbox that ends just now would else remove what we have seen to be there.
        folders = sorted({os.path.dirname(path) for path, _ in wanted})
        self._claims = [fd for folder in folders if (fd := claim(folder)) is not None]
        self.put = [one for one in wanted if is_put(one)]
        """Those that could be; where we cannot make anything, nobody inside can."""

    def remove(self) -> None:
        """Remove what is still as it was and what no other sandbox needs."""
        for fd in self._claims:
            os.close(fd)
        self._claims.clear()
        remove_unclaimed(self.put)


def remove_unclaimed(placeholders: Iterable[Placeholder]) -> None:
    """Remove placeholders in folders that no sandbox claims."""
    for path, content in placeholders:
        with contextlib.suppress(OSError):
            fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path, content)
            finally:
                os.close(fd)


def is_put(one: Placeholder) -> bool:
    """Put a placeholder, unless it is there."""
    path, content = one
    try:
        if content is None:
            os.makedirs(path)
        else:
            with open(path, "xb") as file:
                file.write(content)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def claim(folder: str) -> int | None:
    """Say that we need something in a folder, as long as we hold this."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    for _ in range(CLAIM_TRIES):  # whoever removes something holds it for a moment; one for ever shall not stop us
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            time.sleep(CLAIM_PAUSE)
        else:
            break
    return fd


def remove(path: str, content: bytes | None) -> None:
    """Remove what is as we put it."""
    if content is None:
        os.rmdir(path)
        return
    with open(path, "rb") as file:
        unchanged = file.read(len(content) + 1) == content
    if unchanged:
        os.unlink(path)


def move_unwanted(paths: Iterable[str]) -> dict[str, str]:
    """Move away what must not have come to be; where each went."""
    moved = {}
    for path in paths:
        if not os.path.lexists(path):
            continue
        with contextlib.suppress(OSError), folder_itself(os.path.dirname(path)) as folder:
            name = os.path.basename(path)
            place = free_name(f"{name}.from-sandbox", folder)
            os.rename(name, place, src_dir_fd=folder, dst_dir_fd=folder)
            moved[path] = os.path.join(os.path.dirname(path), place)
    return moved


@contextlib.contextmanager
def folder_itself(path: str) -> Iterator[int]:
    """A folder by its own path: whoever puts a link on the way to it must not have us move what is elsewhere."""
    fd = os.open("/", STEP)
    try:
        for name in path.split(os.sep):
            if name:
                above, fd = fd, os.open(name, STEP, dir_fd=fd)
                os.close(above)
        yield fd
    finally:
        os.close(fd)


def free_name(wanted: str, folder: int) -> str:
    """A name that nothing has; a random one if somebody took all the usual ones."""
    usual = (wanted, *(f"{wanted}-{number}" for number in range(2, MOST_KEPT)))
    return next((name for name in usual if is_free(name, folder)), f"{wanted}-{os.urandom(8).hex()}")


def is_free(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return False
