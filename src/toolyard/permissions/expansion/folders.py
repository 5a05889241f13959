"""In which folders the commands of a line may run: `cd` is followed as far as it is certain."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.bash.syntax.reading import SimpleCommand
    from toolyard.bash.syntax.words import Word


CHANGES_FOLDER = frozenset({"cd", "pushd", "popd"})
IGNORED = ("-L", "-e", "-@", "--")
MOST_FOLDERS = 24
MOST_ROUNDS = 3


class Whereabouts(msgspec.Struct, frozen=True):
    """The folders that a command may run in."""

    folders: tuple[str, ...]
    certain: bool = True
    """Whether it cannot be any other."""


class FolderTrail:
    """Follows the changes of folder in a line, from left to right; `where` may be asked at any place of it."""

    def __init__(
        self,
        at_first: Whereabouts,
        changes: Sequence[SimpleCommand],
        targets: Callable[[SimpleCommand], list[str] | None],
    ) -> None:
        self._steps: list[tuple[int, Whereabouts]] = [(-1, at_first)]
        self._targets = targets
        first_repeated = next((change.block[0] for change in changes if change.repeated and change.block), None)
        for change in changes:
            if first_repeated is not None and change.start > first_repeated:
                self._loop(first_repeated, [each for each in changes if each.start > first_repeated])
                break
            self._steps.append((end_of(change), self._after(change, self._steps[-1][1])))

    def where(self, start: int) -> Whereabouts:
        """Where a command runs that begins at a place of the line."""
        return next(found for at, found in reversed(self._steps) if at <= start)

    @property
    def everywhere(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(folder for _, step in self._steps for folder in step.folders))

    def _loop(self, start: int, changes: Sequence[SimpleCommand]) -> None:
        """What runs several times may run wherever any change of the loop leads from any other."""
        found = self._steps[-1][1]
        for _ in range(MOST_ROUNDS):
            before = found
            for change in changes:
                after = self._after(change, found)
                folders = tuple(dict.fromkeys((*found.folders, *after.folders)))
                found = Whereabouts(existing(folders), found.certain and after.certain)
            if found == before:
                break
        else:
            found = Whereabouts(found.folders, False)
        self._steps.append((start, found))

    def _after(self, change: SimpleCommand, before: Whereabouts) -> Whereabouts:
        targets = self._found(change)
        if targets is None:
            return Whereabouts(before.folders, False)
        reached = [os.path.normpath(os.path.join(folder, to)) for to in targets for folder in before.folders]
        sure = not change.block and not change.repeated and all(map(os.path.isdir, reached))
        folders = tuple(dict.fromkeys((*(() if sure else before.folders), *reached)))
        return Whereabouts(folders[:MOST_FOLDERS], before.certain and len(folders) <= MOST_FOLDERS)

    def _found(self, change: SimpleCommand) -> list[str] | None:
        """Where a change of folder leads; back is wherever the line was before."""
        name, operands = change.name, [word for word in change.words[1:] if word.value not in IGNORED]
        is_back = name == "popd" or (len(operands) == 1 and operands[0].value == "-")
        if is_back and len(self._steps) > 1:
            return list(self.everywhere)
        if is_back or len(operands) != 1 or starts_with_dash(operands[0]):
            return None
        return self._targets(change)


def end_of(command: SimpleCommand) -> int:
    """Where a command ends; what stands in its own words runs before it does."""
    return command.start + len(command.text.encode())


def existing(folders: Sequence[str]) -> tuple[str, ...]:
    """Those of several folders that are there: nobody changes to another."""
    return tuple(folder for folder in folders if os.path.isdir(folder))


def starts_with_dash(word: Word) -> bool:
    return (word.value or "").startswith("-")
