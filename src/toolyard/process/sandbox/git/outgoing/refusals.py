"""Why something in a git folder inside is not for git outside: it would obey it, fail by it, or lose commits by it."""

from __future__ import annotations

import os
import re

from toolyard.core.regexes import late_pattern
from toolyard.files.inside import is_inside
from toolyard.files.plain_text import path_of
from toolyard.process.sandbox.git.outgoing.operations import commits_of, is_of_operation, refused_files
from toolyard.process.sandbox.git.refs import is_kept, is_ref, refs_in, text_of
from toolyard.process.sandbox.git.travelling import (
    HEAD,
    INDEX,
    LOG,
    ONLY_INWARDS,
    POINTER,
    SHALLOW,
    UNREADABLE,
    WORKTREE_REF,
    heads_in,
    is_commit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

LONGEST_TEXT = 1 << 24
INFO = late_pattern(r"(?:worktrees/[^/]+/)?info/.+")
OF_COMMITS = ("refs/heads/", "refs/remotes/", "refs/stash")
"""Refs that git takes for commits without another look."""
TILL_THE_END = "git outside would step into a new submodule, so it waits until all that runs here has ended"


class Refusals:
    """What must not leave a git folder as it is inside now."""

    def __init__(
        self,
        inner: Mapping[str, bytes],
        outer: Mapping[str, bytes],
        roots: Sequence[str],
        missing: Collection[str],
        early: Collection[str] = (),
        *,
        is_elsewhere: bool,
    ) -> None:
        """Of what was wanted, `missing` is not there outside, and `early` has new submodules.

        `is_elsewhere` is the main working tree.
        """
        self._inner, self._outer, self._roots, self._missing, self._early = inner, outer, roots, missing, early
        self._is_elsewhere = is_elsewhere
        self._commands = refused_files(inner)

    def reason(self, name: str, value: str | None) -> str:
        """Why something stays inside; empty when it may leave."""
        if name.startswith("refs/replace/") or ONLY_INWARDS.fullmatch(name):
            return "git outside would obey it"
        if is_kept(name):
            return "what is kept for its owner has its place there"
        if INFO.fullmatch(name) and name in self._outer:
            return "it is its owner's"
        if name == SHALLOW:
            return "it would hide commits that are there, or it is locked"
        if INFO.fullmatch(name) and says_something(self._inner.get(name, b"")):
            return "git outside would not show some changes because of it"
        if name in self._commands:
            return "git outside would go on from it, and it says more than git writes there"
        if value is not None and value.startswith(UNREADABLE):
            return "git outside could not read it, or would be led elsewhere by it"
        if value is not None and not is_plain_ref(name, value):
            return "it leads to another ref, which git outside would change in its place"
        if value is None and f"ref: {name}" in heads_in(self._inner):
            return "it is checked out"
        if value is not None and any(one in self._missing for one in wanted_objects(name, value, self._inner)):
            return "not all of it is there, or it is not what it says"
        if value is not None and any(one in self._early for one in wanted_objects(name, value, self._inner)):
            return TILL_THE_END
        is_of_main = bool(HEAD.fullmatch(name) or INDEX.fullmatch(name) or is_of_operation(name))
        if self._is_elsewhere and is_of_main and not name.startswith("worktrees/") and not self._is_renamed(name):
            return "it belongs to a working tree that is not in the workspace"
        if name.startswith("worktrees/") and not self._is_worktree_of_ours(name):
            return "it belongs to a worktree that is not in the workspace"
        if len(self._inner.get(name, b"")) > LONGEST_TEXT and not INDEX.fullmatch(name):
            return "it is too long"
        return ""

    def _is_worktree_of_ours(self, name: str) -> bool:
        """Whether a worktree may be told that: only one in the workspace may come to be, change, move or go.

        The branch of another one may get a new name, though, and its log may say so.
        """
        top = "/".join(name.split("/")[:2])
        named = [self._outer.get(f"{top}/gitdir"), self._inner.get(f"{top}/gitdir")]
        try:
            places = [os.path.realpath(path_of(data.rstrip(b"\r\n"))) for data in named if data]
        except OSError:
            return False
        is_ours = bool(places) and all(
            os.path.basename(place) == ".git" and any(is_inside(place, root) for root in self._roots)
            for place in places
        )
        pointer = POINTER.fullmatch(name)
        if pointer and pointer[2] == "commondir" and self._inner.get(name, b"../..\n") != b"../..\n":
            return False
        if is_ours or pointer or named[0] is None or f"{top}/HEAD" not in self._inner:
            return is_ours
        return bool(LOG.fullmatch(name)) or self._is_renamed(name)

    def _is_renamed(self, name: str) -> bool:
        """Whether a branch that is checked out has another name inside, and is the same else."""
        if not HEAD.fullmatch(name):
            return False
        refs, owners = refs_in(self._inner), refs_in(self._outer)
        before = text_of(self._outer.get(name, b"")).removeprefix("ref: ")
        now = text_of(self._inner.get(name, b"")).removeprefix("ref: ")
        return before in owners and before not in refs and refs.get(now) == owners[before]


def says_something(data: bytes) -> bool:
    """Whether a file has a line that is no comment."""
    return any(line.strip() and not line.startswith(b"#") for line in data.splitlines())


def is_plain_ref(name: str, value: str) -> bool:
    """Whether a ref is a commit itself; HEAD names a branch, and that of a remote one of its branches."""
    if not value.startswith("ref: "):
        return True
    if HEAD.fullmatch(name):
        return value.startswith("ref: refs/heads/")
    remote = re.fullmatch(r"(refs/remotes/[^/]+/)HEAD", name)
    return remote is not None and value.startswith(f"ref: {remote[1]}") and value != f"ref: {name}"


def wanted_objects(name: str, value: str, inner: Mapping[str, bytes]) -> list[str]:
    """What has to be there outside where something is to be known there, as git is asked for it."""
    if is_ref(name) or HEAD.fullmatch(name):
        is_of_commits = name.startswith(OF_COMMITS) or HEAD.fullmatch(name)
        return [f"{value}^{{commit}}" if is_of_commits else value] if is_commit(value) else []
    if WORKTREE_REF.fullmatch(name):
        text = text_of(inner.get(name, b""))
        return [f"{text}^{{commit}}" if is_commit(text) else "nothing"]
    if is_of_operation(name):
        return [f"{one}^{{commit}}" for one in commits_of(name, inner.get(name, b""))]
    return []
