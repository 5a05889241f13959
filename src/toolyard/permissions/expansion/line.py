"""A reading whose words are what bash will make of them: braces, variables, output and patterns expanded."""

from __future__ import annotations

import errno
import os
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.expansion import (
    NUMBER,
    PATTERN,
    UNKNOWN,
    Value,
    combined,
    expand_word,
    known_value,
    partly_known,
    union,
    with_tilde,
)
from toolyard.bash.syntax.reading import Assignment, Condition, Loop, Redirection, SimpleCommand
from toolyard.bash.syntax.words import Word
from toolyard.bash.syntax.wrappers import unwrapped
from toolyard.files.inside import is_inside
from toolyard.permissions.expansion.folders import CHANGES_FOLDER, FolderTrail, Whereabouts, end_of
from toolyard.permissions.expansion.globs import files_matching
from toolyard.permissions.expansion.outputs import output_of
from toolyard.permissions.expansion.trees import ALL, Chosen, names_below, tracked_names
from toolyard.permissions.expansion.variables import DECLARES, Variables, home_folder
from toolyard.permissions.paths import OwnFolders, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.bash.syntax.reading import Part, Reading
    from toolyard.bash.syntax.words import WordPiece
    from toolyard.permissions.expansion.shell_state import ShellFacts
    from toolyard.permissions.expansion.variables import LinePlace


MOST_WORDS = 64
"""Files that a pattern is replaced by; of more, only what holds for all of them is told."""


MOST_TREES = 8
"""Folders of a line whose files are looked through."""
NO_FOLDERS = OwnFolders()
LONGEST = 4096
"""Characters of a text that is followed; each variable may be twice as long as the one before."""


