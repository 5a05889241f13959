"""Putting the guard back on a file that its owner replaces while something runs inside.

A mount guards the file that was there when it was made, and is gone as soon as that file is replaced by rename, as
editors do, or removed. The guard process hears of it from the kernel, and looks by itself where the kernel cannot tell.
It stops everything inside, sees to it that nothing stays that somebody inside may have written meanwhile, mounts the
new file again and lets all go on. Where what is inside cannot be stopped it is ended, and so it is when a folder was
replaced: somebody inside may already have opened the new one. This module imports next to nothing until it happens.
"""

from __future__ import annotations

import os
import time

from toolyard.process.keeper.groups import freeze, thaw
from toolyard.process.keeper.guard_lists import SEPARATOR, paths_in, told_beside
from toolyard.process.keeper.held_files import HeldFile, content, facts_at, identity, settle
from toolyard.process.keeper.vouched_files import VouchedFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolyard.process.keeper.file_events import FileEvents
    from toolyard.process.sandbox.replaced_files import Outcome

MOST_TRIES = 20
SURELY_LATER = 0.005
"""Longer than the kernel takes for a rename, in seconds."""
LOOK_ANYWAY_AFTER, LOOK_BLINDLY_AFTER = 0.25, 0.02
"""How often to look where the kernel tells of what happens, and where it does not."""
MOST_OF_THE_TIME = 20
"""A look by ourselves takes no more than one part of this of our time, also where there are very many files."""
ASK_AGAIN_AFTER = 1.0
"""How long to look by ourselves before the kernel is asked again to tell."""


