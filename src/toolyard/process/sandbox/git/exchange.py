"""Exchanging what changed in a repository outside and in the folder that git inside has in its place.

Both are compared with what they were when they last were the same; what differs is settled by `outgoing/settlement`.
"""

from __future__ import annotations

import contextlib
import logging
import threading

from toolyard.files.plain_text import printable
from toolyard.process.sandbox.git.git_files import TooManyFiles
from toolyard.process.sandbox.git.handover import ConfigHandover
from toolyard.process.sandbox.git.outgoing.reflogs import STASH, commits_in
from toolyard.process.sandbox.git.sides import RepositorySides
from toolyard.process.sandbox.git.travelling import order_of
from toolyard.process.sandbox.mount_points import EMPTY_HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.process.sandbox.git.outgoing.settlement import Settlement


log = logging.getLogger("toolyard.sandbox")
TOO_LARGE = (
    "[git: {git} has too many loose refs and logs to be there inside; "
    "to have it there, run outside: git pack-refs --all]"
)
UNREADABLE = "[git: {git} is not there inside, since not all of it can be read: {error}]"
NOT_HERE = "it belongs to a working tree that is not in the workspace"
PATIENCE, PATIENCE_AT_END = 0.2, 3.0
"""Seconds that others may hold locks outside."""
MOST_NOTES = 20


class RepositoryExchange:
    """One repository: the owner's, the one that git inside has, and what both were when they last were the same."""

    def __init__(
        self,
        git: str,
        place: str,
        known_file: str,
        *,
        objects: str,
        roots: Sequence[str],
        program: str,
        is_new: bool = False,
    ) -> None:
        """`program` is the git that may run outside; `roots` are the folders that can be written inside."""
        self.git, self.place, self.objects, self.is_new = git, place, objects, is_new
        self.sides = RepositorySides(git, place, known_file, roots)
        self._config = ConfigHandover(git, place, is_new=is_new)
        self._program = program
        self._settlement: Settlement | None = None
        self._told: set[str] = set()
        self._has_any = True
        """Whether there is a repository on one of the sides, whose configuration counts."""
        self._absence = ""
        """Why there is nothing of it inside."""
        self.is_lost = False
        """Whether it was removed inside: then nothing is exchanged any more."""
        self._turn = threading.Lock()

    def fill(self) -> None:
        """Give a folder that was just made what the repository has now; nothing of one that cannot be read whole."""
        sides = self.sides
        try:
            contents = sides.outside.contents()
        except TooManyFiles:
            self._absence = TOO_LARGE.format(git=self.git)
            return
        except OSError as error:
            self._absence = UNREADABLE.format(git=self.git, error=error.strerror or error)
            return
        values = sides.values.of(sides.outside, contents)
        if values:
            sides.inside.fill(contents)
            sides.values.note_filled(sides.inside, sides.outside, contents)
        sides.of_owner.update(values.values(), commits_in(contents.get(STASH, b"")))
        sides.remember(values)

    def is_due(self) -> bool:
        """Whether something may have changed on one of the sides."""
        if self.is_lost or self._absence:
            return bool(self._absence) and self._absence not in self._told
        has_changed = self.sides.inside.has_changed() or self.sides.outside.has_changed()
        return self.sides.must_try_again or has_changed or (self._has_any and self._config.is_due())

    def folders(self) -> list[str]:
        """Where whatever makes an exchange due would happen."""
        return [] if self.is_lost or self._absence else [*self.sides.inside.folders(), *self.sides.outside.folders()]

    def exchange(self, *, at_end: bool = False, with_modules: bool = False) -> list[str]:
        """Bring each side what is new on the other; tells what could not be, each once.

        `with_modules` tells whether git outside may hear of new submodules: it steps into the folder of each, so nobody
        may be left who could make another repository there.
        """
        sides = self.sides
        if self.is_lost:
            return []
        with self._turn:
            sides.must_try_again, sides.with_modules = False, with_modules
            if self._absence:
                sides.note_left({})
            try:
                notes = [self._absence] if self._absence else self._exchange(at_end=at_end)
            except TooManyFiles as error:
                sides.note_left(sides.known)
                notes = [f"[git: nothing was handed over from inside: {error}]"]
            except OSError as error:
                sides.must_try_again = True
                sides.note_left(sides.known)
                notes = [f"[git: not everything was handed over from inside: {error.strerror or error}]"]
            except Exception as error:  # nobody knows all that can be wrong with what was written inside
                log.exception("what git inside wrote could not be compared")
                sides.note_left(sides.known)
                notes = [f"[git: nothing was handed over from inside: something there cannot be read ({error!r})]"]
        new = [note for note in map(printable, notes) if note not in self._told]
        self._told.update(new)
        more = [f"[git: and {len(new) - MOST_NOTES} more lines like these]"] if len(new) > MOST_NOTES else []
        return [*new[:MOST_NOTES], *more]

    def _exchange(self, *, at_end: bool) -> list[str]:
        sides = self.sides
        inner, outer = sides.inside.contents(), sides.outside.contents()
        sides.values.id_length = 32 if self._config.has_long_ids() else 20
        inside, outside = sides.values.of(sides.inside, inner), sides.values.of(sides.outside, outer)
        notes = [f"[git: {one} stays inside: {NOT_HERE}]" for one in sides.values.staged_elsewhere(inner)]
        if sides.known and not ("HEAD" in inside and sides.inside.has_folder("refs")):
            self.is_lost = True
            return ["[git: the repository was removed inside; outside it stays, and the next call finds it again]"]
        if "HEAD" in inside and "HEAD" not in outside:
            self._make_room()
        self._has_any = bool(inside or outside)
        if self._has_any:
            notes += self._exchange_configs()
        changed = [
            name
            for name in sorted({*inside, *outside, *sides.known}, key=lambda name: order_of(name, sides.known))
            if not inside.get(name) == outside.get(name) == sides.known.get(name)
        ]
        if not changed:
            return notes
        from toolyard.process.sandbox.git.outgoing.exchange_step import ExchangeStep, LockPatience

        patience = LockPatience(PATIENCE_AT_END if at_end else PATIENCE, is_end=at_end)
        known = dict(sides.known)
        steps = [ExchangeStep(name, known.get(name), inside.get(name), outside.get(name), patience) for name in changed]
        notes += self._to_settle().settle(steps, inner, outer)
        sides.left = {name: commit for name, commit in sides.left.items() if sides.known.get(name) != commit}
        sides.remember(sides.known)
        return notes

    def _to_settle(self) -> Settlement:
        if self._settlement is None:
            from toolyard.process.sandbox.git.outgoing.settlement import Settlement

            self._settlement = Settlement(self.sides, objects=self.objects, program=self._program)
        return self._settlement

    def _exchange_configs(self) -> list[str]:
        try:
            return self._config.exchange()
        except OSError:  # it is locked on one of the sides
            self.sides.must_try_again = True
            return []

    def _make_room(self) -> None:
        """Make what git takes a folder for a repository by, in one that is none yet."""
        self.sides.outside.make_root()
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            self.sides.outside.make_folder(name)
        with contextlib.suppress(FileExistsError):
            self.sides.outside.add("HEAD", EMPTY_HEAD)
