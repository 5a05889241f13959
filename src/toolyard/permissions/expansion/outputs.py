"""What commands can print: numbers, names of files inside the workspace, known text; of all others, anything."""

from __future__ import annotations

import os
import re
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from toolyard.bash.syntax.expansion import A_COUNT, SOME_NUMBER, UNKNOWN, Value, union
from toolyard.files.door import LARGEST_TEXT, Door
from toolyard.permissions.expansion.trees import ALL, Chosen
from toolyard.permissions.paths import is_public
from toolyard.permissions.programs.categories import names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.bash.syntax.reading import SimpleCommand
    from toolyard.bash.syntax.words import Word


NUMBER = re.compile(r"\d{1,15}", re.ASCII)
NAMES = Value(inside=True, relative=True)
A_WORD = Value(inside=True, relative=True, dashes=False, splits=False)
"""A revision, a branch, a tag: git lets none begin with a dash or a slash, and none holds two dots."""
REVISION = re.compile(r"[\w@^~{}.][\w@^~{}./-]*", re.ASCII)
PASSES = {
    "head": ("nc", re.compile(r"-\d+|-[nc].*|-q|--lines=.*")),
    "tail": ("n", re.compile(r"-\d+|-n.*|-q|--lines=.*")),
    "sort": ("kt", re.compile(r"-[nruhVfbdigM]+|-[kt].*|--(?:unique|reverse|numeric-sort|version-sort)")),
    "uniq": ("fsw", re.compile(r"-[dui]+|-[fsw].*")),
    "grep": ("me", re.compile(r"-[vEFiwxaP]+|-[me].*|--(?:invert-match|ignore-case)")),
    "shuf": ("n", re.compile(r"-n.*")),
    "cat": ("", re.compile(r"-[su]")),
    "tac": ("", re.compile(r"(?!)")),
}
"""Programs that print some of the lines that they read: the options that take a value, and all that change no line."""
LISTS = {
    "ls": re.compile(r"-[1rtSUX]+"),
    "fd": re.compile(r"-[tedgIHsi]|--(?:type|extension|max-depth|hidden|no-ignore|glob)(?:=.*)?|-[tde].+"),
    "rg": re.compile(r"-[l0FwiSgtT]+|--(?:files|files-with-matches|glob|type|hidden|sort|iglob)(?:=.*)?|-[gtT].+"),
    "grep": re.compile(r"-[rlLEFiwIse]+|--(?:include|exclude|exclude-dir|files-with-matches|recursive)(?:=.*)?"),
}
"""Programs that print names, each with the options after which they print nothing else."""
TAKES_VALUE = {"fd": "tedg", "rg": "gtT", "grep": "e", "ls": ""}
FIND_ODD = re.compile(r"-(?:L|follow|H|D|printf|fprint.*|fls|ls|exec.*|ok.*|delete|files0-from|print0x|O.*)")
FIND_JOINS = names("-o -or , ! -not ( )")
GIT_LISTS = {
    "ls-files": re.compile(r"-[comdz]+|--(?:others|cached|modified|deleted|exclude-standard|full-name)|--"),
    "diff": re.compile(r"--(?:name-only|cached|staged|diff-filter=\w+)|-z|--"),
    "grep": re.compile(r"-[lniwEFI]*l[lniwEFI]*|--(?:name-only|files-with-matches)|-[niwEFI]+|--"),
    "show": re.compile(r"--(?:name-only|pretty=|format=)"),
    "ls-tree": re.compile(r"-r|--name-only"),
}
ADDS_OTHERS = re.compile(r"-\w*o\w*|--(?:others|cached|staged)")
"""Options with which names are listed that are not in the index."""
GIT_NEEDS = {"diff": "--name-only", "show": "--name-only", "ls-tree": "--name-only"}
GIT_REVISIONS = {
    "rev-parse": re.compile(r"--(?:short(?:=\d+)?|abbrev-ref|verify|quiet|symbolic-full-name)|-q"),
    "merge-base": re.compile(r"--(?:fork-point|octopus|all)|-a"),
    "describe": re.compile(r"--(?:tags|always|abbrev=\d+|long)"),
    "branch": re.compile(
        r"--show-current|--format=%\((?:refname:short|refname|objectname)\)|-[ar]+|--(?:all|remotes|list)"
    ),
    "for-each-ref": re.compile(r"--format=%\((?:refname:short|refname|objectname)\)|--sort=-?\w+|--count=\d+"),
    "tag": re.compile(r"-l|--list|--sort=-?[\w:]+"),
    "rev-list": re.compile(r"-n|-\d+|-n\d+|--max-(?:count|parents)=\d+"),
    "symbolic-ref": re.compile(r"--short|-q"),
}
COUNTS = names("-l -c -w -m -L --lines --words --bytes --chars")


