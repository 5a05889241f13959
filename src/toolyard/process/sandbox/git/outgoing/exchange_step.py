"""One thing in a git folder that is not the same inside and outside, or not what it was."""

from __future__ import annotations

import time

from toolyard.process.sandbox.git.refs import is_ref, text_of
from toolyard.process.sandbox.git.travelling import HEAD, INDEX, is_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.process.sandbox.git.outgoing.index_file import GitIndex


class LockPatience:
    """How long an exchange waits for whoever holds locks outside, all of them together."""

    def __init__(self, seconds: float, *, is_end: bool) -> None:
        self.is_end = is_end
        self._until = time.monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())


class ExchangeStep:
    """What it is on both sides, and what it was when they last were the same."""

    def __init__(
        self, name: str, known: str | None, inside: str | None, outside: str | None, patience: LockPatience
    ) -> None:
        self.name, self.known, self.inside, self.outside = name, known, inside, outside
        self.patience = patience
        """Seconds that may be waited for locks outside, all together; inside nobody is waited for."""
        self.index: GitIndex | str = ""
        """Of an index from inside, what git outside gets, or why it gets nothing."""
        self.needed: set[str] = set()
        """The objects that have to be there for it."""
        self.has_more_modules = False
        self.is_handed_over = False

    @property
    def is_from_inside(self) -> bool:
        return self.inside not in (self.known, self.outside)

    @property
    def has_commit(self) -> bool:
        """Whether it is a commit inside, by which others are found."""
        return (is_ref(self.name) or bool(HEAD.fullmatch(self.name))) and is_commit(self.inside or "")


def checked_out_by(index: ExchangeStep, outer: Mapping[str, bytes]) -> set[str]:
    """HEAD of the same working tree as an index, and the branch that is checked out there."""
    head = f"{index.name.removesuffix('index')}HEAD"
    return {head, text_of(outer.get(head, b"")).removeprefix("ref: ")}


def is_needed(step: ExchangeStep, inner: Mapping[str, bytes]) -> bool:
    """Whether something was removed inside that a repository, or a worktree that is still there, cannot be without."""
    top = step.name.rpartition("/")[0]
    is_of_one = INDEX.fullmatch(step.name) or HEAD.fullmatch(step.name)
    return step.inside is None and bool(is_of_one) and (not top or f"{top}/gitdir" in inner)


def is_log_of_nothing(name: str, inner: Mapping[str, bytes], refs: Mapping[str, str]) -> bool:
    """Whether what a log is of was removed inside, too: a branch, or a worktree."""
    of = name.removeprefix("logs/")
    if is_ref(of):
        return of not in refs
    top = "/".join(name.split("/")[:2])
    return name.startswith("worktrees/") and f"{top}/HEAD" not in inner
