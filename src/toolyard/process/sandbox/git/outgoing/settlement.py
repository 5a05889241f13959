"""Settling what is not the same in a repository outside and in the folder that git inside has in its place.

What changed on one side only is brought to the other, objects first, under git's own locks and if it is still what it
was. What changed on both sides stays as its owner has it, and a line says where the other is. Everything that comes
from inside is checked, and written anew. Most exchanges find nothing to settle, and a start need not import this.
"""

from __future__ import annotations

import contextlib

from toolyard.process.sandbox.git.git_files import IsLocked, WasChanged
from toolyard.process.sandbox.git.outgoing.exchange_step import (
    ExchangeStep,
    checked_out_by,
    is_log_of_nothing,
    is_needed,
)
from toolyard.process.sandbox.git.outgoing.index_limits import (
    EVERYWHERE,
    has_new_modules,
    limited,
    modules_in,
    new_objects,
)
from toolyard.process.sandbox.git.outgoing.kept_commits import KeptCommits
from toolyard.process.sandbox.git.outgoing.objects import ObjectHandover
from toolyard.process.sandbox.git.outgoing.operations import is_of_operation
from toolyard.process.sandbox.git.outgoing.reflogs import STASH, ids_in, merged_log, stashes_gone, valid_part
from toolyard.process.sandbox.git.outgoing.refusals import TILL_THE_END, Refusals, wanted_objects
from toolyard.process.sandbox.git.outgoing.shallow import behind, with_new_ends, without_old_ends
from toolyard.process.sandbox.git.outgoing.shallow import commits_in as shallow_ends
from toolyard.process.sandbox.git.refs import change_ref, is_ref, refs_in
from toolyard.process.sandbox.git.travelling import (
    HEAD,
    INDEX,
    LOG,
    SHALLOW,
    added_to,
    index_at,
    is_readable,
    staged_value,
    text_value,
    value_of,
    written_anew,
)
from toolyard.process.sandbox.mount_points import EMPTY_HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolyard.process.sandbox.git.git_files import GitFiles
    from toolyard.process.sandbox.git.sides import RepositorySides