class Surroundings(Protocol):
    """What has to be known of the disk."""

    def known(self, text: str) -> Value:
        """What there is to know of a text."""

    def below(self, start: str, chosen: Chosen = ALL) -> Value:
        """What there is to know of the names of the files below a folder."""

    def tracked(self) -> Value:
        """What there is to know of the names of the files that git tracks."""

    @property
    def folder(self) -> str | None:
        """Where it runs, if that is certain."""


def output_of(commands: Sequence[SimpleCommand], around: Surroundings) -> Value:
    """What the last of several commands prints, each reading what the one before it prints."""
    given: Value | None = None
    for command in commands:
        if any(not each.operator.startswith("<") and each.descriptor != "2" for each in command.redirections):
            return UNKNOWN
        given = replace(printed(command, given, around), texts=())
    return UNKNOWN if given is None else without_last_newline(given)


def without_last_newline(value: Value) -> Value:
    return value if value.text is None else replace(value, text=value.text.rstrip("\n"))


def printed(command: SimpleCommand, given: Value | None, around: Surroundings) -> Value:
    words = command.words
    name = command.name or ""
    if given is None and any(each.operator.startswith("<") for each in command.redirections):
        given = UNKNOWN
    if given is not None and (passed := passed_on(name, words, given)) is not None:
        return passed
    printer = PRINTERS.get(name)
    return UNKNOWN if printer is None else printer(words, given, around)


def passed_on(name: str, words: Sequence[Word], given: Value) -> Value | None:
    """Lines of what is read, unchanged."""
    if name not in PASSES:
        return None
    takes_value, unchanging = PASSES[name]
    options, operands = divided(words, takes_value)
    most = 1 if name == "grep" and not any(option.startswith("-e") for option in options) else 0
    if len(operands) > most or not all(map(unchanging.fullmatch, options)):
        return None
    return replace(given, text=None) if given.text and name != "cat" else given


def divided(words: Sequence[Word], takes_value: str) -> tuple[list[str], list[Word]]:
    """The options and the operands; a letter in `takes_value` is an option that takes the next word."""
    options: list[str] = []
    operands: list[Word] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        value = word.value
        if value is None or not value.startswith("-") or value == "-":
            operands.append(word)
            continue
        options.append(value)
        if len(value) == 2 and value[1] in takes_value and rest:
            rest.pop(0)
    return options, operands


def count_lines(words: Sequence[Word], given: Value | None, _around: Surroundings) -> Value:
    options, operands = divided(words, "")
    is_one = len(options) == 1 and options[0] in COUNTS
    return A_COUNT if is_one and not operands and given is not None else UNKNOWN


def grep(words: Sequence[Word], given: Value | None, around: Surroundings) -> Value:
    options, operands = divided(words, "e")
    if any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--count", option) for option in options):
        has_one = len(operands) <= 2 and not any(re.fullmatch(r"-[a-zA-Z]*[rRH].*", option) for option in options)
        return A_COUNT if has_one else UNKNOWN
    if (
        len(operands) == 2
        and options
        and all(map(NUMBERS_LINES.fullmatch, options))
        and is_one_file(operands[1], around)
    ):
        return replace(UNKNOWN, numbered=True, dashes=False)
    lists = any(re.fullmatch(r"-[a-zA-Z]*[lL][a-zA-Z]*|--files.*", option) for option in options)
    return listed("grep", words, around, skip=1) if lists and given is None else UNKNOWN


