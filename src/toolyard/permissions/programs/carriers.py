"""What a command runs on behalf of its arguments: the commands inside `xargs`, `env`, `find -exec`, `sh -c`, `eval`."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.words import Word
from toolyard.permissions.expansion.variable_names import is_harmless_assignment
from toolyard.permissions.programs.categories import is_carrier, is_shell, names, program_name
from toolyard.permissions.programs.options import Concern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.permissions.file_access import WorkingFolder
    from toolyard.permissions.programs.options import Guard


XARGS_FLAG = re.compile(r"-[0rtx]+|--null|--no-run-if-empty|--verbose|--exit")
XARGS_VALUE = re.compile(r"-[0rtx]*[nPLsdIEa]|--max-args|--max-procs|--max-chars|--delimiter|--arg-file")
XARGS_GLUED = re.compile(
    r"-[0rtx]*(?:[nPLsdEa][^-].*|I(?P<marker>.+))|--(?:max-args|max-procs|max-chars|max-lines|delimiter|arg-file)=.*"
)
"""The options of xargs, written out: an abbreviation could take the name of the command for its value."""
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
ANYTHING = Word(text="…", start=0, end=0, kind="dynamic", splits=True)
"""What a carrier adds to the words of its command."""
QUICK = names("setsid nohup busybox toybox time builtin command exec chronic unbuffer coproc")
"""Carriers whose command is their first operand."""


class Carried(msgspec.Struct):
    """What is inside; `is_all` when nothing else can run."""

    commands: list[tuple[Word, ...]] = msgspec.field(default_factory=list)
    lines: list[str] = msgspec.field(default_factory=list)
    """Text that a shell reads."""
    suspects: list[tuple[Word, ...]] = msgspec.field(default_factory=list)
    """Words that may be a command, or only arguments of one."""
    is_all: bool = False


def carried_by(words: Sequence[Word]) -> Carried | None:
    """What a command carries; None when it carries nothing."""
    name = program_name(words[0].value)
    if not (is_carrier(name) or is_shell(name) or name in ("find", "gfind")):
        return None
    if name in ("find", "gfind"):
        commands = find_commands(words)
        return Carried(commands=commands, is_all=all(commands)) if commands else None
    if name == "xargs":
        return carried_by_xargs(words)
    if name == "env":
        return carried_by_env(words)
    if name == "eval":
        return Carried(lines=joined(words[1:]))
    if name == "trap":
        return Carried(lines=[word.value for word in words[1:2] if word.value])
    if is_shell(name):
        return carried_by_shell(words)
    return None if only_looks_up(words) else carried_by_any(name, words)


def only_looks_up(words: Sequence[Word]) -> bool:
    """`command -v NAME` says what NAME is, and runs nothing."""
    return words[0].value == "command" and len(words) > 1 and words[1].value in ("-v", "-V")


def joined(words: Sequence[Word]) -> list[str]:
    values = [word.value for word in words]
    return [" ".join(value for value in values if value is not None)] if None not in values and values else []


def carried_by_xargs(words: Sequence[Word]) -> Carried:
    """The command behind xargs's own options, and whatever its input adds."""
    at, markers = 1, list[str]()
    while at < len(words) and (value := words[at].value) is not None and value.startswith("-"):
        follower = words[at + 1].value if at + 1 < len(words) else None
        if XARGS_FLAG.fullmatch(value):
            at += 1
        elif XARGS_VALUE.fullmatch(value) and follower is not None:
            markers += [follower] if value.endswith("I") else []
            at += 2
        elif glued := XARGS_GLUED.fullmatch(value):
            markers += [glued["marker"]] if glued["marker"] else []
            at += 1
        else:
            return Carried(suspects=suspects_in(words))
    command = tuple(words[at:])
    for marker in markers:
        command = tuple(blurred(word, marker) for word in command)
    if not command:
        return Carried(suspects=suspects_in(words))
    return Carried(commands=[(*command, ANYTHING)], is_all=True)


def blurred(word: Word, marker: str) -> Word:
    """A word with xargs's input in the place of the marker: not certain behind where that stands."""
    if word.value is None or marker not in word.value:
        return word
    prefix = word.value.partition(marker)[0]
    return Word(text=word.text, start=word.start, end=word.end, kind="dynamic", prefix=prefix)


def carried_by_env(words: Sequence[Word]) -> Carried | None:
    """Only assignments of harmless variables may stand before the command; bare `env` prints."""
    if len(words) == 1:
        return None
    at = 1
    is_all = True
    while at < len(words) and (value := words[at].value) is not None:
        assigned = ASSIGNMENT.fullmatch(value)
        if assigned:
            is_all = is_all and is_harmless_assignment(assigned[1], assigned[2])
        elif value.startswith("-"):
            is_all = False
            if value in ("-S", "--split-string") and at + 1 < len(words):
                return Carried(lines=[words[at + 1].value or ""], suspects=suspects_in(words))
            if value.startswith(("-S", "--split-string=", "-vS")):
                text = value.partition("S")[2] if not value.startswith("--") else value.partition("=")[2]
                return Carried(lines=[text], suspects=suspects_in(words))
            at += value in ("-u", "--unset", "-C", "--chdir", "-a", "--argv0")
        else:
            break
        at += 1
    command = tuple(words[at:])
    if not command:
        return Carried(is_all=False)
    return Carried(commands=[command], suspects=[] if is_all else suspects_in(words), is_all=is_all)


