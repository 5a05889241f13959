"""Finding repositories in folders below a workspace, the second time only where something has changed."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import NamedTuple

from toolyard.files.inside import is_inside
from toolyard.process.sandbox.folder_events import LOOK_ANYWAY_AFTER
from toolyard.process.sandbox.git.inside_repository import is_like_git
from toolyard.process.sandbox.mount_points import folder_itself, listing_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from toolyard.process.sandbox.folder_events import FolderEvents


MOST_FOLDERS = 200_000
"""The most folders that are looked through, of those that changed and of all others: neither can hide any of the rest.
What is beyond is not passed over in silence."""
MOST_AT_END, MOST_NEW_AT_END = 1_000_000, 10_000_000
"""The same at the end, when nobody is left who could make more, and nobody will look again."""
MOST_FOLLOWED = 50_000
"""The most folders that the kernel is asked to tell of: it has a number of them for all programs of a user."""
JUST_NOW = 100_000_000
"""Nanoseconds within which another change may have the same time as the one that was seen."""
REST = 100
"""How much longer than it took the next look at all folders is put off: so it costs one part in a hundred."""
FOLLOW_AT = 3
"""Which look at all folders the kernel is asked to tell from: a short life is over before it would pay."""
LOOKED_AT_LAST = frozenset(("node_modules", "__pycache__", "target", "venv", ".venv", ".tox"))
"""Folders of which there are thousands below, and seldom a repository."""


class RepositoryWalk:
    """Looks through folders, shallow ones first, up to a number of them."""

    def __init__(self, made: Collection[str] = (), caches: str = "") -> None:
        """`made` is what came to be while sandboxes of the same application lasted.

        In `caches` tools can write what lasts, and nobody looks: no link may lead there.
        """
        self.made = set(made)
        self.caches = caches
        self.known: set[str] = set()
        """What was there when this sandbox was built."""
        self.passed_over = ""
        """The first folder that the last look came not to, because there were too many; empty where it saw all."""
        self._seen: dict[str, tuple[int, FolderContents]] = {}

    def repositories(
        self, roots: Iterable[str], closed: Collection[str] = (), *, with_late: bool = True
    ) -> Iterator[str]:
        """The folders that git would take its configuration from, and pointers to some; none below what is closed.

        `with_late` tells whether also folders are looked through of which there are thousands below.
        """
        for _, found in self.folders(roots, closed, with_late=with_late):
            yield from found.repositories

    def folders(
        self,
        roots: Iterable[str],
        closed: Collection[str] = (),
        *,
        with_late: bool = True,
        since: int | None = None,
        at_end: bool = False,
    ) -> Iterator[tuple[str, FolderContents]]:
        """Each folder with what is in it; those that changed since a time are counted for themselves."""
        waiting, late = deque(roots), deque[str]()
        left = {False: MOST_AT_END, True: MOST_NEW_AT_END} if at_end else {False: MOST_FOLDERS, True: MOST_FOLDERS}
        self.passed_over = ""
        while waiting or (with_late and late):
            if not waiting:
                waiting, late = late, deque()
            folder = waiting.popleft()
            if not all(left.values()) and not left[is_changed(folder, since)]:
                self.passed_over = self.passed_over or folder
                continue
            found = self.look(folder)
            is_new = since is not None and found.changed >= since
            left[is_new] = max(0, left[is_new] - 1)
            yield folder, found
            waiting.extend(below for below in found.below if below not in closed)
            late.extend(below for below in found.late if below not in closed)

    def look(self, folder: str, *, is_told: bool = False) -> FolderContents:
        """What is in a folder; from memory if nothing was made or removed since, and nobody told of it."""
        try:
            # By path, as all that decides only whether to look again.
            seen = None if is_told else self._seen.get(folder)
            if seen and seen[0] == os.lstat(folder).st_ctime_ns:
                return seen[1]
            with folder_itself(folder) as opened:
                changed, listed = os.fstat(opened).st_ctime_ns, listing_at(opened)
        except OSError:
            return FolderContents((), (), (), (), 0)
        below = [name for name, is_folder in listed.items() if is_folder and name != ".git"]
        found = FolderContents(
            [f"{folder}/{name}" for name in below if name not in LOOKED_AT_LAST],
            [f"{folder}/{name}" for name in below if name in LOOKED_AT_LAST],
            [*([f"{folder}/.git"] if ".git" in listed else ()), *([folder] if is_like_git(listed.keys()) else ())],
            [path for name, kind in listed.items() if kind is None and self._leads_away(path := f"{folder}/{name}")],
            changed,
        )
        if len(self._seen) < MOST_FOLDERS or folder in self._seen:
            self._seen[folder] = (changed if time.time_ns() - changed > JUST_NOW else 0, found)
        return found

    def _leads_away(self, link: str) -> bool:
        """Whether a link leads to the caches, or may do so for another process than ours."""
        if not self.caches:
            return False
        try:
            named = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
        except OSError:
            return False
        try:
            return is_inside(named, "/proc") or is_inside(os.path.realpath(link), self.caches)
        except OSError:  # somebody changes it just now, who must not end the walk by that
            return True


def is_changed(folder: str, since: int | None) -> bool:
    """Whether something in a folder was made or removed since a time."""
    try:
        return since is not None and os.lstat(folder).st_ctime_ns >= since
    except OSError:
        return False


class FolderContents(NamedTuple):
    """The folders in a folder, those that are looked at last, the repositories there, and links to where nobody looks;
    and when it was changed."""

    below: Sequence[str]
    late: Sequence[str]
    repositories: Sequence[str]
    links: Sequence[str]
    changed: int

    @property
    def unsafe(self) -> Sequence[str]:
        """What a sweep has to look over."""
        return [*self.repositories, *self.links] if self.links else self.repositories


class KnownRepositories:
    """Those below some folders: whatever comes to be there is known the next time, and rarely all has to be walked.

    The kernel tells in which folders something was made, moved or removed. Where it cannot, all are looked at each
    time; and from time to time in any case, since some file systems change from elsewhere.
    """

    def __init__(self, walk: RepositoryWalk, roots: Sequence[str], since: int) -> None:
        """What changed after `since` may be from tools."""
        self._walk, self._roots, self._since = walk, roots, since
        self._events: FolderEvents | None = None
        self._paths: dict[int, str] = {}
        """Of folders that the kernel tells of, by its numbers."""
        self._told: set[int] = set()
        self._is_lost = True
        self._found: dict[str, Sequence[str]] = {}
        self.looks = 0
        """How often some of the folders were looked at."""
        self._whole_looks = 0
        self._next_whole = 0.0

    def listen(self, events: FolderEvents) -> None:
        """From now on these tell."""
        if events is self._events:
            return
        self._events, self._paths, self._is_lost, self._whole_looks = events, {}, True, 0
        events.add_listener(self)

    @property
    def numbers(self) -> Collection[int]:
        return self._paths.keys()

    def tell(self, numbers: Collection[int]) -> None:
        """Something happened in these folders."""
        self._told.update(self._paths.keys() & numbers)

    def forget(self) -> None:
        """Nobody knows what happened."""
        self._is_lost = True

    def all(self) -> list[str]:
        """Each of them, as they were when they were last looked for."""
        return [git for found in self._found.values() for git in found]

    def is_look_due(self) -> bool:
        """Whether something was told, or some time has passed."""
        return bool(self._told) or self._is_whole_look_due()

    def _is_whole_look_due(self) -> bool:
        return self._is_lost or time.monotonic() >= self._next_whole

    def look(self, closed: Callable[[], Collection[str]], *, is_whole: bool = False) -> Iterator[None]:
        """Look for them as far as the events were heard, with `is_whole` in every folder; a turn after each folder.

        Whoever stops before the end makes the next look one at all folders.
        """
        if is_whole or self._is_whole_look_due():
            steps = self._look_at_all(closed(), at_end=is_whole)
        elif self._told:
            told, self._told = self._told, set()
            steps = self._look_below([self._paths.pop(number) for number in told], closed())
        else:
            return
        self.looks += 1
        is_done = False
        try:
            yield from steps
            is_done = True
        finally:
            self._is_lost = self._is_lost or not is_done

    def _look_at_all(self, closed: Collection[str], *, at_end: bool = False) -> Iterator[None]:
        started, spent = time.monotonic(), 0.0
        self._whole_looks += 1
        # From here on, whatever is told in between counts for the next look.
        self._is_lost, self._told, self._found = False, set(), {}
        can_tell = self._events is not None and self._whole_looks >= FOLLOW_AT
        for root in self._roots:
            can_tell = can_tell and self._follow(root) is not None
        for folder, found in self._walk.folders(self._roots, closed, since=self._since, at_end=at_end):
            if found.unsafe:
                self._found[folder] = found.unsafe
            # Before it is looked at itself, which comes later: nothing can be made there in between unheard.
            for below in (*found.below, *found.late) if can_tell else ():
                can_tell = can_tell and self._follow(below) is not None
            spent += time.monotonic() - started
            yield
            started = time.monotonic()
        self._is_lost = self._is_lost or not can_tell
        self._next_whole = time.monotonic() + max(LOOK_ANYWAY_AFTER, spent * REST)

    def _look_below(self, waiting: list[str], closed: Collection[str]) -> Iterator[None]:
        """Look at folders in which something happened, and at those below that are not known yet.

        At all folders where those are too many, or the kernel does not tell of one of them.
        """
        for _ in range(MOST_FOLDERS):
            if not waiting:
                return
            folder = waiting.pop()
            self._found.pop(folder, None)
            if self._follow(folder) is None:
                if os.path.lexists(folder):
                    break
                continue
            found = self._walk.look(folder, is_told=True)
            if found.unsafe:
                self._found[folder] = found.unsafe
            for below in (*found.below, *found.late):
                if below not in closed and self._follow(below) is not False:
                    waiting.append(below)
            yield
        yield from self._look_at_all(closed)

    def _follow(self, folder: str) -> bool | None:
        """Ask the kernel to tell of a folder: whether it is one that it did not tell of so far; None if it cannot."""
        has_room = len(self._paths) < MOST_FOLLOWED
        number = self._events.follow_one(folder) if self._events and has_room else -1
        if number < 0:
            return None
        is_new, self._paths[number] = self._paths.get(number) != folder, folder
        return is_new