class ExpandedLine:
    """Expands one line for the folder and the shell that it would run in; looks at the disk only where it has to."""

    def __init__(
        self,
        reading: Reading,
        cwd: str,
        workspace: str,
        shell: ShellFacts,
        own: OwnFolders = NO_FOLDERS,
        given: tuple[Value, ...] | None = None,
    ) -> None:
        self.written = reading
        self.own = own
        self._given = given
        self._workspace, self._shell = os.path.normpath(workspace), shell
        self._at_first = Whereabouts((os.path.normpath(cwd),))
        self._changes = () if reading.plain else folder_changes(reading)
        self._trail: FolderTrail | None = None
        self._building = False
        self._contained: dict[tuple[str, str], bool] = {}
        self._names_below: dict[tuple[str, Chosen], Value] = {}
        self._outputs: dict[int, Value] = {}
        self._matches: dict[tuple[tuple[WordPiece, ...], str], list[str] | None] = {}

    @cached_property
    def _variables(self) -> Variables:
        return Variables(self.written, self, odd=self._shell.odd_variables, home=home_folder(), given=self._given)

    @cached_property
    def _commands(self) -> dict[int, SimpleCommand]:
        return {part.start: part for part in self.written.commands}

    @cached_property
    def _real_workspace(self) -> str:
        return os.path.realpath(self._workspace)

    @property
    def _splits_oddly(self) -> bool:
        return self._shell.splits_oddly or self._variables.is_set("IFS")

    def reading(self) -> Reading:
        """The reading with all words expanded."""
        if self.written.plain or not needs_expansion(self.written):
            return self.written
        return replace(self.written, parts=tuple(map(self._part, self.written.parts)))

    def where(self, start: int) -> Whereabouts:
        """In which folders a command runs that begins at a place."""
        if not self._changes:
            return self._at_first
        if self._building:  # what is asked while `cd` itself is followed
            is_moved = any(end_of(change) <= start for change in self._changes)
            return Whereabouts(self._at_first.folders, not is_moved)
        if self._trail is None:
            self._building = True
            self._trail = FolderTrail(self._at_first, self._changes, self._targets)
            self._building = False
        return self._trail.where(start)

    def contains(self, path: str, folder: str) -> bool:
        """Whether a path, as it is written and where it leads, is inside the workspace."""
        known = self._contained.get((path, folder))
        if known is None:
            joined = os.path.join(folder, path)
            known = has_no_link(joined, self._workspace) or self._leads_inside(joined) or self.own.hold(joined)
            self._contained[path, folder] = known
        return known

    def _leads_inside(self, path: str) -> bool:
        written, real = resolved(path, "/")
        return is_inside(written, self._workspace) and is_inside(real, self._real_workspace)

    def holds_number(self, name: str, at: LinePlace) -> bool:
        return self._variables.holds_number(name, at)

    @property
    def changes_folder(self) -> bool:
        return bool(self._changes)

    def prints_number(self, start: int) -> bool:
        """Whether the output of a substitution that begins at a place is a number."""
        return self._output(start).is_number

    def given_value(self, word: Word, at: LinePlace) -> Value:
        """What there is to know of a word that becomes an argument of a line that a shell is given."""
        if word.value is not None:
            return self.known(word.value, at)
        start, stars, _ = word.text.partition("**")
        if word.kind == "glob" and stars and word.prefix == start:  # what find puts in
            return replace(self.below(start.rstrip("/") or "/", at), dashes=False, prefix=start)
        return (
            Value(inside=word.inside, relative=not word.prefix.startswith("/"), dashes=word.may_be_option)
            if word.inside
            else UNKNOWN
        )

    def input_word(self, command: SimpleCommand, *, separated: bool) -> Word:
        """What a command reads, as further arguments of a command that it runs: each line, or each word of it."""
        value = self.input_value(command)
        return Word(
            text="…",
            start=command.start,
            end=command.start,
            kind="dynamic" if value.dashes else "glob",
            prefix=value.prefix or ("" if value.dashes else "./"),
            splits=True,
            inside=value.inside and not value.dashes and (not value.splits or separated),
        )

    def _part(self, part: Part) -> Part:
        match part:
            case SimpleCommand():
                return self._command(part)
            case Assignment():
                return self._assignment(part, part)
            case Redirection():
                return self._redirection(part, part)
            case Condition():
                return replace(part, words=tuple(self._single(word, part) for word in part.words))
            case Loop() if part.name is not None:
                return replace(part, words=self._words(part.words, part))
        return part

    def _command(self, part: SimpleCommand) -> SimpleCommand:
        if part.name in DECLARES:
            words = tuple(self._single(word, part) for word in part.written)
        else:
            words = self._words(part.written, part) if any(word.pieces for word in part.written) else part.written
        changed_ = replace(
            part,
            words=words,
            wrapped=(),
            assignments=tuple(self._assignment(each, part) for each in part.assignments),
            redirections=tuple(self._redirection(each, part) for each in part.redirections),
        )
        return unwrapped(changed_)

    def _assignment(self, part: Assignment, at: LinePlace) -> Assignment:
        if part.value is None or part.value.value is not None:
            return part
        return replace(part, value=self._single(part.value, at))

    def _redirection(self, part: Redirection, at: LinePlace) -> Redirection:
        if part.target is None or part.target.value is not None or part.body is not None:
            return part
        if part.operator == "<<<":
            return part
        words = self._words((part.target,), at)
        return replace(part, target=words[0]) if len(words) == 1 else part

    def _words(self, words: Iterable[Word], at: LinePlace) -> tuple[Word, ...]:
        found: list[Word] = []
        for word in words:
            if not word.pieces:
                found.append(word)
                continue
            for expanded in expand_word(word, lambda piece: self._value(piece, at)):
                is_pattern = expanded.kind == "glob" and expanded.pieces
                found.extend(self._matched(expanded, at) if is_pattern else [self._checked(expanded, word, at)])
        return tuple(found)

    def _single(self, word: Word, at: LinePlace) -> Word:
        """A word that is neither split nor matched with files."""
        if word.value is not None or not word.pieces:
            return word
        pieces = with_tilde(word.pieces)
        values = [known_value(piece, lambda each: self._value(each, at)) for piece in pieces]
        if any(value.text is None for value in values):
            return self._checked(replace(partly_known(word, pieces, values), splits=False), word, at)
        if any(piece.kind == "live" and PATTERN.search(piece.text) for piece in pieces):
            return replace(word, pieces=())
        text = "".join(value.text or "" for value in values)
        return Word(text=word.text, start=word.start, end=word.end, value=text, prefix=text)

    def _checked(self, word: Word, written: Word, at: LinePlace) -> Word:
        """A word that is put together of several pieces: as a whole it may be the name of a link that leads out."""
        if word.texts:
            return replace(word, inside=all(self.known(text, at).inside for text in word.texts))
        is_whole = sum(1 for piece in written.pieces if piece.text or piece.kind == "unknown") == 1
        if word.value is not None or not word.inside or is_whole or self.below(".", at).inside:
            return word
        return replace(word, inside=False, sample=None)

    def _matched(self, word: Word, at: LinePlace) -> list[Word]:
        """A pattern as the files that it matches, or still as a pattern when there are none."""
        where = self.where(at.start)
        matches: list[str] = []
        for folder in where.folders:
            is_own = self.own.hold(os.path.join(folder, word.prefix))
            found = None if is_own else self._files(word.pieces, folder)
            if found is None:
                return [replace(word, pieces=())]
            matches += [path for path in found if path not in matches]
        if self._shell.globs_oddly or not where.certain or len(matches) > MOST_WORDS:
            inside = where.certain and not self._shell.globs_oddly
            inside = inside and all(self.contains(path, folder) for path in matches for folder in where.folders)
            may_be_option = any(path.startswith("-") for path in matches)
            prefix = word.prefix or ("" if may_be_option or self._shell.globs_oddly else "./")
            kind = "dynamic" if self._shell.globs_oddly else word.kind
            return [replace(word, pieces=(), inside=inside, prefix=prefix, kind=kind)]
        if not matches:  # until it runs there may be some
            inside = ".." not in word.text and all(self.contains(word.text, folder) for folder in where.folders)
            return [replace(word, pieces=(), inside=inside)]
        # Still known as a pattern: even a command that only speaks lists a folder by one.
        return [
            Word(text=word.text, start=word.start, end=word.end, kind="glob", value=path, prefix=path, expanded=True)
            for path in matches
        ]

    def _files(self, pieces: tuple[WordPiece, ...], folder: str) -> list[str] | None:
        if (pieces, folder) not in self._matches:
            self._matches[pieces, folder] = files_matching(pieces, folder)
        return self._matches[pieces, folder]

    def _value(self, piece: WordPiece, at: LinePlace) -> Value:
        if piece.kind == "variable":
            found = self._variables.value(piece, at)
        elif piece.kind == "output":
            found = self._output(piece.start)
        else:
            return UNKNOWN
        return UNKNOWN if self._splits_oddly and not piece.quoted and not found.is_number else found

    def text_value(self, word: Word | None, at: LinePlace) -> Value:
        if word is None or word.value is not None:
            return self.known(word.value or "" if word else "", at)
        pieces = with_tilde(word.pieces)
        values = [known_value(piece, lambda each: self._value(each, at)) for piece in pieces]
        if not values or any(value.text is None for value in values):
            return combined(pieces, values) if values else UNKNOWN
        return self.known("".join(value.text or "" for value in values), at)

    def list_value(self, words: tuple[Word, ...], at: LinePlace) -> Value:
        return union(value for word in words for value in self._elements(word, at))

    def _elements(self, word: Word, at: LinePlace) -> list[Value]:
        """What each of the words that one becomes stands for."""
        if len(word.pieces) == 1 and word.pieces[0].kind in ("variable", "output"):
            piece, found = word.pieces[0], self._value(word.pieces[0], at)
            if found.text is None and found.splits and not found.is_number and not piece.quoted:
                return [UNKNOWN]
            if found.text is None:
                return [replace(found, splits=found.splits and not found.is_number)]
        return [self._of_word(each, at) for each in self._words((word,), at)]

    def _of_word(self, word: Word, at: LinePlace) -> Value:
        if word.value is not None:
            return self.known(word.value, at)
        prefix = word.prefix
        relative = word.inside and not prefix.startswith("/")
        dashes = word.may_be_option
        splits = word.kind == "glob" or word.splits or not word.is_number
        return Value(
            inside=word.inside,
            relative=relative,
            is_number=word.is_number,
            dashes=dashes,
            splits=splits,
            prefix=prefix,
            texts=word.texts,
        )

    def known(self, text: str, at: LinePlace) -> Value:
        """What there is to know of a text."""
        if len(text) > LONGEST:
            return UNKNOWN
        is_number = NUMBER.fullmatch(text) is not None
        where = self.where(at.start)
        inside = is_number or (where.certain and all(self.contains(text, folder) for folder in where.folders))
        return Value(
            text=text,
            inside=inside,
            relative=inside and not text.startswith("/") and ".." not in text,
            is_number=is_number,
            dashes=text.startswith("-"),
            splits=any(char in text for char in " \t\n*?["),
            prefix=text,
        )

    def folder_at(self, at: LinePlace) -> str | None:
        where = self.where(at.start)
        return where.folders[0] if where.certain and len(where.folders) == 1 else None

    def _targets(self, change: SimpleCommand) -> list[str] | None:
        """Where a change of folder leads, all of what it may be."""
        if self._shell.finds_folders_elsewhere or self._variables.is_set("CDPATH"):
            return None
        if any(each.name == "CDPATH" for each in change.assignments):
            return None
        found: list[str] = []
        for word in change.words[1:]:
            if word.value is not None:
                found += [] if word.value.startswith("-") else [word.value]
            elif (several := self._alternatives(word, change)) is not None:
                found += several
            else:
                return None
        return found or None

    def _alternatives(self, word: Word, at: LinePlace) -> list[str] | None:
        """All texts that a word with a variable of a loop may become."""
        found = self._words((word,), at)
        if all(each.value is not None for each in found):
            return [each.value or "" for each in found]
        pieces = [piece for piece in word.pieces if piece.text]
        if len(pieces) == 1 and (loop := self._loop_of(pieces[0])) is not None:
            words = self._words(loop.words, loop)
            if all(each.value is not None for each in words):
                return [each.value or "" for each in words]
        return None

    def _loop_of(self, piece: WordPiece) -> Loop | None:
        loops = [part for part in self.written.parts if isinstance(part, Loop) and part.name == piece.text]
        only = len(loops) == 1 and not piece.change and not self._variables.any_may_be_set
        others = [part for part in self.written.parts if isinstance(part, Assignment) and part.name == piece.text]
        return loops[0] if only and not others and loops[0].start < piece.start else None

    def _output(self, start: int) -> Value:
        """What a substitution that begins at a place becomes."""
        if start not in self._outputs:
            pipe = next((pipe for pipe in self.written.pipes if pipe.start == start and pipe.elements), None)
            self._outputs[start] = UNKNOWN  # for a broken line may hold itself
            self._outputs[start] = UNKNOWN if pipe is None else self._printed(pipe.elements)
        return self._outputs[start]

    def _printed(self, elements: Sequence[tuple[int, int]]) -> Value:
        commands = [self._commands.get(start) for start, _ in elements]
        found = [self._command(command) for command in commands if command is not None]
        if len(found) != len(commands) or any(command.wrapped for command in found):
            return UNKNOWN
        return output_of(found, CommandSurroundings(self, found[0]))

    def input_value(self, command: SimpleCommand) -> Value:
        """What a command reads: its own redirection, that of the loop around it, or the commands before it."""
        own = [each for each in command.redirections if each.operator.startswith("<")]
        if own:
            return self._redirected(own[-1], command)
        around = [
            part
            for part in self.written.parts
            if isinstance(part, Redirection)
            and part.operator.startswith("<")
            and part.covers[0] <= command.start < part.covers[1]
        ]
        if around:
            return self._redirected(max(around, key=lambda part: part.covers[0]), command)
        for pipe in sorted(self.written.pipes, key=lambda pipe: pipe.end - pipe.start):
            at = next((at for at, (start, end) in enumerate(pipe.elements) if start <= command.start < end), 0)
            if at:
                return self._printed(pipe.elements[:at])
        return UNKNOWN

    def _redirected(self, part: Redirection, at: LinePlace) -> Value:
        target = part.target
        if part.body is not None or target is None:
            return UNKNOWN
        if part.operator == "<<<":
            return self.text_value(target, at)
        if len(target.pieces) == 1 and target.text.startswith("<("):
            return self._output(target.pieces[0].start)
        return UNKNOWN

    def below(self, start: str, at: LinePlace, chosen: Chosen = ALL) -> Value:
        """What there is to know of the names below a folder."""
        where = self.where(at.start)
        if not where.certain or len(where.folders) != 1:
            return UNKNOWN
        folder = os.path.join(where.folders[0], start)
        if (folder, chosen) not in self._names_below:
            if len(self._names_below) >= MOST_TREES or self.own.hold(folder):
                return UNKNOWN
            known = self.known(start, at)
            found = names_below(folder, self._workspace, chosen) if known.inside else UNKNOWN
            self._names_below[folder, chosen] = replace(found, relative=found.relative and known.relative)
        return self._names_below[folder, chosen]

    def tracked(self, at: LinePlace) -> Value:
        """What there is to know of the names of the files that git tracks."""
        folder = self.folder_at(at)
        return UNKNOWN if folder is None else tracked_names(folder, self._workspace)


