"""The two sides of a repository, outside and inside, and what both were when they last were the same."""

from __future__ import annotations

import contextlib
import json
import os

from toolyard.process.sandbox.git.compared_values import ComparedValues
from toolyard.process.sandbox.git.git_files import PACKED, GitFiles
from toolyard.process.sandbox.git.outgoing.index_limits import paths_in
from toolyard.process.sandbox.git.refs import is_ref, packed_in, text_of
from toolyard.process.sandbox.git.travelling import is_commit, travels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RepositorySides:
    """The owner's repository, the one that git inside has, and how far they were brought together."""

    def __init__(self, git: str, place: str, known_file: str, roots: Sequence[str]) -> None:
        """`roots` are the folders that can be written inside; what both sides were is kept in `known_file`."""
        self.outside, self.inside = GitFiles(git, travels), GitFiles(place, travels)
        self.roots = [os.path.realpath(root) for root in roots]
        self.staged_here = paths_in(self.roots, git)
        self.values = ComparedValues(self.roots, is_elsewhere=not self.staged_here)
        self._known_file = known_file
        self.known = read_known(known_file)
        self.of_owner = set(self.known.values())
        """Commits that were there outside."""
        self.must_try_again = False
        self.with_modules = False
        """Whether git outside may hear of new submodules."""
        self.left: dict[str, str] = {}
        """Commits by their refs, or by HEAD, that are inside and could not be handed over so far."""

    def note_known(self, name: str, value: str | None) -> None:
        """One thing is the same on both sides now."""
        self.known.pop(name, None)
        if value is not None:
            self.known[name] = value

    def note_left(self, known: Mapping[str, str]) -> None:
        """Not all could be compared: what inside is not among what is known is left there."""
        self.left |= left_by_name(self.inside, known)

    def remember(self, known: dict[str, str]) -> None:
        """Write down what both sides are, for whoever goes on if we are killed."""
        self.known = known
        with open(f"{self._known_file}.new", "w", encoding="ascii") as file:
            json.dump(known, file)
        os.replace(f"{self._known_file}.new", self._known_file)


def left_by_name(inside: GitFiles, known: Mapping[str, str]) -> dict[str, str]:
    """Commits inside that are not known, where not all can be compared: of the branch that is checked out, and packed.

    A file that cannot be read is none.
    """
    head = text_of(inside.content("HEAD") or b"")
    name = head.removeprefix("ref: ")
    found = packed_in(inside.content(PACKED) or b"")
    found |= {name: text_of(inside.content(name) or b"")} if is_ref(name) else {"HEAD": head}
    return {name: value for name, value in found.items() if is_commit(value) and known.get(name) != value}


def read_known(file: str) -> dict[str, str]:
    """What both sides were, as it was written down."""
    with contextlib.suppress(OSError, ValueError), open(file, encoding="ascii") as text:
        known = json.load(text)
        return known if isinstance(known, dict) else {}
    return {}