class FileGuards:
    """The files that are guarded, each held open as it was."""

    def __init__(self, listed: str, groups: list[str], started: int) -> None:
        """`listed` is the file that names them; what is replaced is told in one beside it."""
        self._told = told_beside(listed)
        self._vouched = VouchedFiles(listed)
        self._groups = groups
        self._started = started
        self._held: dict[str, HeldFile] = {}
        self._events: FileEvents | None = None
        paths, above = paths_in(listed)
        self._above = set(above)
        """Folders on the way to what is guarded, which must stay the same ones, though they can be written."""
        self._asked_at = time.monotonic()
        self._look_took = 0.0
        if paths:
            from toolyard.process.keeper.file_events import FileEvents

            self._events = FileEvents()
            self._hold([*paths, *above])

    @property
    def events(self) -> int:
        """Becomes readable when something may have been replaced; below 0 where nothing is told."""
        return self._events.fd if self._events else -1

    @property
    def look_after(self) -> float | None:
        """Seconds after which to look, whatever is told; None where nothing is guarded."""
        if self._events is None:
            return None
        wanted = LOOK_BLINDLY_AFTER if self._events.is_blind else LOOK_ANYWAY_AFTER
        return min(max(wanted, self._look_took * MOST_OF_THE_TIME), LOOK_ANYWAY_AFTER)

    def restore(self, end_all: Callable[[], None]) -> None:
        """Stop all that is inside if something was replaced, put that back, and let it go on; or end it."""
        if self._events is None:
            return
        self._events.hear()
        if not (replaced := self._replaced()):
            self._remember()
            self._ask_again()
            return
        seen = {path: content(path) for path in replaced}  # at once: perhaps nobody has touched it yet
        frozen = [] if self._has_folder(replaced) else freeze(self._groups)
        outcomes: list[Outcome] = []
        try:
            if not frozen:
                end_all()
            self._vouched.take_turn()
            outcomes += self._put_all_back(replaced, seen)
            if any(outcome.what == "lost" for outcome in outcomes):
                raise OSError("what was there cannot be put back, and so cannot be guarded")
            outcomes += self._guard_again(replaced, is_frozen=bool(frozen))
            self._vouched.vouch_for(path for path in replaced if self._held[path].is_file)
        except OSError:
            end_all()
            outcomes += ended(replaced)
        finally:
            self._vouched.end_turn()
            thaw(frozen)
        self._tell(outcomes)

    def look_once_more(self) -> None:
        """All inside has ended: what was put into the place of guarded files just before does not stay either."""
        if self._events is None:
            return
        self._events.hear()
        # What is not there any more may be what was made for the sandbox, and is removed with it.
        replaced = [path for path in self._replaced() if identity(path) is not None]
        if replaced:
            self._tell(self._put_all_back(replaced, {path: content(path) for path in replaced}))

    def let_go(self) -> None:
        """Nothing is guarded any more: end sooner by that."""
        if self._events:
            self._events.let_go()

    def get_ready(self) -> None:
        """Import what will be needed, when there is time for it."""
        if self._events:
            import hashlib  # noqa: F401

            import toolyard.process.keeper.mounts_inside
            import toolyard.process.sandbox.replaced_files
            import toolyard.process.sandbox.replaced_folders  # noqa: F401

    def _replaced(self) -> list[str]:
        began = time.monotonic()
        found = [path for path, held in self._held.items() if not held.is_still_at(path)]
        self._look_took = time.monotonic() - began
        return found

    def _has_folder(self, paths: Iterable[str]) -> bool:
        return any(self._held[path].is_folder for path in paths)

    def _remember(self) -> None:
        """Read again what their owner wrote into files without replacing them."""
        if not self._events or not (self._events.has_changes or self._events.is_blind):
            return
        self._events.has_changes = False
        now = {path: content(held.fd) for path, held in self._held.items() if held.is_file}
        if all(data == self._held[path].content for path, data in now.items()):
            return
        time.sleep(SURELY_LATER)
        replaced = self._replaced()
        for path, data in now.items():
            if path not in replaced:
                self._held[path].content = data

    def _ask_again(self) -> None:
        """Let the kernel tell again, if it could not do so for a while."""
        if self._events and self._events.is_blind and time.monotonic() > self._asked_at + ASK_AGAIN_AFTER:
            self._asked_at = time.monotonic()
            self._events.forget()
            self._follow(self._held)

    def _hold(self, paths: Iterable[str]) -> None:
        """Keep hold of each as it is now, and hear when it is replaced."""
        for path in paths:
            if path in self._held:
                self._held[path].close()
            self._held[path] = HeldFile(path)
        self._follow(paths)

    def _follow(self, paths: Iterable[str]) -> None:
        from toolyard.process.keeper.file_events import CHANGED, EMPTIED, GONE

        for path in paths:
            held = self._held[path]
            if self._events and held.which:
                is_guarded_folder = held.is_folder and path not in self._above
                flags = CHANGED if held.is_file else EMPTIED if is_guarded_folder else 0
                self._events.follow(path, GONE | flags)
                self._events.follow_name(path)

    def _put_all_back(self, replaced: list[str], seen: dict[str, bytes | None]) -> list[Outcome]:
        """Nobody inside does anything now: what is not there yet can only be made by its owner."""
        missing = {path for path in replaced if identity(path) is None}
        if self._events:
            self._events.hear()
        return [
            outcome for path in replaced for outcome in self._put_back(path, seen[path], was_missing=path in missing)
        ]

    def _put_back(self, path: str, seen: bytes | None, *, was_missing: bool) -> list[Outcome]:
        """Make what is there its owner's; tells where the rest went."""
        from toolyard.process.sandbox.replaced_files import Outcome, put_aside
        from toolyard.process.sandbox.replaced_folders import put_folder_aside

        held = self._held[path]
        try:
            if not held.is_folder:
                return [self._put_file_back(path, held, seen, was_missing=was_missing)]
            aside = put_folder_aside(path, held.fd) if path not in self._above else []
        except OSError:  # as on a full disk: then nothing is there, rather than what somebody inside may have made
            return [put_aside(path, "lost")]
        return [Outcome(path, "", "ended"), *aside]

    def _put_file_back(self, path: str, held: HeldFile, seen: bytes | None, *, was_missing: bool) -> Outcome:
        """First of all comes what was there before: to look at what was found takes longer than git may need to obey.

        It is put into a new file that nobody inside has open.
        """
        from toolyard.process.sandbox.replaced_files import Outcome, keep_wanted, put_aside, swap

        if self._vouched.holds(path):
            return Outcome(path, "", "kept")
        is_saved = self._events is not None and self._events.was_saved(path)
        if was_missing:
            settle(path)
        before, like = held.content, held.facts
        if before is None:  # what was there held nothing, or too much
            before, like = content(path) if was_missing else seen if is_saved else None, facts_at(path)
        if before is None or like is None:
            return put_aside(path)
        found_at = swap(path, before, like=like)
        if found_at is None:
            return Outcome(path, "", "removed")
        settle(found_at)
        settle(path)
        found = content(found_at)
        wanted = found if was_missing else seen if is_saved else None
        return Outcome(path, keep_wanted(path, found_at, found, wanted, before=before, like=like))

    def _guard_again(self, replaced: list[str], *, is_frozen: bool) -> list[Outcome]:
        """Mount what is there now, and again what its owner replaces just then, which is told."""
        from toolyard.process.keeper.mounts_inside import mount_inside
        from toolyard.process.sandbox.replaced_files import Outcome

        known = replaced
        for _ in range(MOST_TRIES):
            if self._events:
                self._events.hear()
            again = list(dict.fromkeys([*known, *self._replaced()]))
            if is_frozen and self._has_folder(again):
                break
            self._hold(again)
            if is_frozen:
                mount_inside(self._started, again)
            if not self._replaced():
                return [Outcome(path, "", "kept") for path in again if path not in replaced]
            known = again
        raise OSError("it is replaced faster than it can be mounted")

    def _tell(self, outcomes: Iterable[Outcome]) -> None:
        """Write down what was done, and where what was put aside went; to go on as a guard matters more."""
        told = b"".join(os.fsencode(field) + SEPARATOR for outcome in outcomes for field in outcome)
        try:
            fd = os.open(self._told, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.write(fd, told)
        except OSError:
            pass
        finally:
            os.close(fd)


def ended(paths: Iterable[str]) -> list[Outcome]:
    from toolyard.process.sandbox.replaced_files import Outcome

    return [Outcome(path, "", "ended") for path in paths]
