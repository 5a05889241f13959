"""A repository that git inside has to itself: a folder of ours in the place of `.git`, and the real one out of reach.

Git inside writes there whatever it likes, and nobody outside obeys that. The real objects can be read inside; new ones
are made in the folder. What may travel between the two is exchanged before and after calls (`exchange.py`).
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, NamedTuple

from toolyard.files.inside import is_inside
from toolyard.files.plain_text import data_itself, text_itself
from toolyard.files.removal import remove_tree
from toolyard.process.sandbox.git.submodules import entries_of
from toolyard.process.sandbox.mount_points import REPOSITORY, folder_itself, listing_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from toolyard.process.sandbox.mount_points import MountPoint


REAL_OBJECTS = "objects-outside"
"""Where the real objects are inside, in the git folder."""
EXCHANGED = {
    *("objects", "refs", "logs", "info", "worktrees", "modules", "rebase-merge", "rebase-apply", "sequencer"),
    *("rr-cache", "branches", "remotes", REAL_OBJECTS),
}
"""Folders that git inside has for itself, or that only git outside reads."""
MOST_SHOWN = 16


class InsideRepository(NamedTuple):
    """A git folder that is another one inside."""

    git: str
    is_new: bool = False
    """Whether there is no repository yet, only room for one."""
    is_below_another: bool = False
    """Whether what is to be new lies in another repository, which git must go on finding from there."""
    is_nested: bool = False
    """Whether it lies in a folder below the workspace, of which there can be many, so that it must not cost much."""

    def mount_points(self) -> list[MountPoint]:
        """What has to be there so that it can be mounted; parents first.

        Where nothing is above, the room is a repository without anything, so that git outside stops at it, and does not
        take the folder around it for one by what lies in there.
        """
        if not self.is_new:
            return []
        return [(self.git, None if self.is_below_another else REPOSITORY), (f"{self.git}/objects", None)]

    def shown(self) -> list[str]:
        """What of the real folder can be read inside as it is: hooks, and folders that are none of git's own."""
        if self.is_new:
            return []
        with contextlib.suppress(OSError), folder_itself(self.git) as folder:
            found = [name for name, is_folder in listing_at(folder).items() if is_folder]
            shown = [name for name in sorted(found) if name not in EXCHANGED and not self._is_idle(name)]
            return [f"{self.git}/{name}" for name in shown][:MOST_SHOWN]
        return []

    def _is_idle(self, name: str) -> bool:
        """Whether a folder of hooks has nothing but samples in it, so that a mount would be spent for nothing."""
        return self.is_nested and name == "hooks" and not any(map(is_hook, entries_of(f"{self.git}/hooks")))


class PrivateGitFolder:
    """Such a folder, made outside, and how it is mounted inside."""

    def __init__(self, repository: InsideRepository, place: str, objects: str) -> None:
        """`objects` is where new ones are kept, of which there can be many."""
        self.repository = repository
        self.place = place
        self.objects = objects

    def make(self) -> None:
        """Make it anew, with nothing but what git inside needs to find the real objects.

        All that is read here is shown inside, so it must be the repository's own: no link is followed.
        """
        git = self.repository.git
        for path in (self.place, self.objects):
            remove_tree(path)
        for path in (f"{self.place}/objects", f"{self.place}/{REAL_OBJECTS}", f"{self.objects}/info"):
            os.makedirs(path)
        if not self.repository.is_new:
            os.makedirs(f"{self.place}/refs")
        with open(f"{self.objects}/info/alternates", "wb") as file:
            file.writelines(os.fsencode(path) + b"\n" for path in (f"{git}/{REAL_OBJECTS}", *alternates_of(git)))
        with open(f"{self.place}/config", "wb") as file:
            file.write(data_itself(f"{git}/config"))

    def mounts(self) -> Iterator[str]:
        """Options for bubblewrap."""
        git = self.repository.git
        yield from ("--bind", self.place, git, "--bind", self.objects, f"{git}/objects")
        yield from ("--ro-bind", f"{git}/objects", f"{git}/{REAL_OBJECTS}")


def make_folders(folders: Sequence[PrivateGitFolder]) -> None:
    """Make them anew, with room for all that is mounted in them: made later, it would look like a change."""
    for one in folders:
        one.make()
        mounted = [*one.repository.shown(), *(other.repository.git for other in folders)]
        for path in mounted:
            if path != one.repository.git and is_inside(path, one.repository.git):
                os.makedirs(one.place + path.removeprefix(one.repository.git), exist_ok=True)


def described(folders: Sequence[PrivateGitFolder]) -> dict[str, Any]:
    """What whoever cleans up after us needs to exchange once more."""
    places = [(one.repository.git, one.place, one.objects, one.repository.is_new) for one in folders]
    return {"places": places, "program": git_program()}


def git_program() -> str:
    """The git that no tool can have put on PATH; empty where there is none."""
    from toolyard.process.interpreter import find_program

    return find_program("git") or ""


def is_hook(name: str) -> bool:
    """Whether git runs a file in the folder of hooks, as far as its name tells."""
    return "." not in name


def is_like_git(names: Collection[str]) -> bool:
    """Whether git takes a folder with these names in it for a repository; the other half of one may be elsewhere."""
    return "HEAD" in names and ("commondir" in names or ("objects" in names and "refs" in names))


def alternates_of(git: str) -> list[str]:
    """Other stores of objects that a repository names; git takes no relative ones at second hand."""
    objects = f"{git}/objects"
    lines = text_itself(f"{objects}/info/alternates").splitlines()
    return [os.path.normpath(os.path.join(objects, line)) for line in lines if line and not line.startswith(("#", '"'))]