def is_one_file(word: Word, around: Surroundings) -> bool:
    """Whether a word surely is a single file, before whose lines grep puts no name."""
    return (
        word.value is not None
        and PLAIN_NAME.fullmatch(word.value) is not None
        and around.folder is not None
        and os.path.isfile(os.path.join(around.folder, word.value))
    )


PLAIN_NAME = re.compile(r"[\w./-]+", re.ASCII)
"""A name that is nothing but a name where grep tells it in a sentence, as it does of binary files."""
NUMBERS_LINES = re.compile(r"-[niwEFP]*n[niwEFP]*|-m\d+|-[iwEFP]+")
"""Options of grep with which each line begins with its number, or that change nothing about that."""


def ripgrep(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    options, _ = divided(words, "gtT")
    if "--files" in options:
        return listed("rg", words, around)
    lists = any(re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z0]*|--files-with-matches", option) for option in options)
    return listed("rg", words, around, skip=1) if lists else UNKNOWN


def list_names(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    """Names in one folder, or the operands themselves when they are files."""
    options, operands = divided(words, "")
    if not all(LISTS["ls"].fullmatch(option) for option in options):
        return UNKNOWN
    paths = [word.value for word in operands]
    if None in paths or around.folder is None:
        return UNKNOWN
    folders = [path for path in paths if path and os.path.isdir(os.path.join(around.folder, path))]
    if folders and len(paths) > 1:
        return UNKNOWN
    if operands and not folders:  # which are printed as they are
        return union(around.known(path or "") for path in paths)
    found = union([below(word, around) for word in operands] or [around.below(".")])
    return union([found, around.below(".")]) if found.inside else UNKNOWN


def fd(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    return listed("fd", words, around, skip=1)


def listed(name: str, words: Sequence[Word], around: Surroundings, skip: int = 0) -> Value:
    """Names of files below the operands, or below the folder where it runs."""
    options, operands = divided(words, TAKES_VALUE[name])
    if not all(LISTS[name].fullmatch(option) for option in options):
        return UNKNOWN
    return union([below(word, around) for word in operands[skip:]] or [around.below(".")])


def below(word: Word, around: Surroundings, chosen: Chosen = ALL) -> Value:
    if word.value is None:
        return NAMES if word.inside else UNKNOWN
    known = around.known(word.value)
    return around.below(word.value, chosen) if known.inside else UNKNOWN


def find(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    """Names that begin with where it starts."""
    values = [word.value for word in words[1:]]
    starts: list[Word] = []
    for word in words[1:]:
        if word.value is not None and (word.value.startswith("-") or word.value in ("(", "!")):
            break
        starts.append(word)
    if any(value is not None and FIND_ODD.fullmatch(value) for value in values):
        return UNKNOWN
    chosen = found_by(values[len(starts) :])
    found = union([below(word, around, chosen) for word in starts] or [around.below(".", chosen)])
    prefix = starts[0].value or "" if len(starts) == 1 else "./" if not starts else ""
    is_plain = bool(prefix) and not prefix.startswith("-")
    if len(starts) > 1 and all((word.value or "-")[0] != "-" for word in starts):
        return replace(found, dashes=False, prefix="") if found.inside else UNKNOWN
    return replace(found, dashes=not is_plain, prefix=prefix if is_plain else "") if found.inside else UNKNOWN


def found_by(conditions: Sequence[str | None]) -> Chosen:
    """Which files conditions choose that all have to hold."""
    if any(value in FIND_JOINS for value in conditions):
        return ALL
    given = dict(pairwise(conditions))
    pattern = given.get("-name")
    return Chosen(pattern if pattern is not None else "*", given.get("-type") != "f")


def git(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    values = [word.value for word in words[1:]]
    if not values or None in values:
        return UNKNOWN
    command, arguments = values[0] or "", [value or "" for value in values[1:]]
    if command == "rev-parse" and arguments == ["--show-toplevel"]:
        return around.known(top) if (top := top_of_repository(around.folder)) else UNKNOWN
    if command == "rev-list" and "--count" in arguments:
        return A_COUNT
    if command == "show" and not any(argument in ("--format=", "--pretty=") for argument in arguments):
        return UNKNOWN
    if command in GIT_LISTS and GIT_NEEDS.get(command, "") in ("", *arguments):
        return git_names(command, arguments, around)
    if command in GIT_REVISIONS:
        options = [argument for argument in arguments if argument.startswith("-")]
        revisions = [argument for argument in arguments if not argument.startswith("-")]
        is_plain = all(GIT_REVISIONS[command].fullmatch(option) for option in options)
        is_known = all(REVISION.fullmatch(each) and ".." not in each for each in revisions)
        if command in ("branch", "for-each-ref") and not any(
            each.startswith(("--format", "--show")) for each in options
        ):
            return UNKNOWN
        return A_WORD if is_plain and is_known else UNKNOWN
    return UNKNOWN


def git_names(command: str, arguments: Sequence[str], around: Surroundings) -> Value:
    given = [argument for argument in arguments if argument.startswith("-")]
    operands = [argument for argument in arguments if not argument.startswith("-")]
    is_plain = all(GIT_LISTS[command].fullmatch(option) for option in given)
    if not is_plain or any(operand.startswith("/") or "../" in operand for operand in operands):
        return UNKNOWN
    is_tracked = not any(ADDS_OTHERS.fullmatch(option) for option in given)
    is_of_index = command == "ls-files" or (command == "diff" and not operands)
    found = around.tracked() if is_tracked and is_of_index and around.folder else UNKNOWN
    return found if found.inside else around.below(".")


def top_of_repository(folder: str | None) -> str | None:
    """Where git's repository begins, if it is an ordinary one that says nothing else."""
    while folder is not None:
        config = os.path.join(folder, ".git", "config")
        if os.path.lexists(os.path.join(folder, ".git")):
            try:
                text = Door().read(config, largest=LARGEST_TEXT).data
                return None if b"worktree" in text.lower() else folder
            except OSError:
                return None
        folder = os.path.dirname(folder) if os.path.dirname(folder) != folder else None
    return None


def echo(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    """Its arguments; a single one that is not known stays what it is."""
    values = [word.value for word in words[1:]]
    if len(words) == 2 and words[1].value is None:
        return of_word(words[1])
    if None in values or any((value or "").startswith("-") or "\\" in (value or "") for value in values):
        return UNKNOWN
    return around.known(" ".join(value or "" for value in values))


def printf(words: Sequence[Word], given: Value | None, around: Surroundings) -> Value:
    values = [word.value for word in words[1:]]
    if len(values) < 2 or values[0] not in ("%s", "%s\n", "%s\\n") or None in values:
        return UNKNOWN
    if values[0] != "%s" and len(values) > 2:
        return around.known("\n".join(value or "" for value in values[1:]))
    return echo(words[1:], given, around)


def of_word(word: Word) -> Value:
    if word.value is not None:
        return UNKNOWN
    relative = word.inside and not word.prefix.startswith("/")
    return Value(inside=word.inside, relative=relative, is_number=word.is_number, dashes=word.may_be_option)


def working_folder(_words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    return UNKNOWN if around.folder is None else around.known(around.folder)


def piece_of_path(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    """`basename` and `dirname` of a name that is inside."""
    operands = [word for word in words[1:] if not (word.value or "").startswith("-")]
    if not operands or len(operands) > 2:
        return UNKNOWN
    if (path := operands[0].value) is None:
        return replace(around.below("."), dashes=words[0].value == "basename") if operands[0].inside else UNKNOWN
    if words[0].value == "dirname":
        return around.known(os.path.dirname(path) or ".")
    return around.known(
        os.path.basename(path.rstrip("/")).removesuffix(operands[1].value or "" if len(operands) > 1 else "")
    )


def sequence(words: Sequence[Word], _given: Value | None, _around: Surroundings) -> Value:
    is_plain = all(word.is_number or re.fullmatch(r"-?\d+|-w", word.value or "") for word in words[1:])
    dashes = any(re.fullmatch(r"-\d+", word.value or "-1") for word in words[1:])
    return replace(SOME_NUMBER, splits=True, dashes=dashes) if is_plain else UNKNOWN


def date(words: Sequence[Word], _given: Value | None, _around: Surroundings) -> Value:
    values = [word.value for word in words[1:] if word.value != "-u"]
    if len(values) != 1 or not re.fullmatch(r"\+[%\w.:-]+", values[0] or ""):
        return UNKNOWN
    return A_COUNT if re.fullmatch(r"\+(?:%[sYmdHMSjN])+", values[0] or "") else A_WORD


def one_number(_words: Sequence[Word], _given: Value | None, _around: Surroundings) -> Value:
    return A_COUNT


def user_id(words: Sequence[Word], _given: Value | None, _around: Surroundings) -> Value:
    return A_COUNT if [word.value for word in words[1:]] in (["-u"], ["-g"]) else UNKNOWN


def first_field(words: Sequence[Word], given: Value | None, _around: Surroundings) -> Value:
    """`awk '{print $1}'`: the beginning of each line."""
    script = words[1].value if len(words) == 2 else None
    if given is None or not re.fullmatch(r"\{ ?print \$1 ?\}", script or ""):
        return UNKNOWN
    return replace(given, text=None) if given.relative else UNKNOWN


def translate(words: Sequence[Word], given: Value | None, _around: Surroundings) -> Value:
    """`tr -d ' '` of a number, `tr '\\n' ' '` of names."""
    values = [word.value for word in words[1:]]
    if given is not None and given.is_number and values in (["-d", " "], ["-d", "\\n"], ["-d", "[:space:]"]):
        return replace(given, text=None)
    return replace(given, text=None) if given is not None and given.relative and values == ["\\n", " "] else UNKNOWN


def through_xargs(words: Sequence[Word], given: Value | None, around: Surroundings) -> Value:
    """`xargs -n1 dirname`: a piece of each name that is read."""
    values = [word.value for word in words[1:]]
    rest = [value for value in values if value not in ("-n1", "-n", "1", "-r")]
    is_piece = rest in (["dirname"], ["basename"], ["-I{}", "dirname", "{}"], ["-I{}", "basename", "{}"])
    return around.below(".") if given is not None and given.relative and is_piece else UNKNOWN


def program_path(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    """`which NAME`, `command -v NAME`: where a program is that everybody has."""
    values = [word.value for word in words[1:] if word.value not in ("-v", "-p")]
    if len(values) != 1 or values[0] is None or values[0].startswith("-") or "/" in values[0]:
        return UNKNOWN
    found = shutil.which(values[0])
    return around.known(found) if found is not None and is_public(found) else UNKNOWN


def temporary(words: Sequence[Word], _given: Value | None, around: Surroundings) -> Value:
    """`mktemp`: a file among one's own temporary ones, whatever its name."""
    is_plain = all(word.value in ("-d", "-q", "--directory") for word in words[1:])
    found = around.known(MADE)
    return found if is_plain and found.inside else UNKNOWN


def fields(words: Sequence[Word], given: Value | None, _around: Surroundings) -> Value:
    """`cut -d: -f1` of lines that begin with a number."""
    values = [word.value for word in words[1:]]
    is_first = values in (
        ["-d:", "-f1"],
        ["-d", ":", "-f", "1"],
        ["-d", ":", "-f1"],
        ["-f1", "-d:"],
        ["-d:", "-f", "1"],
    )
    return replace(A_COUNT, splits=True) if given is not None and given.numbered and is_first else UNKNOWN


MADE = f"{os.sep}tmp/tmp.XXXXXXXXXX"
"""Stands for the name of a file that mktemp makes."""
PRINTERS: dict[str, Callable[[Sequence[Word], Value | None, Surroundings], Value]] = {
    "wc": count_lines,
    "grep": grep,
    "rg": ripgrep,
    "ls": list_names,
    "fd": fd,
    "find": find,
    "git": git,
    "echo": echo,
    "printf": printf,
    "pwd": working_folder,
    "basename": piece_of_path,
    "dirname": piece_of_path,
    "seq": sequence,
    "date": date,
    "nproc": one_number,
    "id": user_id,
    "awk": first_field,
    "tr": translate,
    "xargs": through_xargs,
    "which": program_path,
    "command": program_path,
    "mktemp": temporary,
    "cut": fields,
}