class Settlement:
    """That of one repository, with what was handed over of it so far."""

    def __init__(self, sides: RepositorySides, *, objects: str, program: str) -> None:
        """`objects` is the folder of those inside; `program` is the git that may run outside."""
        self._sides = sides
        self._objects = ObjectHandover(objects, sides.outside.root, program)
        self._kept = KeptCommits(sides.outside, self._objects, sides.of_owner)
        self._broken: set[str] = set()
        """Commits that lines of logs from inside lead to, and that are not there with all that they are made of."""

    def settle(
        self,
        steps: Sequence[ExchangeStep],
        inner: Mapping[str, bytes],
        outer: Mapping[str, bytes],
    ) -> list[str]:
        """Make both sides the same, as far as that may be; tells what is not."""
        self._objects.begin()
        refusals = self._hand_over_objects([step for step in steps if step.is_from_inside], inner, outer)
        self._sides.left |= {
            step.name: step.inside for step in steps if step.is_from_inside and step.has_commit and step.inside
        }
        return self._settle_all(steps, inner, outer, refusals)

    def _hand_over_objects(
        self, steps: Sequence[ExchangeStep], inner: Mapping[str, bytes], outer: Mapping[str, bytes]
    ) -> Refusals:
        """Hand over objects before what needs them; tells what must not be handed over itself."""
        if not steps:
            return Refusals(inner, outer, self._sides.roots, (), is_elsewhere=not self._sides.staged_here)
        wanted = [one for step in steps if step.inside for one in wanted_objects(step.name, step.inside, inner)]
        logged = {f"{one}^{{commit}}" for step in steps for one in ids_logged(step, inner)}
        staged = [one for step in steps for one in self._staged(step, inner, outer)]
        ends = inner.get(SHALLOW, b"")
        is_other = any(step.name == SHALLOW for step in steps)
        deeper = behind(outer.get(SHALLOW, b""), ends, self._objects) if is_other else ()
        self._objects.hand_over([*wanted, *logged, *staged, *deeper], shallow_ends(ends))
        for step in steps:
            if step.name == SHALLOW:
                with contextlib.suppress(OSError):  # what is locked is refused, and tried again
                    self._settle_shallow(step, inner, outer)
        missing = set(self._objects.missing([*wanted, *logged]))
        self._broken = {one.removesuffix("^{commit}") for one in logged & missing}
        early: set[str] = set()
        if not self._sides.with_modules:
            early = self._objects.with_new_modules(set(wanted) - missing, self._modules(outer))
        return Refusals(inner, outer, self._sides.roots, missing, early, is_elsewhere=not self._sides.staged_here)

    def _modules(self, outer: Mapping[str, bytes]) -> Iterator[bytes]:
        """The folders that git outside takes for submodules already."""
        for name in filter(INDEX.fullmatch, outer):
            with contextlib.suppress(ValueError, IndexError):  # what git cannot read it does not step into
                yield from modules_in(index_at(name, outer[name], self._sides.values.id_length, outer.get))

    def _staged(self, step: ExchangeStep, inner: Mapping[str, bytes], outer: Mapping[str, bytes]) -> set[str]:
        """Work out what git outside gets of an index from inside; tells what has to be there for it."""
        name, length = step.name, self._sides.values.id_length
        if not INDEX.fullmatch(name) or not is_readable(step.inside):
            return set()
        try:
            before = index_at(name, outer[name], length, outer.get) if is_readable(step.outside) else None
            prefixes = self._sides.staged_here if name == "index" else EVERYWHERE
            step.index = limited(index_at(name, inner[name], length, inner.get), before, prefixes)
        except ValueError as error:
            step.index = str(error)
            return set()
        step.has_more_modules = has_new_modules(step.index, before)
        step.needed = new_objects(step.index, before)
        return step.needed

    def _settle_all(
        self,
        steps: Sequence[ExchangeStep],
        inner: Mapping[str, bytes],
        outer: Mapping[str, bytes],
        refusals: Refusals,
    ) -> list[str]:
        """An index first: without it a branch stays as it is that is checked out there, or HEAD and the index would
        not belong together, and the owner's next commit would undo what was committed inside. So does the last stash
        without the log, which has all the others.
        """
        notes, first = [], [step for step in steps if self._comes_first(step)]
        held: dict[str, ExchangeStep] = {}
        for step in first:
            notes += self._settle(step, inner, outer, refusals)
            if not step.is_handed_over:
                held |= dict.fromkeys({"refs/stash"} if step.name == STASH else checked_out_by(step, outer), step)
        for step in steps:
            if step.name in held and step.is_from_inside:
                notes += self._hold(step, held[step.name], outer, refusals)
            elif step not in first:
                notes += self._settle(step, inner, outer, refusals)
        return notes

    def _comes_first(self, step: ExchangeStep) -> bool:
        """Whether it is from inside, and the stashes or the index of a working tree that is known outside."""
        if not step.is_from_inside or not (INDEX.fullmatch(step.name) and step.inside):
            return step.is_from_inside and step.name == STASH
        return f"{step.name.removesuffix('index')}HEAD" in self._sides.known

    def _hold(
        self, step: ExchangeStep, index: ExchangeStep, outer: Mapping[str, bytes], refusals: Refusals
    ) -> list[str]:
        """Leave a branch or HEAD as it is outside; its commit gets another name, unless the index comes later."""
        said = f"[git: {step.name} stays as it is outside, since {index.name} does"
        if self._sides.must_try_again and not step.patience.is_end and index.outside == index.known:
            return [f"{said} until it can be handed over]"]
        try:
            kept = self._keep(step, refusals)
            if index.outside != index.known and (kept or not step.has_commit):
                self._put(self._sides.inside, step, step.inside, step.outside, outer)
                self._sides.note_known(step.name, step.outside)
        except OSError:
            self._sides.must_try_again = True
            return []
        return [f"{said}; what it was inside is kept as {kept}]" if kept else f"{said}]"]

    def _settle_shallow(self, step: ExchangeStep, inner: Mapping[str, bytes], outer: Mapping[str, bytes]) -> None:
        """Let a repository end where it does inside, as far as that hides nothing that is there outside."""
        wanted, now = inner.get(SHALLOW, b""), outer.get(SHALLOW, b"")
        for change in (with_new_ends, without_old_ends):
            now = change(now, wanted, self._objects)
            self._put_text(self._sides.outside, step, step.outside, now)
            step.outside = text_value(now)
        self._put_text(self._sides.inside, step, step.inside, now)
        step.inside = step.outside

    def _settle(
        self, step: ExchangeStep, inner: Mapping[str, bytes], outer: Mapping[str, bytes], refusals: Refusals
    ) -> list[str]:
        """Make both sides the same in one thing, or say why they are not."""
        try:
            if step.inside in (step.known, step.outside) or is_needed(step, inner):
                self._put(self._sides.inside, step, step.inside, step.outside, outer)
                self._sides.note_known(step.name, step.outside)
                self._kept.note_owners([step.outside] if step.outside else ())
            elif LOG.fullmatch(step.name) and not refusals.reason(step.name, step.inside):
                return self._settle_log(step, inner, outer)
            elif step.outside != step.known:
                return self._settle_conflict(step, outer, refusals)
            elif reason := refusals.reason(step.name, step.inside):
                return [f"[git: {step.name} stays inside: {reason}]"]
            else:
                return self._hand_over(step, inner, outer)
        except WasChanged:
            self._sides.must_try_again = True
        except IsLocked:
            self._sides.must_try_again = True
            return self._settle_later(step, refusals)
        except OSError as error:
            return [f"[git: {step.name} could not be handed over: {error.strerror or error}]"]
        return []

    def _hand_over(self, step: ExchangeStep, inner: Mapping[str, bytes], outer: Mapping[str, bytes]) -> list[str]:
        """Give the owner what was changed inside; a commit that nothing would lead to any more is kept."""
        if INDEX.fullmatch(step.name) and step.inside:
            return self._hand_over_index(step)
        notes = []
        if step.outside and self._kept.is_lost(step.name, step.outside, step.inside, outer):
            kept = self._kept.keep(step.name, step.outside, step.patience.left())
            if not kept:
                raise IsLocked(step.name)
            notes = [f"[git: {step.name} was changed or removed inside; what it was before is kept as {kept}]"]
        self._put(self._sides.outside, step, step.outside, step.inside, inner)
        self._sides.note_known(step.name, step.inside)
        return notes

    def _hand_over_index(self, step: ExchangeStep) -> list[str]:
        """Give the owner what is staged inside, if it is there; what both sides get is the same."""
        name, index = step.name, step.index
        if isinstance(index, str):
            return [f"[git: {name} stays inside: {index}]"]
        if step.has_more_modules and not self._sides.with_modules:
            self._sides.must_try_again = True
            return [f"[git: {name} stays inside: {TILL_THE_END}]"]
        if self._objects.there(step.needed) != step.needed:
            return [f"[git: {name} stays inside: not all that is staged is there, or is what it says]"]
        value, written = staged_value(index), {name: index.written()}
        self._put(self._sides.outside, step, step.outside, value, written)
        self._sides.note_known(name, value)
        step.is_handed_over = True
        if value == step.inside:
            return []
        self._put(self._sides.inside, step, step.inside, value, written)
        return [f"[git: in {name}, marks that hide changes, and paths beside the workspace, stay as they are outside]"]

    def _settle_log(self, step: ExchangeStep, inner: Mapping[str, bytes], outer: Mapping[str, bytes]) -> list[str]:
        """Logs only grow, since people find again by them what a branch has lost; they go with what they are of."""
        name, notes = step.name, []
        before, now = outer.get(name, b""), inner.get(name, b"")
        if name == STASH and step.outside == step.known:
            kept = self._kept.keep_all("refs/stash", stashes_gone(before, now), step.patience.left())
            notes = [f"[git: a stash was removed inside; it is kept as {one}]" for one in kept]
            merged = valid_part(now, self._broken)
        elif step.inside is None and self._goes(name, inner):
            staying = [log for log in outer if LOG.fullmatch(log) and (log in inner or not self._goes(log, inner))]
            kept = self._kept.keep_of_log(name, outer, staying, step.patience.left())
            notes = [f"[git: {name} was removed inside; what only it led to is kept as {one}]" for one in kept]
            merged = b""
        else:
            merged = merged_log(before, added_to(step.known, now), self._broken)
        self._put_text(self._sides.outside, step, step.outside, merged)
        self._put_text(self._sides.inside, step, step.inside, merged)
        self._sides.note_known(name, text_value(merged))
        step.is_handed_over = True
        return notes

    def _goes(self, log: str, inner: Mapping[str, bytes]) -> bool:
        """Whether what a log is of was removed inside, and by now is outside, too."""
        of = log.removeprefix("logs/")
        owner = of if is_ref(of) else f"{'/'.join(log.split('/')[:2])}/HEAD"
        return is_log_of_nothing(log, inner, refs_in(inner)) and owner not in self._sides.known

    def _settle_later(self, step: ExchangeStep, refusals: Refusals) -> list[str]:
        """What is locked: it is tried again; at the end a commit is kept where nobody holds a lock."""
        said = f"[git: {step.name} is locked, so it is not handed over"
        if not step.patience.is_end:
            return [f"{said} before the next call]"]
        kept = self._keep(step, refusals)
        return [f"{said}; what it was inside is kept as {kept}]" if kept else f"{said}]"]

    def _keep(self, step: ExchangeStep, refusals: Refusals) -> str:
        """Give the commit of a ref from inside another name outside; tells which, nothing where there is none."""
        if not step.has_commit or step.inside is None or refusals.reason(step.name, step.inside):
            return ""
        kept = self._kept.keep(step.name, step.inside, step.patience.left())
        if kept and self._sides.left.get(step.name) == step.inside:
            del self._sides.left[step.name]
        return kept

    def _settle_conflict(self, step: ExchangeStep, outer: Mapping[str, bytes], refusals: Refusals) -> list[str]:
        """What changed on both sides: the owner's stays, and a commit from inside gets another name."""
        name = step.name
        note = f"[git: {name} was changed outside, too, so it is as it is there, and not as it was left inside]"
        if kept := self._keep(step, refusals):
            note = f"[git: {name} was changed outside, too; what it was inside is kept as {kept}]"
        elif step.has_commit and not refusals.reason(name, step.inside):
            raise IsLocked(name)
        self._put(self._sides.inside, step, step.inside, step.outside, outer)
        self._sides.note_known(name, step.outside)
        self._kept.note_owners([step.outside] if step.outside else ())
        return [note] if is_ref(name) or HEAD.fullmatch(name) or INDEX.fullmatch(name) else []

    def _put_text(self, tree: GitFiles, step: ExchangeStep, expected: str | None, text: bytes) -> None:
        """Write a text of ours on one side; an empty one is none."""
        self._put(tree, step, expected, text_value(text), {step.name: text})

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
        patience = step.patience.left() if tree is self._sides.outside else 0.0
        if is_ref(name):
            change_ref(tree, name, expected, value, patience)
            return
        with tree.locked(name, patience) as file:
            now = file.content()
            is_expected = value_of(name, now, self._sides.values.id_length, tree.content) in (expected, value)
            if not is_expected and not (now == EMPTY_HEAD and expected is None):
                raise WasChanged(name)
            if value is None:
                file.remove()
            else:
                file.replace(written_anew(name, value, contents, self._sides.values.id_length))
        if value is None:
            # git takes an empty folder of a rebase for one that waits
            tree.remove_empty(name, "" if is_of_operation(name) else name.partition("/")[0])


def ids_logged(step: ExchangeStep, inner: Mapping[str, bytes]) -> set[str]:
    """What new lines of a log from inside lead to; of the stashes all, since lines are taken out in between."""
    if not LOG.fullmatch(step.name):
        return set()
    data = inner.get(step.name, b"")
    return ids_in(data if step.name == STASH else added_to(step.known, data))
