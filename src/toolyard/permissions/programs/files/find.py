"""find: its words are read as it reads them itself, each predicate with the words that belong to it."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.options import RUNS, WRITES, Concern, Given

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Guard


LEADING = re.compile(r"-[HLPEXdsx]|-O[0-3]")
"""Options that stand before the folders; `-D` takes a word besides."""
ALONE = names("""
    -daystart -depth -d -follow -help --help -ignore_readdir_race -noignore_readdir_race -mount -noleaf -nowarn -warn
    -version --version -xautofs -xdev -empty -executable -false -nogroup -nouser -readable -true -writable -print
    -print0 -ls -prune -quit -not -a -and -o -or ! ( ) ,
""")
WITH_TEXT = names("""
    -maxdepth -mindepth -regextype -amin -atime -cmin -context -ctime -fstype -gid -group -ilname -iname -inum -ipath
    -iregex -iwholename -links -lname -mmin -mtime -name -path -perm -regex -size -type -uid -used -user -wholename
    -xtype -printf
""")
WITH_FILE = names("-anewer -cnewer -newer -samefile")
NEWER = re.compile(r"-newer[aBcm]([aBcmt])")
RUNNING = ("-exec", "-execdir", "-ok", "-okdir")
WRITING = ("-fprint", "-fprint0", "-fls", "-fprintf")
HARMFUL = (*RUNNING, *WRITING, "-delete", "-files0-from", "-D")
BEGINS_EXPRESSION = re.compile(r"-.|[(!),]$")


class FindGiven(Given):
    """What find is given: where it starts, and which commands it runs."""

    starts: list[Word] = msgspec.field(default_factory=list)
    commands: list[tuple[Word, ...]] = msgspec.field(default_factory=list)
    """As they are written, with their `{}`."""
    tests: list[tuple[str, str | None]] = msgspec.field(default_factory=list)
    """Each test with the text that it is given."""
    branches: bool = False
    """Whether not all of its tests have to hold."""

    @property
    def files(self) -> str:
        """A pattern for what it finds below its start: `**` for anything, links among it; `**/*` for ordinary files."""
        if self.branches:
            return "**"
        if ("-type", "f") in self.tests:
            return "**/*"
        name = next((text for test, text in self.tests if test == "-name"), None)
        return f"**/{name}" if name and name != "*" and "/" not in name else "**"

    @property
    def start(self) -> str | None:
        """Where it starts, of several the one that leads away; None when that is not certain, or links are followed."""
        if self.follows or self.has("-files0-from") or any(word.value is None for word in self.starts):
            return None
        starts = [word.value or "" for word in self.starts]
        away = [start for start in starts if start.startswith("/") or ".." in start]
        return (away or starts or ["."])[0]


class FindTable:
    """Reads the words of find, and is its guard."""

    def scan(self, words: Sequence[Word]) -> FindGiven:
        return FindScanner(words).run()

    def __call__(self, words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
        yield from self.scan(words[1:]).concerns


class FindScanner:
    def __init__(self, words: Sequence[Word]) -> None:
        self._words = words
        self._at = 0
        self.given = FindGiven()

    def run(self) -> FindGiven:
        self._take_leading()
        while self._at < len(self._words) and not self._begins_expression():
            word = self._next()
            self.given.starts.append(word)
            self.given.add_path(word, word.value if word.value is not None else word.text, "read")
        if not self.given.starts:
            self.given.add_path(literal_word("."), ".", "read")
        while self._at < len(self._words):
            self._take_predicate(self._next())
        return self.given

    def _next(self) -> Word:
        self._at += 1
        return self._words[self._at - 1]

    def _take_leading(self) -> None:
        while self._at < len(self._words) and (value := self._words[self._at].value) is not None:
            if value == "-D":
                self._at += 2
            elif value == "--" or LEADING.fullmatch(value):
                self.given.follows = self.given.follows or value == "-L"
                self._at += 1
            else:
                break

    def _begins_expression(self) -> bool:
        word = self._words[self._at]
        if word.value is None:
            return could_be(word, HARMFUL)
        return bool(BEGINS_EXPRESSION.match(word.value))

    def _take_predicate(self, word: Word) -> None:
        value = word.value
        if value is None:
            self._take_uncertain(word)
        elif value in RUNNING:
            self._take_command(word)
        elif value in WITH_TEXT or ((newer := NEWER.fullmatch(value)) and newer[1] == "t"):
            self.given.tests.append((value, self._words[self._at].value if self._at < len(self._words) else None))
            self._take_value("text")
        elif value in WITH_FILE or NEWER.fullmatch(value):
            self._take_value("read")
        elif value in WRITING:
            self._take_written(word)
        elif value == "-files0-from":
            self._take_value("names")
            self._harm(word, "reads names from a file")
        elif value == "-delete":
            self._harm(word, "removes files")
        elif value not in ALONE:
            self.given.unknown = self.given.unknown or word
            self.given.concerns.append(Concern(message=f"'{value}' of find is not known"))
        if value is not None:
            self.given.follows = self.given.follows or value == "-follow"
            self.given.branches = self.given.branches or value in ("-o", "-or", "!", "-not", ",")
            self.given.options.append((value, None))

    def _take_uncertain(self, word: Word) -> None:
        self.given.unknown = self.given.unknown or word
        if could_be(word, HARMFUL):
            self.given.concerns.append(Concern(message=f"what '{word.text}' becomes may be an action"))

    def _take_value(self, role: str) -> None:
        if self._at < len(self._words):
            word = self._next()
            self.given.add_path(word, word.value if word.value is not None else word.text, role)
            if word.splits:
                self._take_uncertain(word)

    def _take_written(self, word: Word) -> None:
        target = self._words[self._at] if self._at < len(self._words) else None
        self.given.concerns.append(Concern(message=f"'{word.text}' {WRITES}", writes=target, runs=False))
        self._take_value("write")
        if word.value == "-fprintf":
            self._take_value("text")

    def _take_command(self, word: Word) -> None:
        """Up to a semicolon, or a plus behind `{}`; what it runs is judged as a command of its own."""
        begin = self._at
        while self._at < len(self._words) and not ends_command(self._words, self._at):
            self._at += 1
        command = tuple(self._words[begin : self._at])
        if self._at == len(self._words):
            self.given.concerns.append(Concern(message=f"{word.text} without an end"))
        self._at += 1
        self.given.commands.append(command)
        if word.value in ("-execdir", "-okdir"):
            self._harm(word, RUNS, runs=True)
        if any(each.splits_freely for each in command):
            self.given.concerns.append(Concern(message=f"what {word.text} runs may have an end that is not to be seen"))

    def _harm(self, word: Word, why: str, *, runs: bool = False) -> None:
        self.given.concerns.append(Concern(message=f"'{word.text}' {why}", runs=runs))


def ends_command(words: Sequence[Word], at: int) -> bool:
    return words[at].value == ";" or (words[at].value == "+" and words[at - 1].value == "{}")


def find_commands(words: Sequence[Word]) -> list[tuple[Word, ...]]:
    """The commands behind the actions of find that run some, with what find puts in as words that are not certain."""
    given = FIND.scan(words[1:])
    return [tuple(filled(word, given.start, given.files) for word in command) for command in given.commands]


def filled(word: Word, start: str | None, files: str) -> Word:
    """A word with what find puts into it; a lone `{}` is one of the files below where find starts."""
    if "{}" not in (word.value or ""):
        return word
    if word.value == "{}" and start is not None:
        below = start.rstrip("/") + "/"
        return replace(word, value=None, kind="glob", prefix=below, text=f"{below}{files}")
    return replace(word, value=None, kind="dynamic", prefix=(word.value or "").partition("{}")[0])


def could_be(word: Word, values: Sequence[str]) -> bool:
    """Whether a word that is not certain may become one of several words."""
    if not word.may_be_option:
        return False
    if word.kind == "glob" and not re.search(r"[{\\'\"]", word.text):
        return any(fnmatch.fnmatchcase(value, word.text) for value in values)
    return True


FIND = FindTable()
FIND_GUARDS: dict[str, Guard] = {"find gfind": FIND}