class CommandSurroundings(msgspec.Struct, frozen=True):
    """What has to be known of the disk, where one command runs."""

    line: ExpandedLine
    at: SimpleCommand

    def known(self, text: str) -> Value:
        return self.line.known(text, self.at)

    def below(self, start: str, chosen: Chosen = ALL) -> Value:
        return self.line.below(start, self.at, chosen)

    def tracked(self) -> Value:
        return self.line.tracked(self.at)

    @property
    def folder(self) -> str | None:
        return self.line.folder_at(self.at)


def has_no_link(path: str, workspace: str) -> bool:
    """Whether a path is plainly inside: it says so, and nothing below the workspace is a link on the way to it."""
    names = path[len(workspace) :].split("/")
    if not is_inside(path, workspace) or ".." in names:
        return False
    place = workspace
    for name in names:
        if not name or name == ".":
            continue
        place = f"{place}/{name}"
        try:
            os.readlink(place)
        except OSError as error:
            if error.errno == errno.EINVAL:  # something else is there
                continue
            return error.errno == errno.ENOENT
        except ValueError:
            return False
        return False
    return True


def folder_changes(reading: Reading) -> tuple[SimpleCommand, ...]:
    return tuple(command for command in reading.commands if (command.name or "") in CHANGES_FOLDER)


def needs_expansion(reading: Reading) -> bool:
    """Whether a line holds a word that is not certain as it is written."""
    for part in reading.parts:
        match part:
            case SimpleCommand():
                assigned = (each.value for each in part.assignments)
                targets = (each.target for each in part.redirections)
                if any(word is not None and word.pieces for word in (*part.written, *assigned, *targets)):
                    return True
            case Assignment(value=Word(pieces=(_, *_))) | Redirection(target=Word(pieces=(_, *_))):
                return True
            case Loop() | Condition():
                return True
    return False
