"""What stands in the place of files that must not come to be, while a sandbox lasts.

A mount needs something to be mounted on. So an empty folder, or a file that changes nothing for whoever reads it, is
put there, hidden from nobody, and removed again by the last sandbox that needs it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Placeholder", "Placeholders", "move_unwanted", "remove_unclaimed"]

Placeholder = tuple[str, bytes | None]
"""A path, and the content of a file; None for a folder."""


class Placeholders:
    """Put there at once, and removed when nobody needs them any more."""

    def __init__(self, wanted: Sequence[Placeholder]) -> None:
        self.put = [one for one in wanted if is_put(one)]
        """Those that could be; where we cannot make anything, nobody inside can."""
        self._claims = [claim(folder) for folder in sorted({os.path.dirname(path) for path, _ in self.put})]

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


def claim(folder: str) -> int:
    """Say that we need something in a folder, as long as we hold this."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # whoever holds it for ever shall not stop us
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
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
        place = f"{path}.from-sandbox"
        number = 1
        while os.path.lexists(place):
            number += 1
            place = f"{path}.from-sandbox-{number}"
        with contextlib.suppress(OSError):
            os.rename(path, place)
            moved[path] = place
    return moved
