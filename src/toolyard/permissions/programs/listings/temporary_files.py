"""Temporary files in a line: which words and redirections name some, and which commands change no others."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolyard.permissions.programs.compilers import COMPILERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.words import Word


MADE_TARGET = re.compile(r"\d*>>?\s*\"?\$\{?([A-Za-z_]\w*)\}?[/\w.\"-]*$")
TEMPORARY_TARGET = re.compile(r"\d*>>?\s*\"?/(?:var/)?tmp/[\w./$@%{}-]+\"?", re.ASCII)
INTO = {"tar": ("-C", "--directory"), "bsdtar": ("-C",), "unzip": ("-d",)}
"""The options behind which the folder stands that archives are unpacked to."""
MADE_BY_MKTEMP = re.compile(r"\"?\$\(mktemp\b[^()`]*\)\"?")
TEMPORARY_FILE = re.compile(r"(?:[\w-]*=)?/(?:var/)?tmp/")


def writes_temporary_files(name: str, words: Sequence[Word]) -> bool:
    """Whether what would change files changes none but temporary ones, as far as its words say."""
    named = [word for word in words if not (word.value or word.prefix).startswith("-")]
    match name:
        case "rm" | "rmdir" | "mkdir" | "mkfifo" | "touch" | "truncate":
            return bool(named) and all(map(is_temporary_file, named))
        case "tee":
            return all(word.text.startswith(">(") or is_temporary_file(word) for word in named)
        case "dd":
            return not any((word.value or "of=").startswith("of=") and not is_temporary_file(word) for word in words)
        case "sed":
            return bool(named) and all(map(is_temporary_file, named[1:]))
        case "git":
            return is_temporary_copy(named)
    option = INTO.get(name) or (("-o",) if name in COMPILERS else ())
    return any(is_temporary_file(word) for before, word in pairwise(words) if before.value in option)


def is_temporary_copy(named: Sequence[Word]) -> bool:
    """Whether git copies what is here to temporary files, and the repository knows nothing of it."""
    match [word.value for word in named]:
        case ["clone", "." | "./", None | str()]:
            return is_temporary_file(named[2])
        case ["bundle", "create", *_]:
            return len(named) > 2 and is_temporary_file(named[2])
    return False


def is_temporary_file(word: Word) -> bool:
    """Whether a word begins with the path of temporary files, or is what `mktemp` makes."""
    is_named = TEMPORARY_FILE.match(word.value or word.prefix or word.text.lstrip('"')) and ".." not in word.text
    return bool(is_named) or is_plainly_temporary(word)


def is_plainly_temporary(word: Word) -> bool:
    """Whether a word is the path of a temporary file and of no other, or what `mktemp` makes."""
    return bool(TEMPORARY_FILE.match(word.value or "") or MADE_BY_MKTEMP.fullmatch(word.text))


def is_temporary(redirection: str, line: str) -> bool:
    """Whether it writes a temporary file, by its path or by the variable that holds what `mktemp` made."""
    made = MADE_TARGET.match(redirection)
    return TEMPORARY_TARGET.fullmatch(redirection) is not None or (
        made is not None and re.search(rf"\b{made[1]}=\"?\$\(mktemp\b", line) is not None
    )
