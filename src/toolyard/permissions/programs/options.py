"""Tables of options, read as the program itself reads them: which words are paths, and what does more than that."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

from toolyard.bash.syntax.words import Word, literal_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


Role = Literal["read", "write", "run"]
Takes = Literal["nothing", "next", "glued"]
Style = Literal["gnu", "single", "first", "assign"]
RUNS = "runs another program"
WRITES = "writes a file"
LOADS = "loads other code"
ELSEWHERE = "takes the code or the settings from elsewhere"
ENDLESS = "does not end by itself"
WAITS = "waits for a person"
IN_PLACE = "changes files in place"
"""What an option does that a rule may spell out, as in `sed -i **`."""
RUNS_NOTHING = (IN_PLACE, "writes", "removes", "throws away", "does not end", "sends", "changes the kernel")
"""How harms begin by which no other program runs."""


class FolderFacts(Protocol):
    """What guards ask of the folder that a line runs in."""

    @property
    def moves(self) -> bool: ...
    @property
    def leaves(self) -> bool: ...
    def contains(self, path: str) -> bool: ...


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command is more than its name says."""

    message: str
    writes: Word | None = None
    """The file that it writes; with a rule that allows writing it, there is no concern."""
    runs: bool = True
    """Whether it may be that another program runs; else a file is written or lost, and nothing more."""
    option: Word | None = None
    """The word that changes files in place; a rule that spells it out was given for that."""


Guard: TypeAlias = "Callable[[Sequence[Word], FolderFacts], Iterator[Concern]]"
"""Looks at the words of a command, its name first, and yields what a rule for the program may not have meant."""


class Operand(msgspec.Struct, frozen=True):
    """A path among the words of a command."""

    word: Word
    text: str
    """The path itself, also when it is glued to an option."""
    role: Role

    @property
    def shown(self) -> str:
        """How it may be told: the names that a pattern matches are not for everybody."""
        return self.word.text if self.word.expanded else self.text


class Given(msgspec.Struct):
    """What a command is given, by the table of its program."""

    options: list[tuple[str, str | None]] = msgspec.field(default_factory=list)
    """Each with its value; None when it has none, or one that is not certain."""
    operands: list[Word] = msgspec.field(default_factory=list)
    concerns: list[Concern] = msgspec.field(default_factory=list)
    paths: list[Operand] = msgspec.field(default_factory=list)
    unknown: Word | None = None
    """A word that the table does not know, so that nothing is certain."""
    follows: bool = False
    """Whether links inside of folders are followed, wherever they lead."""

    def copied(self) -> Given:
        """The same, for somebody who adds to it."""
        lists = (self.options[:], self.operands[:], self.concerns[:], self.paths[:])
        return Given(*lists, self.unknown, self.follows)

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.options)

    def values(self, *names: str) -> list[str | None]:
        return [value for name, value in self.options if name in names]

    def add_path(self, word: Word, text: str, role: str) -> None:
        """Note a path; a text is none, and a list of names makes everything uncertain."""
        if role == "text":
            return
        if role == "names":
            self.unknown = self.unknown or word
            role = "read"
        found: Role = "write" if role == "write" else "run" if role == "run" else "read"
        # Some programs take `-o=file` for the file alone.
        self.paths.append(Operand(word, text.removeprefix("="), found))


class OptionKind(msgspec.Struct, frozen=True):
    """What a table says of one option."""

    takes: Takes = "nothing"
    roles: tuple[str, ...] = ("text",)
    """What its values are: text, names, or a path in one of the roles."""
    harm: str | None = None


More: TypeAlias = "Callable[[Given, FolderFacts], Iterator[Concern]]"


