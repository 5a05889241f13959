"""Exchanging what changed in a repository outside and in the folder that git inside has in its place.

Both are compared with what they were when they last were the same. What changed on one side only is brought to the
other, objects first, under git's own locks and if it is still what it was. What changed on both sides stays as its
owner has it, and a line says where the other is. Everything that comes from inside is checked, and written anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading

from toolyard.files.inside import is_inside
from toolyard.process.sandbox.git.git_files import GitFiles, IsLocked, TooManyFiles, WasChanged
from toolyard.process.sandbox.git.handover import ConfigHandover
from toolyard.process.sandbox.git.objects import ObjectHandover
from toolyard.process.sandbox.git.refs import change_ref, is_ref, is_value, refs_in
from toolyard.process.sandbox.git.travelling import (
    HEAD,
    INDEX,
    LOG,
    ONLY_INWARDS,
    POINTER,
    UNREADABLE,
    added_to,
    heads_in,
    index_at,
    is_commit,
    order_of,
    travels,
    value_of,
    value_of_text,
)
from toolyard.process.sandbox.mount_points import EMPTY_HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


LONGEST_TEXT = 1 << 24
KEPT_AT = "refs/from-sandbox"
"""Below it is what a branch was inside that was changed outside, too."""
TOO_LARGE = (
    "[git: this repository has too many loose refs and logs to be there inside; to have it there, run outside: "
    "git pack-refs --all]"
)
PATIENCE, PATIENCE_AT_END = 0.2, 3.0
"""Seconds that somebody else may hold a lock."""


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
        self._outside, self._inside = GitFiles(git, travels), GitFiles(place, travels)
        self._roots = [os.path.realpath(root) for root in roots]
        self._config = ConfigHandover(git, place, self._roots, is_new=is_new)
        self._objects = ObjectHandover(objects, git, program)
        self._id_length = 20
        self._known_file = known_file
        self._known = read_known(known_file)
        self._compared: dict[str, dict[str, tuple[bytes, str | None]]] = {}
        self._told: set[str] = set()
        self._must_try_again = False
        self._has_any = True
        """Whether there is a repository on one of the sides, whose configuration counts."""
        self._is_too_large = False
        self.is_lost = False
        """Whether it was removed inside: then nothing is exchanged any more."""
        self._turn = threading.Lock()

    def fill(self) -> None:
        """Give a folder that was just made what the repository has now; nothing of one that is too large."""
        try:
            contents = self._outside.contents()
        except TooManyFiles:
            self._is_too_large = True
            return
        values = self._values(self._outside, contents)
        if values:
            self._inside.fill(contents)
        self._remember(values)

    def is_due(self) -> bool:
        """Whether something may have changed on one of the sides."""
        if self.is_lost or self._is_too_large:
            return self._is_too_large and TOO_LARGE not in self._told
        has_changed = self._inside.has_changed() or self._outside.has_changed()
        return self._must_try_again or has_changed or (self._has_any and self._config.is_due())

    def exchange(self, *, at_end: bool = False) -> list[str]:
        """Bring each side what is new on the other; tells what could not be, each once."""
        if self.is_lost:
            return []
        with self._turn:
            self._must_try_again = False
            try:
                notes = [TOO_LARGE] if self._is_too_large else self._exchange(PATIENCE_AT_END if at_end else PATIENCE)
            except TooManyFiles as error:
                notes = [f"[git: nothing was handed over from inside: {error}]"]
            except OSError as error:
                self._must_try_again = True
                notes = [f"[git: not everything was handed over from inside: {error.strerror or error}]"]
        new = [note for note in notes if note not in self._told]
        self._told.update(new)
        return new

    def _exchange(self, patience: float) -> list[str]:
        inner, outer = self._inside.contents(), self._outside.contents()
        self._id_length = 32 if self._config.has_long_ids() else 20
        inside, outside = self._values(self._inside, inner), self._values(self._outside, outer)
        notes = []
        if self._known and not ("HEAD" in inside and self._inside.has_folder("refs")):
            self.is_lost = True
            return ["[git: the repository was removed inside; outside it stays, and the next call finds it again]"]
        if "HEAD" in inside and "HEAD" not in outside:
            self._make_room()
        self._has_any = bool(inside or outside)
        if self._has_any:
            notes += self._exchange_configs()
        changed = [
            name
            for name in sorted({*inside, *outside, *self._known}, key=lambda name: order_of(name, self._known))
            if not inside.get(name) == outside.get(name) == self._known.get(name)
        ]
        if not changed:
            return notes
        given = [name for name in changed if inside.get(name) not in (self._known.get(name), outside.get(name))]
        missing = self._hand_over_objects(given, inside)
        known = dict(self._known)
        for name in changed:
            step = ExchangeStep(name, known.get(name), inside.get(name), outside.get(name), patience)
            notes += self._settle(step, inner, outer, missing)
        self._remember(self._known)
        return notes

    def _exchange_configs(self) -> list[str]:
        try:
            return self._config.exchange()
        except OSError:  # it is locked on one of the sides
            self._must_try_again = True
            return []

    def _hand_over_objects(self, names: Iterable[str], inside: Mapping[str, str]) -> set[str]:
        """Hand over objects before what needs them; tells the commits that are still not there."""
        if not (needed := [inside[name] for name in names if name in inside]):
            return set()
        self._objects.hand_over()
        return set(self._objects.missing(value for value in needed if is_commit(value)))

    def _settle(
        self, step: ExchangeStep, inner: Mapping[str, bytes], outer: Mapping[str, bytes], missing: set[str]
    ) -> list[str]:
        """Make both sides the same in one thing, or say why they are not."""
        try:
            if step.inside in (step.known, step.outside) or is_needed(step, inner):
                self._put(self._inside, step, step.inside, step.outside, outer)
                self._note_known(step.name, step.outside)
            elif step.outside != step.known:
                return self._settle_conflict(step, inner, outer, missing)
            elif reason := self._refusal(step, inner, missing):
                return [f"[git: {step.name} stays inside: {reason}]"]
            else:
                self._put(self._outside, step, step.outside, step.inside, inner)
                self._note_known(step.name, step.inside)
        except WasChanged:
            self._must_try_again = True
        except IsLocked:
            self._must_try_again = True
            return self._settle_later(step, missing)
        except OSError as error:
            return [f"[git: {step.name} could not be handed over: {error.strerror or error}]"]
        return []

    def _settle_later(self, step: ExchangeStep, missing: set[str]) -> list[str]:
        """What is locked: it is tried again; at the end a commit is kept where nobody holds a lock."""
        said = f"[git: {step.name} is locked, so it is not handed over"
        if step.patience != PATIENCE_AT_END:
            return [f"{said} before the next call]"]
        kept = self._keep(step, missing)
        return [f"{said}; what it was inside is kept as {kept}]" if kept else f"{said}]"]

    def _keep(self, step: ExchangeStep, missing: set[str]) -> str:
        """Give the commit of a ref from inside another name outside; tells which, nothing where there is none."""
        if not is_ref(step.name) or not step.inside or not is_commit(step.inside) or step.inside in missing:
            return ""
        kept = f"{KEPT_AT}/{step.name.removeprefix('refs/')}"
        now = refs_in(self._outside.contents()).get(kept)
        with contextlib.suppress(OSError):
            change_ref(self._outside, kept, now, step.inside, step.patience)
            return kept
        return ""

    def _settle_conflict(
        self, step: ExchangeStep, inner: Mapping[str, bytes], outer: Mapping[str, bytes], missing: set[str]
    ) -> list[str]:
        """What changed on both sides: the owner's stays; of a log all lines do."""
        name = step.name
        if LOG.fullmatch(name) and (added := added_to(step.known, inner.get(name))) is not None:
            merged = {name: outer.get(name, b"") + added}
            self._put(self._outside, step, step.outside, value := value_of_text(merged[name]), merged)
            self._put(self._inside, step, step.inside, value, merged)
            self._note_known(name, value)
            return []
        note = f"[git: {name} was changed outside, too, so it is as it is there, and not as it was left inside]"
        if kept := self._keep(step, missing):
            note = f"[git: {name} was changed outside, too; what it was inside is kept as {kept}]"
        self._put(self._inside, step, step.inside, step.outside, outer)
        self._note_known(name, step.outside)
        return [note] if is_ref(name) or HEAD.fullmatch(name) or INDEX.fullmatch(name) else []

    def _refusal(self, step: ExchangeStep, inner: Mapping[str, bytes], missing: set[str]) -> str:
        """Why something from inside is not for git outside; empty when it is."""
        name, value, data = step.name, step.inside, inner.get(step.name, b"")
        if name.startswith("refs/replace/") or ONLY_INWARDS.fullmatch(name):
            return "git outside would obey it"
        if value is not None and value.startswith(UNREADABLE):
            return "git outside could not read it, or would be led elsewhere by it"
        if value is None and f"ref: {name}" in heads_in(inner):
            return "it is checked out"
        if value in missing:
            return "not all of it is there, or it is not what it says"
        if name.startswith("worktrees/") and not self._is_worktree_of_ours(name, inner):
            return "it belongs to a worktree that is not in the workspace"
        if len(data) > LONGEST_TEXT and not INDEX.fullmatch(name):
            return "it is too long"
        return ""

    def _is_worktree_of_ours(self, name: str, inner: Mapping[str, bytes]) -> bool:
        """Whether a worktree may be told that: only one in the workspace may come to be, move or go."""
        top = "/".join(name.split("/")[:2])
        named = [self._outside.content(f"{top}/gitdir"), inner.get(f"{top}/gitdir")]
        places = [os.path.realpath(os.fsdecode(data.rstrip(b"\r\n"))) for data in named if data]
        is_ours = bool(places) and all(
            os.path.basename(place) == ".git" and any(is_inside(place, root) for root in self._roots)
            for place in places
        )
        pointer = POINTER.fullmatch(name)
        if pointer and pointer[2] == "commondir" and inner.get(name, b"../..\n") != b"../..\n":
            return False
        is_there = named[0] is not None and f"{top}/HEAD" in inner
        return is_ours if pointer or not is_there else True

    def _put(
        self,
        tree: GitFiles,
        step: ExchangeStep,
        expected: str | None,
        value: str | None,
        contents: Mapping[str, bytes],
    ) -> None:
        """Change one thing on one side, if it still is there what it was when both were compared."""
        name = step.name
        if expected == value:
            return
        if is_ref(name):
            change_ref(tree, name, expected, value, step.patience)
            return
        with tree.locked(name, step.patience) as file:
            now = file.content()
            is_expected = value_of(name, now, self._id_length, tree.content) in (expected, value)
            if not is_expected and not (now == EMPTY_HEAD and expected is None):
                raise WasChanged(name)
            if value is None:
                file.remove()
            else:
                file.replace(self._written(name, value, contents))
        if value is None:
            tree.remove_empty(name, name.partition("/")[0])

    def _values(self, side: GitFiles, contents: Mapping[str, bytes]) -> dict[str, str]:
        """What is compared of each thing that may travel."""
        refs = refs_in(contents)
        if contents.get("HEAD") == EMPTY_HEAD and not refs:
            return {}  # only room for a repository
        before = self._compared.get(side.root, {})
        compared = {}
        for name, data in contents.items():
            seen = before.get(name)  # the very same object as long as the file is the same
            compared[name] = seen if seen and seen[0] is data else (data, self._value(name, data, contents))
        self._compared[side.root] = compared
        return {name: value for name, (_, value) in compared.items() if value is not None} | refs

    def _value(self, name: str, data: bytes, contents: Mapping[str, bytes]) -> str | None:
        return value_of(name, data, self._id_length, contents.get)

    def _written(self, name: str, value: str, contents: Mapping[str, bytes]) -> bytes:
        """What is written on one side for what the other one has: never the file itself where git believes it."""
        if HEAD.fullmatch(name) and is_value(value):
            return value.encode("utf-8", "surrogateescape") + b"\n"
        if INDEX.fullmatch(name) and not value.startswith(UNREADABLE):
            return index_at(name, contents[name], self._id_length, contents.get).written()
        return contents[name]

    def _make_room(self) -> None:
        """Make what git takes a folder for a repository by, in one that is none yet."""
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            os.makedirs(f"{self.git}/{name}", exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self._outside.add("HEAD", EMPTY_HEAD)

    def _note_known(self, name: str, value: str | None) -> None:
        self._known.pop(name, None)
        if value is not None:
            self._known[name] = value

    def _remember(self, known: dict[str, str]) -> None:
        """Write down what both sides are, for whoever goes on if we are killed."""
        self._known = known
        with open(f"{self._known_file}.new", "w", encoding="ascii") as file:
            json.dump(known, file)
        os.replace(f"{self._known_file}.new", self._known_file)


class ExchangeStep:
    """One thing that is not the same on both sides, or not what it was."""

    def __init__(self, name: str, known: str | None, inside: str | None, outside: str | None, patience: float) -> None:
        self.name, self.known, self.inside, self.outside = name, known, inside, outside
        self.patience = patience


def is_needed(step: ExchangeStep, inner: Mapping[str, bytes]) -> bool:
    """Whether something was removed inside that a repository, or a worktree that is still there, cannot be without."""
    top = step.name.rpartition("/")[0]
    is_of_one = INDEX.fullmatch(step.name) or HEAD.fullmatch(step.name)
    return step.inside is None and bool(is_of_one) and (not top or f"{top}/gitdir" in inner)


def read_known(file: str) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError), open(file, encoding="ascii") as text:
        known = json.load(text)
        return known if isinstance(known, dict) else {}
    return {}
