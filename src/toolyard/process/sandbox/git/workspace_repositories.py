"""The repositories of a workspace that git inside has for itself, and those that come to be below them."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from toolyard.files.plain_text import data_at, printable
from toolyard.process.sandbox.folder_events import FolderEvents
from toolyard.process.sandbox.git.exchange import RepositoryExchange
from toolyard.process.sandbox.git.git_files import GitFiles
from toolyard.process.sandbox.git.inside_repository import REAL_OBJECTS, git_program
from toolyard.process.sandbox.git.submodules import modules_of
from toolyard.process.sandbox.mount_points import folder_in, folder_itself, listing_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolyard.process.sandbox.git.inside_repository import PrivateGitFolder


class WorkspaceRepositories:
    """All of them, brought up to date together."""

    def __init__(
        self,
        folders: Sequence[PrivateGitFolder],
        roots: Sequence[str],
        events: FolderEvents | None = None,
        program: str | None = None,
    ) -> None:
        """`events` tell when to look; `program` is the git that may run outside, looked for where it is not given."""
        self._changes = (events or FolderEvents()).new_group(writes=True)
        self._roots = list(roots)
        self._program = git_program() if program is None else program
        self._exchanges: dict[str, RepositoryExchange] = {}
        self._told_left: dict[str, dict[str, str]] = {}
        for folder in folders:
            known = f"{folder.place}.known"
            self._add(folder.repository.git, folder.place, folder.objects, known, is_new=folder.repository.is_new)

    def fill(self) -> None:
        """Give the folders, which were just made, what is outside."""
        for one in self._exchanges.values():
            one.fill()

    @property
    def is_outgrown(self) -> bool:
        """Whether only a new sandbox has all of them: one was removed inside."""
        return any(one.is_lost for one in list(self._exchanges.values()))

    def is_due(self) -> bool:
        """Whether something may have changed on one of the sides, as far as the events were heard."""
        exchanges = list(self._exchanges.values())
        if not self._changes.is_look_due(lambda: [folder for one in exchanges for folder in one.folders()]):
            return False
        if not any(one.is_due() for one in exchanges):
            return False
        self._changes.forget()
        return True

    def exchange(self, *, at_end: bool = False, with_modules: bool = False) -> list[str]:
        """Bring each side what is new on the other; tells what could not be.

        With `with_modules` git outside hears of new submodules, too: nothing runs any more that could write there.
        """
        when = {"at_end": at_end, "with_modules": with_modules}
        # At the end also what was written in place, which `is_due` does not see; else each where it says so itself.
        due = [one for one in list(self._exchanges.values()) if at_end or one.is_due()]
        notes = [note for one in due for note in one.exchange(**when)]
        notes += [note for one in self._new_modules() for note in one.exchange(**when)]
        return [*notes, *(self._keep_left() if at_end else ())]

    def described(self) -> dict[str, Any]:
        """What whoever cleans up after us needs to exchange once more."""
        places = [(one.git, one.place, one.objects, one.is_new) for one in self._exchanges.values()]
        return {"places": places, "program": self._program}

    def _new_modules(self) -> list[RepositoryExchange]:
        """The repositories of submodules that were added inside."""
        found = []
        for one in list(self._exchanges.values()):
            for place in modules_of(one.place):
                git = place and one.git + place[len(one.place) :]
                if git and place and git not in self._exchanges:
                    number = len(self._exchanges)
                    found.append(self._add(git, place, f"{place}/objects", f"{one.place}.{number}.known", is_new=True))
                    with contextlib.suppress(OSError):  # then it misses what is shared, and says so
                        self._share_objects(git, place)
        return found

    def _keep_left(self) -> Iterator[str]:
        """Keep what could not be handed over, since its folder is about to be removed; tells how to get it."""
        for one in self._exchanges.values():
            left, one.sides.left = one.sides.left, {}
            if not left or self._told_left.get(one.git) == left:
                continue
            from toolyard.process.sandbox.git.outgoing.recovered import keep_work

            self._told_left[one.git] = left
            if kept := keep_work(one.git, left, one.objects, self._program):
                names = ", ".join(kept.refs)
                yield printable(
                    f"[git: {names} of {one.git} could not be handed over, and is kept in {kept.place}; "
                    f"to get it: {kept.command}]"
                )

    def _share_objects(self, git: str, place: str) -> None:
        """A new one that is a clone of another of ours goes on using its objects."""
        names = {os.fsencode(f"{real}/{REAL_OBJECTS}"): os.fsencode(f"{real}/objects") for real in self._exchanges}
        lines = (GitFiles(place).content("objects/info/alternates") or b"").splitlines()
        shared = [names[line] for line in lines if line in names]
        with contextlib.suppress(FileExistsError):
            GitFiles(git).make_root()
            GitFiles(git).add("objects/info/alternates", b"".join(line + b"\n" for line in shared))

    def _add(self, git: str, place: str, objects: str, known_file: str, *, is_new: bool) -> RepositoryExchange:
        self._exchanges[git] = RepositoryExchange(
            git, place, known_file, objects=objects, roots=self._roots, program=self._program, is_new=is_new
        )
        return self._exchanges[git]


def finish_removals(pointers: Iterable[str]) -> list[str]:
    """Remove what is left of worktrees that git inside removed: the pointer, which is guarded, and its folder.

    That is done where the repository does not know the worktree any more, and nothing else is in the folder.
    """
    gone = []
    for pointer in pointers:
        above, name = os.path.split(os.path.dirname(pointer))
        # By handles: whoever exchanges the folder for a link meanwhile has nothing removed elsewhere.
        with contextlib.suppress(OSError), folder_itself(above) as outer:
            with folder_in(name, outer) as folder:
                if not is_of_removed(pointer, folder):
                    continue
                os.unlink(os.path.basename(pointer), dir_fd=folder)
            os.rmdir(name, dir_fd=outer)
            gone.append(os.path.dirname(pointer))
    return gone


def is_of_removed(pointer: str, folder: int) -> bool:
    """Whether an open folder holds nothing but a pointer to a worktree that its repository does not know any more."""
    target = os.fsdecode(data_at(os.path.basename(pointer), folder))
    own = os.path.join(os.path.dirname(pointer), target.removeprefix("gitdir: ").rstrip("\r\n"))
    repository, _, name = own.rpartition(f"{os.sep}worktrees{os.sep}")
    if "\0" in own or not name or not os.path.isfile(f"{repository}/HEAD") or os.path.lexists(own):
        return False
    return list(listing_at(folder)) == [os.path.basename(pointer)]
