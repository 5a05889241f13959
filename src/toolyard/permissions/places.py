"""Where a line runs: its folder as far as that is certain, and the workspace it should not leave."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from toolyard.bash.syntax.reading import Assignment, Loop
from toolyard.permissions.paths import is_inside, resolved

if TYPE_CHECKING:
    from toolyard.bash.syntax.reading import Reading, SimpleCommand
    from toolyard.bash.syntax.words import Word


CHANGES_FOLDER = frozenset({"cd", "pushd", "popd"})
SETS_VARIABLES = frozenset({None, "read", "printf", "mapfile", "readarray", "getopts", "eval", "source", ".", "wait"})
"""Commands after which a variable may have another value; one whose name is not certain may be any of them."""
QUOTED = re.compile(r"[{\\'\"]")


class Place:
    """The folder of a line; what needs a look at the disk is found out only when it matters."""

    def __init__(self, reading: Reading, cwd: str, workspace: str, protected: tuple[str, ...] = ()) -> None:
        self.cwd = os.path.normpath(cwd)
        self.workspace = os.path.normpath(workspace)
        self.protected = protected
        """Files that hold the rules themselves."""
        self._reading = reading
        self._moves = [command for command in reading.commands if (command.name or "") in CHANGES_FOLDER]

    @property
    def moves(self) -> bool:
        """Whether the line changes its folder at all."""
        return bool(self._moves)

    @cached_property
    def leaves(self) -> bool:
        """Whether a part of the line may run outside of the workspace; whatever is not certain counts as leaving."""
        if self.cwd != self.workspace and not self.contains("."):
            return True
        climbed = "."
        for command in self._moves:
            target = target_of(command)
            if target is None or not self.contains(target):
                return True
            # A folder that was entered before may not exist, so that only the ways up count for certain.
            ways_up = target.split("/").count("..")
            climbed += "/.." * ways_up
            if (ways_up and command.repeated) or not self.contains(climbed):
                return True
        return False

    @cached_property
    def loop_names(self) -> frozenset[str]:
        """Variables that only stand for files inside the workspace: `for f in src/*.py`, and nothing else sets f."""
        if self._moves or any(command.name in SETS_VARIABLES for command in self._reading.commands):
            return frozenset()
        loops = [part for part in self._reading.parts if isinstance(part, Loop) and part.name]
        astray = {loop.name for loop in loops if not all(map(self._is_inside, loop.words))}
        set_alone = {part.name for part in self._reading.parts if isinstance(part, Assignment)}
        return frozenset(loop.name for loop in loops if loop.name) - astray - set_alone

    def _is_inside(self, word: Word) -> bool:
        """Whether everything that a word becomes is inside the workspace."""
        text = word.value if word.value is not None else word.text
        return word.kind != "dynamic" and ".." not in text and not QUOTED.search(text) and self.contains(text)

    def contains(self, path: str) -> bool:
        """Whether a path, as it is written and where it leads, is inside the workspace."""
        written, real = resolved(path, self.cwd)
        return is_inside(written, self.workspace) and is_inside(real, os.path.realpath(self.workspace))


def target_of(command: SimpleCommand) -> str | None:
    """Where `cd` goes, if that is certain."""
    if command.name != "cd":
        return None
    operands = [word.value for word in command.words[1:] if word.value not in ("-P", "-L", "-e", "-@", "--")]
    if len(operands) != 1 or operands[0] is None or operands[0].startswith("-"):
        return None
    return operands[0]