def carried_by_shell(words: Sequence[Word]) -> Carried:
    """The text behind `-c`, in whatever row of letters it stands."""
    lines: list[str] = []
    for at, word in enumerate(words[1:], 1):
        if re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", word.value or ""):
            lines += [
                follower.value for follower in words[at + 1 :] if follower.value and not follower.value.startswith("-")
            ][:1]
            break
    return Carried(lines=lines)


def carried_by_any(name: str, words: Sequence[Word]) -> Carried:
    """A carrier whose options are not known here: any word may begin the command, any text may be one."""
    operands = [at for at, word in enumerate(words) if at and not (word.value or "-").startswith("-")]
    commands = [tuple(words[operands[0] :])] if name in QUICK and operands else []
    texts = [word.value for word in words[1:] if word.value and re.search(r"[\s;|&]", word.value)]
    return Carried(commands=commands, lines=texts, suspects=suspects_in(words))


def suspects_in(words: Sequence[Word]) -> list[tuple[Word, ...]]:
    """Every word that is no option may be where a command begins."""
    return [tuple(words[at:]) for at, word in enumerate(words) if at and word.value and not word.may_be_option]


FIND_SAFE = names("""
    -H -L -P -daystart -depth -d -follow -help --help -ignore_readdir_race -noignore_readdir_race -maxdepth -mindepth
    -mount -noleaf -nowarn -warn -regextype -version --version -xautofs -xdev -amin -anewer -atime -cmin -cnewer
    -context -ctime
    -empty -executable -false -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname
    -mmin -mtime -name -newer -nogroup -nouser -path -perm -readable -regex -samefile -size -true -type -uid -used -user
    -wholename -writable -xtype -print -print0 -printf -ls -prune -quit -not -a -and -o -or
""")
FIND_NEWER = re.compile(r"-newer[aBcm][aBcmt]|-O[0-3]|-D|-[0-9].*|[-+][0-9].*")
FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
FIND_WRITES = ("-fprint", "-fprint0", "-fprintf", "-fls")
WHAT = {"-delete": "removes files", "-files0-from": "reads names from a file"} | dict.fromkeys(
    FIND_WRITES, "writes a file"
)
FIND_HARMFUL = (*FIND_RUNS, *FIND_WRITES, "-delete", "-files0-from")


def guard_find(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Every test and action has to be known; what `-exec` runs is judged as a command of its own."""
    inside = False
    takes_mode = False
    for at, word in enumerate(words[1:], 1):
        value = word.value
        if inside:
            inside = not ends_command(words, at)
        elif value is None:
            if could_be(word, FIND_HARMFUL):
                yield Concern(message=f"what '{word.text}' becomes may be an action")
        elif value in ("-exec", "-ok"):
            inside = True
        elif value in FIND_HARMFUL:
            what = WHAT.get(value, "runs another program")
            yield Concern(message=f"'{value}' {what}", runs=value in FIND_RUNS)
        elif value.startswith("-") and not takes_mode and value not in FIND_SAFE and not FIND_NEWER.fullmatch(value):
            yield Concern(message=f"'{value}' of find is not known")
        takes_mode = value in ("-perm", "-name", "-iname", "-path", "-regex", "-printf", "-size")
    if inside:
        yield Concern(message="-exec without an end")


def find_commands(words: Sequence[Word]) -> list[tuple[Word, ...]]:
    """The commands behind the actions of find that run some, with what find puts in as words that are not certain."""
    found: list[tuple[Word, ...]] = []
    start = start_of(words)
    at = 1
    while at < len(words):
        if words[at].value in FIND_RUNS:
            end = next((i for i in range(at + 1, len(words)) if ends_command(words, i)), len(words))
            found.append(tuple(filled(word, start) for word in words[at + 1 : end]))
            at = end
        at += 1
    return found


def ends_command(words: Sequence[Word], at: int) -> bool:
    """Whether a word ends what an action runs: a semicolon, or a plus that stands behind `{}`."""
    return words[at].value == ";" or (words[at].value == "+" and words[at - 1].value == "{}")


def filled(word: Word, start: str | None) -> Word:
    """A word with what find puts into it; a lone `{}` is a file below where find starts."""
    if "{}" not in (word.value or ""):
        return word
    if word.value == "{}" and start is not None:
        below = start.rstrip("/") + "/"
        return replace(word, value=None, kind="glob", prefix=below, text=f"{below}**")
    return replace(word, value=None, kind="dynamic", prefix=(word.value or "").partition("{}")[0])


def start_of(words: Sequence[Word]) -> str | None:
    """Where find starts, of several the one that leads away; None when that is not certain, or links are followed."""
    starts: list[str] = []
    for word in words[1:]:
        if word.value is None or word.value in ("-L", "-follow"):
            return None
        if word.value.startswith("-") or word.value in ("(", "!", ")"):
            break
        starts.append(word.value)
    if any(word.value in ("-L", "-follow", "-files0-from") for word in words):
        return None
    away = [start for start in starts if start.startswith("/") or ".." in start]
    return (away or starts or ["."])[0]


def could_be(word: Word, values: Sequence[str]) -> bool:
    if not word.may_be_option:
        return False
    if word.kind == "glob" and not re.search(r"[{\\'\"]", word.text):
        return any(fnmatch.fnmatchcase(value, word.text) for value in values)
    return True


CARRIER_GUARDS: dict[str, Guard] = {"find gfind": guard_find}
