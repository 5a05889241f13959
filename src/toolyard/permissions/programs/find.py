"""find: its tests do no harm, some of its actions run commands, remove files or write them."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.permissions.programs.known import names
from toolyard.permissions.programs.options import Concern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place


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


def guard_find(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
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
    """Whether a word may become one of these."""
    if not word.may_be_option:
        return False
    if word.kind == "glob" and not re.search(r"[{\\'\"]", word.text):
        return any(fnmatch.fnmatchcase(value, word.text) for value in values)
    return True
