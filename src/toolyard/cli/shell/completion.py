"""What could follow at the end of a command line: files, commands and variables, quoted as the line needs it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


VARIABLE = re.compile(r"(?<!\\)\$(\{?)((?:[A-Za-z_]\w*)?)$")
ASSIGNED = re.compile(r"(?:^|[\s;&|(])([A-Za-z_]\w*)\+?=|\bread\s+(?:-r\s+)?([A-Za-z_]\w*)|\bfor\s+([A-Za-z_]\w*)\b")
DEFINED = re.compile(r"([\w.:-]+)\s*\(\s*\)|\balias\s+([\w.-]+)=")
VALUE_FOLLOWS = re.compile(r"(?:--[\w-]+|[A-Za-z_]\w*\+?)=")
BEFORE_COMMANDS = frozenset({"!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"})
SPECIAL = re.compile(r"([\s!\"#$&'()*;<>?\[\\\]^`{|}~])")
SPECIAL_IN_QUOTES = re.compile(r'(["$`\\])')


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """Either what to insert, or the names to choose from."""

    insert: str = ""
    choices: tuple[str, ...] = ()


class Vocabulary:
    """The words of a shell, and those that were defined in it since."""

    def __init__(self, *, words: Iterable[str], variables: Iterable[str]) -> None:
        self.words = set(words)
        self.variables = set(variables)

    def learn(self, command: str) -> None:
        """Note what a command may define; a name too many does no harm."""
        self.variables.update(name for names in ASSIGNED.findall(command) for name in names if name)
        self.words.update(name for names in DEFINED.findall(command) for name in names if name)


class CompletedWord(msgspec.Struct, frozen=True, kw_only=True):
    """The last word of a line, without its quotes."""

    text: str
    open_quote: str
    is_command: bool


def complete(line: str, vocabulary: Vocabulary, cwd: str) -> Completion:
    word = last_word(line)
    if word.open_quote != "'" and (variable := VARIABLE.search(line)):
        brace, begun = variable.groups()
        names = [name for name in vocabulary.variables if name.startswith(begun)]
        return completion_from(
            begun, names, CompletedWord(text="", open_quote="", is_command=False), end="}" if brace else ""
        )
    if value := VALUE_FOLLOWS.match(word.text):
        word = CompletedWord(text=word.text[value.end() :], open_quote=word.open_quote, is_command=False)
    end = f"{word.open_quote} "
    if word.is_command and "/" not in word.text:
        return completion_from(
            word.text, list(commands(word.text, vocabulary, cwd)) if word.text else [], word, end=end
        )
    names = list(files(word.text, cwd, only_programs=word.is_command))
    return completion_from(word.text.rpartition("/")[2], names, word, end=end)


def completion_from(begun: str, names: list[str], word: CompletedWord, *, end: str) -> Completion:
    """Insert the only name, or what all names have in common; else offer all of them."""
    names = sorted(set(names))
    common = os.path.commonprefix(names)[len(begun) :]  # noqa: RUF071 - of letters, indeed
    if len(names) == 1:
        return Completion(insert=quoted(common, word.open_quote) + ("" if names[0].endswith("/") else end))
    return Completion(insert=quoted(common, word.open_quote)) if common else Completion(choices=tuple(names))


def last_word(line: str) -> CompletedWord:
    """Read the line as far as completion needs it; inside of a substitution in quotes it knows nothing."""
    text, quote, in_word, is_command = "", "", False, True
    chars = iter(line)
    for char in chars:
        if char == quote:
            quote = ""
        elif char == "\\" and quote != "'":
            text, in_word = text + unescaped(next(chars, ""), quote), True
        elif quote:
            text += char
        elif char in "'\"":
            quote, in_word = char, True
        elif char in ";|&(`\n":
            text, in_word, is_command = "", False, True
        elif char in " \t<>":
            is_command = (is_command and (not in_word or leads_to_command(text))) and char not in "<>"
            text, in_word = "", False
        else:
            text, in_word = text + char, True
    return CompletedWord(text=text, open_quote=quote, is_command=is_command)


def unescaped(char: str, quote: str) -> str:
    return char if not quote or char in '"$`\\' else f"\\{char}"


def leads_to_command(word: str) -> bool:
    return word in BEFORE_COMMANDS or VALUE_FOLLOWS.match(word) is not None


def commands(begun: str, vocabulary: Vocabulary, cwd: str) -> Iterator[str]:
    yield from (word for word in vocabulary.words if word.startswith(begun))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for entry in entries(os.path.join(cwd, folder), begun):
            if os.access(entry.path, os.X_OK) and not is_folder(entry):
                yield entry.name


def files(begun: str, cwd: str, *, only_programs: bool) -> Iterator[str]:
    """Files in the folder that the word names, folders with a slash; hidden ones only for a word that begins so."""
    folder, slash, name = begun.rpartition("/")
    for entry in entries(os.path.join(cwd, os.path.expanduser(folder + slash)), name):
        if is_folder(entry):
            yield f"{entry.name}/"
        elif not only_programs or os.access(entry.path, os.X_OK):
            yield entry.name


def entries(folder: str, begun: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            for entry in found:
                hidden = entry.name.startswith(".") and not begun.startswith(".")
                if entry.name.startswith(begun) and not hidden and entry.name.isprintable():
                    yield entry
    except OSError:
        return


def is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def quoted(text: str, open_quote: str) -> str:
    """Quote a text for where a quote is open, or none is."""
    if open_quote == "'":
        return text.replace("'", "'\\''")
    return (SPECIAL_IN_QUOTES if open_quote else SPECIAL).sub(r"\\\1", text)
