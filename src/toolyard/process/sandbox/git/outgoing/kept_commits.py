"""Commits that no branch would lead to any more get a name of their own, so that git does not remove them for good."""

from __future__ import annotations

import contextlib

from toolyard.process.sandbox.git.git_files import IsLocked
from toolyard.process.sandbox.git.outgoing.reflogs import STASH, commits_in
from toolyard.process.sandbox.git.refs import KEPT_AT, change_ref, is_ref, refs_in
from toolyard.process.sandbox.git.travelling import LOG, is_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolyard.process.sandbox.git.git_files import GitFiles
    from toolyard.process.sandbox.git.outgoing.objects import ObjectHandover

MOST_OF_ONE_NAME = 100
MOST_OF_A_LOG = 50


class KeptCommits:
    """Those of one repository, outside."""

    def __init__(self, outside: GitFiles, objects: ObjectHandover, of_owner: Iterable[str]) -> None:
        """`of_owner` are commits that were there outside; what only was made inside may go as it does with git."""
        self._outside, self._objects = outside, objects
        self._of_owner = set(of_owner)

    def note_owners(self, commits: Iterable[str]) -> None:
        self._of_owner.update(commits)

    def is_of_owner(self, commit: str) -> bool:
        """Whether it may be: what was not made inside, as far as is known, is."""
        return commit in self._of_owner or not self._objects.is_from_inside(commit)

    def keep_all(self, name: str, commits: Iterable[str], patience: float) -> list[str]:
        """Keep those of the owner's that no ref but this one leads to; tells as what. OSError where that cannot be."""
        kept: list[str] = []
        waiting = [one for one in dict.fromkeys(commits) if self.is_of_owner(one)]
        for _ in range(MOST_OF_A_LOG):
            lost = self._objects.unreachable(waiting, without=name)
            waiting = [one for one in waiting if one in lost]
            if not waiting:
                return kept
            kept.append(self.keep(name, waiting.pop(), patience))  # the last one first: it may lead to the others
            if not kept[-1]:
                raise IsLocked(name)
        raise IsLocked(name)

    def keep_of_log(self, log: str, outer: Mapping[str, bytes], staying: Iterable[str], patience: float) -> list[str]:
        """Keep what is in a log that goes, and in none that stays."""
        texts = [outer.get(one, b"") for one in staying if one != log]
        commits = [one for one in commits_in(outer.get(log, b"")) if not any(one.encode() in text for text in texts)]
        return self.keep_all(log.removeprefix("logs/"), commits, patience)

    def keep(self, name: str, commit: str, patience: float) -> str:
        """Give a commit a name after the ref that had it; tells which. What was kept under it before stays, too."""
        there = refs_in(self._outside.contents())
        first = f"{KEPT_AT}/{name.removeprefix('refs/')}"
        numbered = [first, *(f"{first}-{number}" for number in range(2, MOST_OF_ONE_NAME))]
        for kept in (*numbered, f"{KEPT_AT}/{commit}"):
            now = there.get(kept)
            if now not in (None, commit) and not self._objects.is_behind(now, commit):
                continue
            with contextlib.suppress(OSError):
                change_ref(self._outside, kept, now, commit, patience)
                return f"{kept} ({commit[:12]})"
        return ""

    def is_lost(self, name: str, old: str | None, new: str | None, outer: Mapping[str, bytes]) -> bool:
        """Whether nothing leads to a commit of the owner's when a ref changes, or goes with its log."""
        if old is None or not is_ref(name) or not is_commit(old) or not self.is_of_owner(old):
            return False
        if new is not None and any(old.encode() in data for log, data in outer.items() if LOG.fullmatch(log)):
            return False  # which stays
        if name == "refs/stash" and STASH in outer:
            return False  # its log has all of them
        new_commit = new if new and is_commit(new) else None
        return not self._objects.is_reachable(old, without=name, new=new_commit)
