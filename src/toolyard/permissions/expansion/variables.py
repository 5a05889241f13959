"""What the variables of a line can hold, wherever in the line they are looked at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec.structs import replace

from toolyard.bash.syntax.expansion import SOME_NUMBER, UNKNOWN, Value, union
from toolyard.bash.syntax.reading import Arithmetic, Assignment, Loop, SimpleCommand
from toolyard.permissions.expansion.changes import changed
from toolyard.permissions.programs.categories import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.bash.syntax.reading import Reading
    from toolyard.bash.syntax.words import Word, WordPiece


Setter: TypeAlias = "Assignment | Loop | SimpleCommand | Arithmetic"
SETS_ANY = names("eval source . getopts mapfile readarray printf wait unset declare typeset local readonly let select")
"""Builtins that may set a variable which is not to be seen here."""
DECLARES = ("local", "declare", "typeset", "readonly", "export")
READS_LINES = ("mapfile", "readarray")
EMPTY = Value(text="", inside=True, relative=True, dashes=False, splits=False)
NUMBERS = names("? # $ ! PPID RANDOM SRANDOM SECONDS LINENO UID EUID BASHPID")


class LinePlace(Protocol):
    """Where in a line something stands."""

    @property
    def start(self) -> int: ...
    @property
    def block(self) -> tuple[int, ...]: ...


class LineContext(Protocol):
    """What of a line the values of its variables depend on."""

    def text_value(self, word: Word | None, at: LinePlace) -> Value:
        """What a word stands for that is neither split nor matched with files."""

    def list_value(self, words: tuple[Word, ...], at: LinePlace) -> Value:
        """What one of the words that a list becomes stands for."""

    def input_value(self, command: SimpleCommand) -> Value:
        """What a command reads from its standard input."""

    def known(self, text: str, at: LinePlace) -> Value:
        """What there is to know of a text."""

    def below(self, start: str, at: LinePlace) -> Value:
        """What there is to know of the names below a folder."""

    def folder_at(self, at: LinePlace) -> str | None:
        """Where a command runs, if that is certain."""


class Variables:
    """The setters of one line, by the names that they set."""

    def __init__(
        self,
        reading: Reading,
        context: LineContext,
        *,
        odd: frozenset[str],
        home: str | None,
        given: tuple[Value, ...] | None = None,
    ) -> None:
        self._context = context
        self._odd, self._home = odd, home
        self._setters: dict[str, list[Setter]] = {}
        self._looking: set[str] = set()
        self._values: dict[tuple[int, str], Value] = {}
        self.any_may_be_set = False
        self._moved = False
        """Whether arguments may have been moved or set anew."""
        self._given = given
        """The arguments of the line itself, where it is text that a shell is given with some."""
        self._functions, self._commands = reading.functions, reading.commands
        for part in reading.parts:
            if isinstance(part, Assignment | Loop | SimpleCommand | Arithmetic):
                self._note(part)

    def _note(self, part: Setter) -> None:
        if isinstance(part, SimpleCommand):
            sets_unseen = part.name is None or (part.name in SETS_ANY and part.words[1:2] != ())
            sets_unseen = sets_unseen and not is_plain_declaration(part)
            if part.name in ("shift", "set"):
                self._moved = True
            if sets_unseen and not (part.name == "printf" and not part.words[1].may_be_option):
                self.any_may_be_set = True
        for name in names_set_by(part):
            self._setters.setdefault(name, []).append(part)

    def is_set(self, name: str) -> bool:
        """Whether the line itself sets a variable."""
        return name in self._setters

    def value(self, piece: WordPiece, at: LinePlace) -> Value:
        """What a variable holds, with the change that the expansion makes to it."""
        found = self._value(piece.text, at)
        if not piece.change:
            return found
        after = changed(found, piece.change, lambda text: self._context.known(text, at))
        is_piece = after.text is None and after.inside and not after.is_number and not after.texts
        return UNKNOWN if is_piece and not self._context.below(".", at).inside else after

    def holds_number(self, name: str, at: LinePlace) -> bool:
        return self._value(name, at).is_number

    def _value(self, name: str, at: LinePlace) -> Value:
        if self.any_may_be_set or name in self._odd or name in self._looking:
            return UNKNOWN
        setters = self._setters.get(name)
        if setters is None:
            return self._preset(name, at)
        self._looking.add(name)
        try:
            values = [self._remembered(setter, name) for setter in setters]
        finally:
            self._looking.discard(name)
        if not any(always_before(setter, at) for setter in setters):
            values.append(UNKNOWN)
        return union(values)

    def _preset(self, name: str, at: LinePlace) -> Value:
        """What bash itself keeps in a variable."""
        if name.isdigit() and name != "0" and not self._moved:
            return self._argument(int(name), at)
        if name in NUMBERS:
            return SOME_NUMBER
        if name == "PWD" and (folder := self._context.folder_at(at)) is not None:
            return self._context.known(folder, at)
        if name == "HOME" and self._home is not None:
            return self._context.known(self._home, at)
        return UNKNOWN

    def _argument(self, number: int, at: LinePlace) -> Value:
        """What `$1` is: that of every call of the function around, or of the line itself."""
        around = [each for each in self._functions if each.start <= at.start < each.end]
        if not around:
            return UNKNOWN if self._given is None else [*self._given, *[EMPTY] * number][number - 1]
        calls = [command for command in self._commands if command.name == around[-1].name]
        if len(around) > 1 or any(word.splits for call in calls for word in call.words):
            return UNKNOWN
        found = (self._context.text_value(call.words[number], call) for call in calls if len(call.words) > number)
        missing = [EMPTY] if any(len(call.words) <= number for call in calls) else []
        return union([*found, *missing])

    def _remembered(self, setter: Setter, name: str) -> Value:
        """What a setter sets; found out once, or a chain of variables would take time without end."""
        key = (setter.start, name)
        if key not in self._values:
            self._values[key] = self._set_by(setter, name)
        return self._values[key]

    def _set_by(self, setter: Setter, name: str) -> Value:
        match setter:
            case Arithmetic():
                return SOME_NUMBER
            case Loop():
                return self._context.list_value(setter.words, setter)
            case SimpleCommand():
                return self._declared(setter, name) if setter.name in DECLARES else self._read_by(setter)
        if setter.adds and setter.elements is None:
            return UNKNOWN
        if setter.elements is not None:
            return self._context.list_value(setter.elements, setter)
        return self._context.text_value(setter.value, setter)

    def _declared(self, command: SimpleCommand, name: str) -> Value:
        """What `local name=value` sets; a name alone is empty, or what it was before."""
        for word in command.words[1:]:
            if word.value is not None and word.value.startswith(f"{name}="):
                return self._context.known(word.value.partition("=")[2], command)
            if word.value is None and word.prefix.startswith(f"{name}=") and word.pieces:
                value = replace(word, pieces=word.pieces[1:], value=None)
                return self._context.text_value(value, command)
        return UNKNOWN

    def _read_by(self, command: SimpleCommand) -> Value:
        """What `read` puts into its only variable: a line."""
        if command.name not in ("read", *READS_LINES) or len(list(names_set_by(command))) != 1:
            return UNKNOWN
        found = self._context.input_value(command)
        return UNKNOWN if found.text is not None and "\n" in found.text else found


def names_set_by(part: Setter) -> Iterator[str]:
    match part:
        case Assignment() if part.name is not None and part.alone:
            yield part.name
        case Loop() if part.name is not None:
            yield part.name
        case Arithmetic():
            yield from part.sets
        case SimpleCommand() if part.name in ("read", *DECLARES, *READS_LINES):
            values = [word.value or word.prefix for word in part.words[1:]]
            yield from (value.partition("=")[0] for value in values if value and not value.startswith("-"))


def is_plain_declaration(part: SimpleCommand) -> bool:
    """Whether a builtin sets the variables that it names, to what it says or reads, and no others."""
    if part.name not in (*DECLARES, *READS_LINES):
        return False
    options = [word.value or "" for word in part.words[1:] if word.prefix.startswith("-")]
    allowed = "-t" if part.name in READS_LINES else "-aArxgpfF"
    is_named = len(options) < len(part.words) - 1 or part.name not in READS_LINES
    return (
        all(set(option) <= set(allowed) for option in options) and is_named and all(word.prefix for word in part.words)
    )


def always_before(setter: Setter, at: LinePlace) -> bool:
    """Whether a variable has been set for certain when a place of the line is reached."""
    if end_of_setter(setter) > at.start or (isinstance(setter, Assignment) and setter.adds):
        return False
    return at.block[: len(setter.block)] == setter.block


def end_of_setter(setter: Setter) -> int:
    """Where a setter has set its variable; what it is set to is looked at before."""
    if isinstance(setter, Loop):
        return max((word.end for word in setter.words), default=setter.start)
    return setter.start + len(setter.text.encode())


def home_folder() -> str | None:
    home = os.path.expanduser("~")
    return home if os.path.isabs(home) else None
