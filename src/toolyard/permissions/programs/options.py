"""Tables of options, read as the program itself reads them, and guards: what a command does beyond its name."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolyard.bash.syntax.words import Word, literal_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.permissions.file_access import WorkingFolder


Guard: TypeAlias = "Callable[[Sequence[Word], WorkingFolder], Iterator[Concern]]"
"""Looks at the words of a command, its name first, and yields what a rule for the program may not have meant."""
RUNS = "runs another program"
WRITES = "writes a file"
LOADS = "loads other code"
ELSEWHERE = "takes the code or the settings from elsewhere"
IN_PLACE = "changes files in place"
"""What an option does that a rule may spell out, as in `sed -i **`."""
RUNS_NOTHING = (IN_PLACE, "writes", "removes", "throws away", "does not end", "sends", "changes the kernel")
"""How harms begin by which no other program runs."""


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command is more than its name says."""

    message: str
    writes: Word | None = None
    """The file that it writes; with a rule that allows writing it, there is no concern."""
    runs: bool = True
    """Whether it may be that another program runs; else a file is written or lost, and nothing more."""
    option: Word | None = None
    """The word that changes files in place; a rule that spells it out was given for that."""


class Given(msgspec.Struct):
    options: list[tuple[str, str | None]] = msgspec.field(default_factory=list)
    """Each with its value; None when it has none, or one that is not certain."""
    operands: list[Word] = msgspec.field(default_factory=list)
    concerns: list[Concern] = msgspec.field(default_factory=list)

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.options)

    def values(self, *names: str) -> list[str | None]:
        return [value for name, value in self.options if name in names]


