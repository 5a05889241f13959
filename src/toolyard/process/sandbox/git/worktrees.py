"""Worktrees that git inside adds: it writes down where their repository is inside, and outside that is elsewhere."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from toolyard.files.inside import is_inside
from toolyard.files.plain_text import text_of
from toolyard.process.sandbox.git.private_common import ITSELF
from toolyard.process.sandbox.mount_points import folder_itself

if TYPE_CHECKING:
    from collections.abc import Sequence


LONGEST = 1 << 14
TICK = 20_000_000
"""In nanoseconds: what happens within it may have the same time."""


class AddedWorktrees:
    """Those of one repository, in some folders; what they say is true inside during calls, and outside after them."""

    def __init__(self, git: str, place: str, roots: Sequence[str]) -> None:
        self._outside, self._inside = f"{git}/worktrees", f"{place}/worktrees"
        self._roots = [os.path.realpath(root) for root in roots]
        self._added: dict[str, str] = {}
        """Those that were added inside, by their names, and where they are."""
        self._empty_since = 0
        """When the folder of their names was last changed, if it had none then."""

    def tell_inside(self) -> None:
        """A call begins: git inside compares what they say with where it finds them."""
        for name, worktree in self._added.items():
            rewrite(worktree, f"{self._outside}/{name}", f"{self._inside}/{name}")

    def tell_outside(self) -> None:
        """A call has ended."""
        for name in self._names():
            worktree, pointer = os.path.split(text_of(f"{self._outside}/{name}/gitdir").rstrip("\r\n"))
            is_there = pointer == ".git" and any(is_inside(worktree, root) for root in self._roots)
            if is_there and rewrite(worktree, f"{self._inside}/{name}", f"{self._outside}/{name}"):
                self._added[name] = worktree

    def _names(self) -> list[str]:
        """All there are; none, without a look, as long as nothing was made in a folder that had none."""
        try:
            changed = os.stat(self._outside).st_ctime_ns
        except OSError:
            return []
        if changed == self._empty_since:
            return []
        names = [name for name in names_in(self._outside) if name != ITSELF]
        is_settled = time.time_ns() - changed > TICK
        self._empty_since = changed if is_settled and not names else 0
        return names


def rewrite(worktree: str, before: str, after: str) -> bool:
    """Change what the pointer of a worktree says, if it says what is expected; whether it did. No link is followed."""
    with contextlib.suppress(OSError), folder_itself(worktree) as folder:
        fd = os.open(".git", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with open(fd, "r+b") as file:
            if file.read(LONGEST) != os.fsencode(f"gitdir: {before}\n"):
                return False
            file.seek(0)
            file.write(os.fsencode(f"gitdir: {after}\n"))
            file.truncate()
            return True
    return False


def names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