class Options(msgspec.Struct, kw_only=True, eq=False, dict=True):
    """What a program's manual says of its options and operands; it is also the guard of the program.

    The lists are words without dashes: `output` is the long option `--output`, and a word with a dash is a row of
    short ones: `-abc` stands for a, b and c. In `harms`, a word that ends in `=` takes a value, and one that ends in
    `?` takes only a value that is glued to it.
    """

    flags: str = ""
    values: str = ""
    """These take a text, the next word if none is glued."""
    optional: str = ""
    """These take only a text that is glued."""
    reads: str = ""
    writes: str = ""
    """The values of these two are paths."""
    names: str = ""
    """The value of these is a file with further paths."""
    runs: str = ""
    """The value of these is a program."""
    harms: dict[str, str] = msgspec.field(default_factory=dict)
    pairs: dict[str, str] = msgspec.field(default_factory=dict)
    """These take several words, with the role of each."""
    operands: str = "read*"
    """The roles of the operands, such as `text read*`."""
    when: dict[str, str] = msgspec.field(default_factory=dict)
    """The roles that hold when certain options are given."""
    default: str = ""
    """The path that it looks at when it is given none."""
    follows: str = ""
    """Options by which it follows links inside of folders, or `always`."""
    more: More | None = None
    """What the table cannot say: yields further concerns about what is given."""
    style: Style = "gnu"
    """How options are spelled: `single` has long ones with one dash (Go), `first` looks at the first letter of such a
    word (xxd), `assign` has words such as `if=file` (dd)."""
    complete: bool = False
    """Whether an option that is not in the lists is a concern for every rule, not only for those of presets."""
    abbreviates: bool = True
    """Whether the beginning of a long option stands for it, as with GNU programs."""
    old_style: bool = False
    """Whether the first word may be a row of options without a dash, as in `tar xzf`."""
    glues: bool = True
    """Whether a value may be glued to its letter; else each letter of a row takes a word of its own."""
    at_files: bool = False
    """Whether `@file` stands for the words in that file."""
    dash_is_output: bool = False
    """Whether a file called `-` is no file, but the standard output."""
    is_for_writing: bool = False
    """Whether a rule for the program means the files that it writes, as with `cp`."""
    stops: bool = False
    """Whether there are no options any more behind the first operand."""
    _last: tuple[list[Word], Given] | None = None

    def scan(self, words: Sequence[Word]) -> Given:
        """What these words give it; the last ones are remembered, since several ask about the words of one command."""
        asked = list(words)
        if self._last is None or self._last[0] != asked:
            self._last = (asked, Scanner(self, asked).run())
        return self._last[1].copied()

    def __call__(self, words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
        given = self.scan(words[1:])
        yield from given.concerns
        if self.more is not None:
            yield from self.more(given, folder)

    @cached_property
    def named(self) -> dict[str, OptionKind]:
        found: dict[str, OptionKind] = {}
        for several, kind in self._lists():
            for word in several.split():
                for name in spread_name(word.rstrip("=?") if kind.harm else word):
                    found[name] = with_suffix(kind, word)
        return found

    def _lists(self) -> Iterator[tuple[str, OptionKind]]:
        """Rows of options, each with what they take and do."""
        yield self.flags, OptionKind()
        yield self.values, OptionKind("next")
        yield self.optional, OptionKind("glued")
        yield self.reads, OptionKind("next", ("read",))
        yield self.writes, OptionKind("next", ("write",))
        yield self.names, OptionKind("next", ("names",))
        yield self.runs, OptionKind("next", ("run",), RUNS)
        yield from ((several, OptionKind("next", tuple(roles.split()))) for several, roles in self.pairs.items())
        yield from ((several, OptionKind(harm=harm)) for several, harm in self.harms.items())

    @cached_property
    def long_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.named if len(name) > 1)

    @cached_property
    def can_harm(self) -> bool:
        """Whether an option that is not to be seen could do any harm."""
        writes = not self.is_for_writing and any("write" in kind.roles for kind in self.named.values())
        harms = any(kind.harm not in (None, ENDLESS, WAITS) for kind in self.named.values())
        return self.complete or writes or harms

    @cached_property
    def takes_paths(self) -> bool:
        """Whether an option that is not to be seen could make it read something else."""
        roles = {role for kind in self.named.values() for role in kind.roles}
        return bool(self.follows) or roles != {"text"}

    @cached_property
    def _shapes(self) -> tuple[tuple[frozenset[str], tuple[str, ...]], ...]:
        """Each shape with the options that it needs; the last needs none."""
        special = ((spread_names(several), tuple(shape.split())) for several, shape in self.when.items())
        return (*special, (frozenset(), tuple(self.operands.split())))

    @cached_property
    def following(self) -> frozenset[str]:
        return spread_names(self.follows)

    @property
    def always_follows(self) -> bool:
        return self.follows == "always"

    def shape(self, given: Given) -> tuple[str, ...]:
        """The roles of the operands, with the options that are given."""
        present = {name for name, _ in given.options}
        return next(shape for needed, shape in self._shapes if not needed or needed & present)


