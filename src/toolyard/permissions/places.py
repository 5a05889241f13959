"""Where a line runs: its folder as far as that is certain, and the workspace it should not leave."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolyard.permissions.paths import is_inside, resolved

if TYPE_CHECKING:
    from toolyard.shell.reading import Reading, SimpleCommand
    from toolyard.shell.words import Word

__all__ = ["Place", "place_of"]

CHANGES_FOLDER = frozenset({"cd", "pushd", "popd"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder of a line, and of a part of it."""

    cwd: str
    workspace: str
    leaves: bool = False
    """Whether the line may leave the workspace, or began outside of it."""
    moves: bool = False
    """Whether the line changes its folder at all."""
    protected: tuple[str, ...] = ()
    """Files that hold the rules themselves."""

    def contains(self, path: str) -> bool:
        """Whether a path, as it is written and where it leads, is inside the workspace."""
        written, real = resolved(path, self.cwd)
        return is_inside(written, self.workspace) and is_inside(real, os.path.realpath(self.workspace))


def place_of(reading: Reading, cwd: str, workspace: str, protected: tuple[str, ...] = ()) -> Place:
    """Follow the changes of folder in a line; whatever is not certain counts as leaving."""
    start = Place(cwd=os.path.normpath(cwd), workspace=os.path.normpath(workspace), protected=protected)
    leaves = not start.contains(".")
    moves = [command for command in reading.commands if (command.name or "") in CHANGES_FOLDER]
    if not moves:
        return Place(cwd=start.cwd, workspace=start.workspace, leaves=leaves, protected=protected)
    climbed = ""
    for command in moves:
        target = target_of(command)
        if target is None or (command.repeated and ".." in target.split("/")):
            leaves = True
            continue
        # A folder that was entered before may not exist: only the ways up count for certain.
        climbed += "../" * target.split("/").count("..")
        leaves = leaves or not start.contains(target) or not start.contains(climbed or ".")
    return Place(cwd=start.cwd, workspace=start.workspace, leaves=leaves, moves=True, protected=protected)


def target_of(command: SimpleCommand) -> str | None:
    """Where `cd` goes, if that is certain."""
    if command.name != "cd":
        return None
    operands: list[Word] = [word for word in command.words[1:] if word.value not in ("-P", "-L", "-e", "-@", "--")]
    if len(operands) != 1:
        return None
    value = operands[0].value
    return None if value is None or value == "-" or value.startswith("-") else value
