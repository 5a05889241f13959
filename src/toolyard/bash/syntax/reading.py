"""The values that a command line is read into: commands, redirections, assignments, conditions, loops and doubts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from toolyard.bash.syntax.words import Word


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could not be proven, in words for a person."""

    code: str
    message: str
    text: str = ""
    """The piece of the line it is about."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """`NAME=value`, before a command or on its own."""

    name: str | None
    """None when it is more than a name, such as `a[1]`."""
    value: Word | None
    """None when it is no single word, such as an array."""
    text: str
    start: int
    alone: bool = False
    """Whether it stands for itself, and so changes the shell."""
    block: tuple[int, ...] = ()
    """Where the branches, loops and subshells begin that it stands in, from the outermost."""
    elements: tuple[Word, ...] | None = None
    """The words of an array, `NAME=(…)`."""
    adds: bool = False
    """Whether it is `NAME+=value`, which leaves what was there before."""


class Redirection(msgspec.Struct, frozen=True, kw_only=True):
    """`>file`, `2>&1`, `<<EOF`, `<<<word`."""

    operator: str
    descriptor: str
    target: Word | None
    """The file or the descriptor; the delimiter of a here-document."""
    text: str
    start: int
    body: str | None = None
    """The text of a here-document."""
    is_literal: bool = False
    """Whether bash leaves the here-document's text as it is."""
    body_span: tuple[int, int] = (0, 0)
    covers: tuple[int, int] = (0, 0)
    """Where the loop or group begins and ends that it stands behind; a command has its own redirections."""
    block: tuple[int, ...] = ()


class SimpleCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A program or builtin with its arguments, without its wrappers."""

    words: tuple[Word, ...]
    text: str
    start: int
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    wrapped: tuple[tuple[Word, ...], ...] = ()
    """The same command with its wrappers, such as `timeout 5`, from the outermost to the innermost."""
    repeated: bool = False
    """Whether it may run several times."""
    block: tuple[int, ...] = ()
    """Where the branches, loops and subshells begin that it stands in, from the outermost."""
    forked: bool = False
    """Whether it runs in a copy of the shell, so that nothing of it is left there."""

    @property
    def name(self) -> str | None:
        """What runs, if that is certain."""
        return self.words[0].value if self.words else None

    @property
    def written(self) -> tuple[Word, ...]:
        """The words with all wrappers."""
        return self.wrapped[0] if self.wrapped else self.words


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """`[[ … ]]`, flattened to its words and operators."""

    words: tuple[Word, ...]
    text: str
    start: int
    block: tuple[int, ...] = ()


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """`for name in words`, which sets a variable; `case word in` likewise looks at words, and has no name."""

    name: str | None
    words: tuple[Word, ...]
    text: str
    start: int
    block: tuple[int, ...] = ()


class Arithmetic(msgspec.Struct, frozen=True, kw_only=True):
    """`$((…))`, `((…))`: harmless as long as its variables hold numbers, for bash evaluates anything else."""

    names: tuple[str, ...]
    """The variables that it looks at."""
    sets: tuple[str, ...]
    """Those that it gives a new number."""
    text: str
    start: int
    block: tuple[int, ...] = ()
    is_command: bool = False
    """Whether it stands where a command could."""
    outputs: tuple[int, ...] = ()
    """Where the substitutions begin whose output it counts with."""


class Pipe(msgspec.Struct, frozen=True, kw_only=True):
    """Commands of which each reads what the one before it prints: a pipeline, or what is inside `$(…)`."""

    start: int
    end: int
    elements: tuple[tuple[int, int], ...]
    """Where each begins and ends; none when what is inside a substitution is no plain row of commands."""


class ShellFunction(msgspec.Struct, frozen=True, kw_only=True):
    """`name() { … }`: where it begins and ends; its commands are parts of the reading like all others."""

    name: str
    start: int
    end: int


Part: TypeAlias = SimpleCommand | Redirection | Assignment | Condition | Loop | Arithmetic


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a line. While there are doubts nothing in it is certain, but its parts may still be refused."""

    text: str
    parts: tuple[Part, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    plain: bool = False
    """Whether it is one command of plain words, which cannot be misread."""
    pipes: tuple[Pipe, ...] = ()
    """The pipelines and substitutions in it."""
    defines: tuple[str, ...] = ()
    """The functions that it defines."""
    functions: tuple[ShellFunction, ...] = ()
    """Those of them of the plain form whose commands were read."""

    @property
    def commands(self) -> tuple[SimpleCommand, ...]:
        """All simple commands, those inside substitutions included."""
        return tuple(part for part in self.parts if isinstance(part, SimpleCommand))