class Options:
    """What a program's manual says of its options.

    The lists are words without dashes: `output` is the long option `--output`, and a word with a dash is a row of
    short ones: `-abc` stands for a, b and c.
    """

    def __init__(
        self,
        *,
        flags: str = "",
        values: str = "",
        optional: str = "",
        writes: str = "",
        harms: dict[str, str] | None = None,
        complete: bool = False,
        single_dash: bool = False,
        dash_is_output: bool = False,
        stops: bool = False,
    ) -> None:
        self.flags = spread_names(flags)
        self.values = spread_names(values)
        """Options that take a value, the next word if none is glued to them."""
        self.optional = spread_names(optional)
        """Options that take a value only if it is glued to them."""
        self.writes = spread_names(writes)
        """Options whose value is a file that is written."""
        self.harms = {name: why for several, why in (harms or {}).items() for name in spread_names(several)}
        """What an option does that makes the command more than its name says."""
        self.complete = complete
        """Whether the lists have every option there is, so that an unknown one is a concern."""
        self.single_dash = single_dash
        """Whether long options begin with one dash or two, as in Go and find."""
        self.dash_is_output = dash_is_output
        """Whether a file called `-` is no file, but the standard output."""
        self.stops = stops
        """Whether there are no options any more behind the first operand."""

    def scan(self, words: Sequence[Word]) -> Given:
        return Scanner(self, words).run()

    def guard(self, words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
        """The guard of a program that needs no more than this table."""
        yield from self.scan(words[1:]).concerns

    @cached_property
    def all_names(self) -> frozenset[str]:
        return self.flags | self.values | self.optional | self.writes | self.harms.keys()

    @cached_property
    def all_long(self) -> frozenset[str]:
        return frozenset(name for name in self.all_names if len(name) > 1)

    @property
    def can_harm(self) -> bool:
        return bool(self.harms or self.writes or self.complete)


def spread_names(text: str) -> frozenset[str]:
    names: set[str] = set()
    for word in text.split():
        names.update(word[1:] if word.startswith("-") else [word])
    return frozenset(names)


class Scanner:
    def __init__(self, table: Options, words: Sequence[Word]) -> None:
        self._table = table
        self._words = words
        self._at = 0
        self._ended = False
        self._surely = False
        """Whether the options have ended for certain: no option that is not known can have taken the `--`."""
        self.given = Given()

    def run(self) -> Given:
        while self._at < len(self._words):
            word = self._words[self._at]
            self._at += 1
            self._take(word)
        return self.given

    def _take(self, word: Word) -> None:
        if word.value is None:
            self._take_uncertain(word)
        elif not word.may_be_option or (self._ended and self._table.complete):
            self.given.operands.append(word)
        elif word.value == "--" and not self._ended:
            self._ended = True
            self._surely = self._table.complete or self._follows_no_option()
        elif word.value.startswith("--") or self._table.single_dash:
            self._take_long(word.value.lstrip("-") if self._table.single_dash else word.value[2:], word)
        else:
            self._take_cluster(word.value[1:], word)

    def _take_uncertain(self, word: Word) -> None:
        """A word that only bash knows: harmless as an operand, and as the value of an option that is spelled out."""
        name, is_glued, _ = word.prefix.lstrip("-").partition("=")
        stopped = self._table.stops and bool(self.given.operands) and word.kind == "glob"
        if not word.may_be_option or stopped or (self._ended and (self._surely or not word.splits)):
            self.given.operands.append(word)
        elif word.prefix.startswith("--") and is_glued and not word.splits:
            self._take_long(f"{name}=", word)
        elif self._table.can_harm:
            self.given.concerns.append(uncertain_option(word))
        else:
            self.given.operands.append(word)

    def _follows_no_option(self) -> bool:
        """Whether what stands before the current word is nothing, an operand, or a switch that takes no value."""
        before = self._words[self._at - 2] if self._at > 1 else None
        return before is None or not before.may_be_option or (before.value or "").lstrip("-") in self._table.flags

    def _take_long(self, text: str, word: Word) -> None:
        name, glued, value = text.partition("=")
        meant = self._meant(name)
        if len(meant) > 1:
            harmful = [full for full in meant if full in self._table.harms or full in self._table.writes]
            if harmful or self._table.complete:
                self._concern(f"'{word.text}' may mean --{(harmful or meant)[0]}")
            return
        if not meant:
            if self._table.complete:
                self._concern(f"the option '{word.text}' is not known")
            return
        self._note(meant[0], word, (word if word.value is None else value) if glued else None, glued=bool(glued))

    def _meant(self, name: str) -> list[str]:
        """The options that a name stands for: itself, or those it abbreviates."""
        if self._table.single_dash:  # without abbreviations, and without rows of letters
            return [name] if name in self._table.all_names else []
        known = self._table.all_long
        if name in known:
            return [name]
        return sorted(full for full in known if full.startswith(name)) if name else []

    def _take_cluster(self, letters: str, word: Word) -> None:
        for at, letter in enumerate(letters):
            rest = letters[at + 1 :]
            if letter in self._table.values or letter in self._table.writes:
                self._note(letter, word, rest or None, glued=bool(rest))
                return
            if letter in self._table.harms or letter in self._table.optional:
                self._note(letter, word, rest or None, glued=True)
                return
            if letter not in self._table.flags and self._table.complete:
                self._concern(f"the option '-{letter}' is not known")
                return
            self._note(letter, word, None, glued=False)

    def _note(self, name: str, word: Word, value: Word | str | None, *, glued: bool) -> None:
        table = self._table
        if name in table.harms:
            harm = table.harms[name]
            option = word if harm == IN_PLACE else None
            concern = Concern(message=f"'{word.text}' {harm}", runs=not harm.startswith(RUNS_NOTHING), option=option)
            self.given.concerns.append(concern)
        takes_next = (name in table.values or name in table.writes) and not glued
        if takes_next and self._at < len(self._words):
            value = self._words[self._at]
            # Some programs take no value that looks like an option: it is then looked at as one, too.
            is_option = value.may_be_option and value.value not in (None, "--")
            self._at += not is_option
            if value.splits:
                self._concern(f"what '{value.text}' becomes may be several words")
        if name in table.writes:
            self._note_written(word, value)
        self.given.options.append((name, value.value if isinstance(value, Word) else value))

    def _note_written(self, word: Word, value: Word | str | None) -> None:
        target = literal_word(value) if isinstance(value, str) else value
        if target is None or target.value != "-" or not self._table.dash_is_output:
            self.given.concerns.append(Concern(message=f"'{word.text}' {WRITES}", writes=target))

    def _concern(self, message: str) -> None:
        self.given.concerns.append(Concern(message=message))


def guard_by_pattern(pattern: str, why: str) -> Guard:
    """The guard of a program whose options have a form of their own: words that begin like the pattern do more."""
    does_more = re.compile(pattern)

    def guard(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
        for word in words[1:]:
            if does_more.match(word.prefix):
                yield Concern(message=f"'{word.text}' {why}")
            elif word.value is None and word.may_be_option:
                yield uncertain_option(word)

    return guard


def guard_always_writes(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """The guard of a program that writes files whose names are not in its arguments."""
    if [word.value for word in words[1:]] not in (["--help"], ["--version"]):
        yield Concern(message=f"{words[0].text} writes files")


def uncertain_option(word: Word) -> Concern:
    return Concern(message=f"what '{word.text}' becomes may be an option")


def sent_uncertain(word: Word) -> Concern:
    """A word that only bash knows may hold a secret, and a program that talks to others sends it."""
    return Concern(message=f"what '{word.text}' becomes goes to another machine")