def with_suffix(kind: OptionKind, word: str) -> OptionKind:
    """What an option of the harmful ones takes."""
    if not kind.harm or kind.takes != "nothing":
        return kind
    takes: Takes = "next" if word.endswith("=") else "glued" if word.endswith("?") else "nothing"
    return OptionKind(takes, kind.roles, kind.harm)


def spread_name(word: str) -> Sequence[str]:
    """The options that a word of a list stands for."""
    return word[1:] if word.startswith("-") else (word,)


def spread_names(text: str) -> frozenset[str]:
    return frozenset(name for word in text.split() for name in spread_name(word))


def roles_for(count: int, shape: Sequence[str]) -> list[str]:
    """The role of each operand: one role of the shape may have a star, and stands for as many as there are."""
    star = next((at for at, role in enumerate(shape) if role.endswith("*")), None)
    if star is None:
        last = shape[-1] if shape else "text"
        return [*shape[:count], *[last] * (count - len(shape))]
    before, after = shape[:star], shape[star + 1 :]
    if count <= len(after):
        return list(after[len(after) - count :])
    repeated = [shape[star][:-1]] * (count - len(before) - len(after))
    return [*before, *repeated, *after][:count]


class Scanner:
    """Goes through the words of a command by the table of its program."""

    def __init__(self, table: Options, words: Sequence[Word]) -> None:
        self._table = table
        self._words = words
        self._at = 0
        self._ended = False
        self._surely = False
        """Whether the options have ended for certain: no option that is not known can have taken the `--`."""
        self._doubtful: set[int] = set()
        """Which operands may be options."""
        self.given = Given()

    def run(self) -> Given:
        if self._table.old_style and self._words and not self._words[0].may_be_option:
            self._take_row()
        while self._at < len(self._words):
            word = self._words[self._at]
            self._at += 1
            self._take(word)
        self._assign_roles()
        return self.given

    def _take(self, word: Word) -> None:
        table = self._table
        if word.value is None:
            self._take_uncertain(word)
        elif table.style == "assign":
            self._take_long(word.value, word)
        elif self._is_operand(word):
            self.given.operands.append(word)
        elif word.expanded and word.kind == "glob" and not self._ended:
            self._unknown(word, f"what '{word.text}' becomes is an option", always=True)
        elif word.value == "--" and not self._ended:
            self._ended = True
            self._surely = table.complete or self.given.unknown is None
        elif table.style == "first":
            self._take_first(word.value[1:], word)
        elif word.value.startswith("--") or table.style == "single":
            self._take_long(word.value.lstrip("-"), word)
        else:
            self._take_cluster(word.value[1:], word)

    def _is_operand(self, word: Word) -> bool:
        """Behind `--` only what surely ended the options counts: an option that is not known may have taken it."""
        if not word.may_be_option or (self._table.stops and self.given.operands):
            return True
        return self._ended and (self._table.complete or (self._surely and not self._table.can_harm))

    def _take_uncertain(self, word: Word) -> None:
        """A word that only bash knows: harmless as an operand, and as the value of an option that is spelled out."""
        if self._table.style == "assign":
            self._unknown(word, f"what '{word.text}' becomes is not certain")
            return
        name, is_glued, _ = word.prefix.lstrip("-").partition("=")
        stopped = self._table.stops and bool(self.given.operands) and 0 not in self._doubtful
        stopped = stopped and (word.kind == "glob" or not self._table.can_harm)
        if not word.may_be_option or stopped or (self._ended and (self._surely or not word.splits)):
            self.given.operands.append(word)
        elif word.prefix.startswith("--") and is_glued and not word.splits_freely:
            self._take_long(f"{name}=", word)
        elif (letter := self._letter_before(word)) is not None:
            self._note(letter, word, word, glued=True)
        elif self._table.can_harm or word.prefix.startswith("-"):
            self.given.unknown = self.given.unknown or word
            self.given.concerns += [uncertain_option(word)] if self._table.can_harm else []
        else:
            self._doubtful.add(len(self.given.operands))
            self.given.operands.append(word)
            if word.inside and self._table.takes_paths:
                self.given.unknown = self.given.unknown or word

    def _letter_before(self, word: Word) -> str | None:
        """The letter that takes the uncertain rest of a word for its value, as in `-n"$count"`."""
        row = word.prefix
        if word.splits or len(row) < 2 or row.startswith("--") or not row.startswith("-") or self._table.style != "gnu":
            return None
        *flags, last = (self._table.named.get(letter) for letter in row[1:])
        is_row = last is not None and last.takes != "nothing" and not last.harm
        return row[-1] if is_row and all(each and each.takes == "nothing" and not each.harm for each in flags) else None

    def _take_row(self) -> None:
        """Letters without a dash; the values of all of them stand behind it."""
        word = self._words[0]
        self._at = 1
        if word.value is None:
            self._unknown(word, f"what '{word.text}' becomes may be options")
            return
        for letter in word.value:
            if letter in self._table.named:
                self._note(letter, word, None, glued=False)
            else:
                self._unknown(word, f"the option '{letter}' is not known")

    def _take_first(self, text: str, word: Word) -> None:
        """A word whose first letter says all: `-c8`, `-cols 8`, `-ps`."""
        if text in self._table.named:
            self._note(text, word, None, glued=False)
        elif (kind := self._table.named.get(text[:1])) is not None and kind.takes == "next":
            self._note(text[:1], word, text[1:], glued=True)
        else:
            self._unknown(word, f"the option '{word.text}' is not known")

    def _take_long(self, text: str, word: Word) -> None:
        name, glued, value = text.partition("=")
        meant = self._meant(name)
        if not meant:
            self._unknown(word, f"the option '{word.text}' is not known", always=self._may_harm(name))
        elif len({self._table.named[each] for each in meant}) > 1:
            self._take_ambiguous(meant, word)
        elif glued and self._table.named[meant[0]].takes == "nothing":
            self._unknown(word, f"'{word.text}' has a value that it cannot have", always=self._may_harm(name))
        else:
            self._note(meant[0], word, (word if word.value is None else value) if glued else None, glued=bool(glued))

    def _take_ambiguous(self, meant: Sequence[str], word: Word) -> None:
        named = self._table.named
        harmful = [name for name in meant if named[name].harm or "write" in named[name].roles]
        self.given.unknown = self.given.unknown or word
        if harmful or self._table.complete:
            self._concern(f"'{word.text}' may mean --{(harmful or meant)[0]}")

    def _meant(self, name: str) -> list[str]:
        """The options that a name stands for: itself, or those it abbreviates."""
        known = self._table.named
        if name in known and (len(name) > 1 or self._table.style in ("single", "assign")):
            return [name]
        if not name or not self._table.abbreviates or self._table.style != "gnu":
            return []
        return sorted(full for full in self._table.long_names if full.startswith(name))

    def _may_harm(self, name: str) -> bool:
        """Whether a name that stands for no option abbreviates a harmful one; some versions of a program take that."""
        known = self._table.named
        return bool(name) and any(
            full.startswith(name) and (known[full].harm or "write" in known[full].roles)
            for full in self._table.long_names
        )

    def _take_cluster(self, letters: str, word: Word) -> None:
        for at, letter in enumerate(letters):
            rest = letters[at + 1 :]
            kind = self._table.named.get(letter)
            if kind is None:
                self._unknown(word, f"the option '-{letter}' is not known")
                if self._table.complete:
                    return
            elif kind.takes == "nothing":
                self._note(letter, word, None, glued=False)
            elif at and letters[at - 1].isdigit():
                self._unknown(word, f"'-{letter}' of '{word.text}' may be a unit, or an option", always=True)
                return
            elif not self._table.glues:
                self._note(letter, word, None, glued=kind.takes == "glued")
            else:
                self._note(letter, word, rest or None, glued=bool(rest) or kind.takes == "glued")
                return

    def _note(self, name: str, word: Word, value: Word | str | None, *, glued: bool) -> None:
        kind = self._table.named[name]
        if kind.harm:
            option = word if kind.harm == IN_PLACE else None
            runs = not kind.harm.startswith(RUNS_NOTHING)
            self.given.concerns.append(Concern(message=f"'{word.text}' {kind.harm}", runs=runs, option=option))
        if kind.takes == "next" and not glued:
            value = self._next_values(kind)
        elif value is not None:
            self._note_value(word, value, kind.roles[0])
        if value is None and "write" in kind.roles:
            self._concern(f"'{word.text}' {WRITES}")
        self.given.options.append((name, value.value if isinstance(value, Word) else value))

    def _next_values(self, kind: OptionKind) -> Word | None:
        """The words behind an option that are its values, whatever they look like; the last of them."""
        value: Word | None = None
        for role in kind.roles:
            if self._at >= len(self._words):
                break
            value = self._words[self._at]
            self._at += 1
            if value.splits:
                self._unknown(value, f"what '{value.text}' becomes may be several words", always=True)
            self._note_value(value, value, role)
        return value

    def _note_value(self, word: Word, value: Word | str, role: str) -> None:
        text = value if isinstance(value, str) else value.value if value.value is not None else value.text
        if value is word and word.value is None and word.prefix.startswith("--") and word.kind == "glob":
            text = text.partition("=")[2]  # what a pattern matches all begins with the option
        if role == "write":
            self._note_written(word, literal_word(text) if isinstance(value, str) else value)
        if role != "write" or text != "-" or not self._table.dash_is_output:
            self.given.add_path(word, text, role)

    def _note_written(self, word: Word, target: Word) -> None:
        if self._table.is_for_writing or (target.value == "-" and self._table.dash_is_output):
            return
        # What is written has to be named: a pattern takes whichever file comes last.
        writes = None if target.expanded else target
        self.given.concerns.append(Concern(message=f"'{word.text}' {WRITES}", writes=writes, runs=False))

    def _assign_roles(self) -> None:
        given, table = self.given, self._table
        shape = table.shape(given)
        before = len(given.paths)
        for at, (word, role) in enumerate(zip(given.operands, roles_for(len(given.operands), shape), strict=True)):
            judged = "read" if role == "text" and at in self._doubtful else role
            if table.at_files and word.prefix.startswith("@"):
                judged = "names"
            if judged == "write":
                self._note_written(word, word)
            given.add_path(word, word.value if word.value is not None else word.text, judged)
        is_mixed = "write" in shape and not table.is_for_writing
        if is_mixed and any(word.splits for word in given.operands):
            self._concern("what becomes several words may name a file that is written")
        given.follows = table.always_follows or (bool(table.following) and given.has(*table.following))
        if table.default and len(given.paths) == before:
            given.add_path(literal_word(table.default), table.default, "read")

    def _unknown(self, word: Word, message: str, *, always: bool = False) -> None:
        self.given.unknown = self.given.unknown or word
        if self._table.complete or always:
            self._concern(message)

    def _concern(self, message: str) -> None:
        self.given.concerns.append(Concern(message=message))


def guard_by_pattern(pattern: str, why: str) -> Guard:
    """The guard of a program whose options have a form of their own: words that begin like the pattern do more."""
    does_more = re.compile(pattern)

    def guard(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
        for word in words[1:]:
            if does_more.match(word.prefix):
                yield Concern(message=f"'{word.text}' {why}")
            elif word.value is None and word.may_be_option:
                yield uncertain_option(word)

    return guard


def guard_always_writes(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """The guard of a program that writes files whose names are not in its arguments."""
    if [word.value for word in words[1:]] not in (["--help"], ["--version"]):
        yield Concern(message=f"{words[0].text} writes files")


def uncertain_option(word: Word) -> Concern:
    return Concern(message=f"what '{word.text}' becomes may be an option")


def sent_uncertain(word: Word) -> Concern:
    """A word that only bash knows may hold a secret, and a program that talks to others sends it."""
    return Concern(message=f"what '{word.text}' becomes goes to another machine")
