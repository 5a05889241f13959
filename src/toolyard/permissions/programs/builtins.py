"""Builtins of bash that evaluate what they are given or change the shell, and variables that it is harmless to set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.expansion.variable_names import is_safe_variable
from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.options import Concern, Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Given, Guard


DIRECTIVE = re.compile(r"%(?:%|[-+ #0-9.*'$]*(?:\([^)]*\)T|[hlLjzt]*(?P<kind>.?)))", re.DOTALL)
"""What begins with a percent sign in a format; bash takes letters for the size before any kind."""
UNARY = names("-e -f -d -r -w -x -s -L -h -z -n -b -c -p -S -g -u -k -O -G -N -a -t")
TEXT_OPERATORS = frozenset({"=", "==", "!=", "<", ">"})
FILE_OPERATORS = frozenset({"-nt", "-ot", "-ef"})
NUMBER_OPERATORS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
JOINING = frozenset({"&&", "||", "(", ")", "!", "[[", "]]", "-a", "-o"})
NUMBER = re.compile(r"-?\d{1,18}")
EVALUATED = re.compile(r"\A[^\[]*+\[[^$`]*+[$`]")
"""A bracket, and behind the first one something that is expanded."""


def guard_printf(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """`-v` and `%n` store into a variable, and a subscript of it is evaluated."""
    rest = words[2:] if len(words) > 1 and words[1].value == "--" else words[1:]
    if not rest:
        return
    if rest[0] is words[1] and rest[0].may_be_option:
        yield Concern(message="printf with an option stores into a variable")
    elif rest[0].value is None:
        yield Concern(message="the format of printf is not certain")
    else:
        yield from format_concerns(rest[0].value, rest[1:])


def format_concerns(text: str, rest: Sequence[Word]) -> Iterator[Concern]:
    kinds = [match["kind"] or "" for match in DIRECTIVE.finditer(text)]
    if "n" in kinds:
        yield Concern(message="%n stores into a variable")
    if any(kind and kind in "diouxX" for kind in kinds) and any(EVALUATED.search(word.value or "") for word in rest):
        yield Concern(message="a subscript with a command in it, which some shells evaluate")


def guard_test(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """`-v` and `-R` evaluate a subscript, also one that a variable holds."""
    operands = words[1:-1] if words[0].value == "[" else words[1:]
    if any(word.value in ("-v", "-R") for word in operands):
        yield Concern(message="-v evaluates what it is given")
    uncertain = [word for word in operands if word.value is None]
    if any(EVALUATED.search(word.value or "") for word in operands):
        yield Concern(message="a subscript with a command in it, which some shells evaluate")
    if any(word.splits for word in uncertain):
        yield Concern(message="a word that may become several, and an operator among them")
    elif uncertain and not is_understood([word.value for word in operands]):
        yield Concern(message="what is tested is not certain")


def is_understood(values: list[str | None]) -> bool:
    """One test with its operator spelled out; what its operands are does not matter then."""
    if values and values[0] == "!":
        values = values[1:]
    if len(values) == 2:
        return values[0] in UNARY
    return len(values) == 3 and values[1] in TEXT_OPERATORS | FILE_OPERATORS | NUMBER_OPERATORS


def check_condition(words: Sequence[Word]) -> str | None:
    """Why a `[[ … ]]` may run something: arithmetic and -v evaluate their operands, quoted or not."""
    values = [word.value for word in words]
    for at, value in enumerate(values):
        if value is None or not value.startswith("-") or value in JOINING:
            continue
        if value in UNARY or value in FILE_OPERATORS:
            continue
        around = (values[at - 1], values[at + 1] if at + 1 < len(values) else None)
        if value in NUMBER_OPERATORS and all(side is not None and NUMBER.fullmatch(side) for side in around):
            continue
        return f"'{value}' evaluates its operands"
    if "=~" in values:
        return "a regular expression is not looked into"
    return None


def read_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Sets variables; the name of one may be evaluated, or mean something to others."""
    for name, value in given.options:
        if name in READ_VALUES and (value is None or EVALUATED.search(value)):
            yield Concern(message=f"'-{name}' of read may evaluate what it is given")
    for word in given.operands:
        if not is_safe_variable(word.value):
            yield Concern(message=f"read sets '{word.text}'")


READ_VALUES = "nNtpdu"
READ = Options(flags="-rs", values=f"-{READ_VALUES}", operands="text*", more=read_concerns, complete=True, stops=True)


def guard_no_option(letters: str, why: str) -> Guard:
    """A builtin with options that do more."""

    def guard(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
        for word in words[1:]:
            if word.value is None or (word.value.startswith("-") and set(letters) & set(word.value)):
                yield Concern(message=why)
                return

    return guard


BUILTIN_GUARDS: dict[str, Guard] = {
    "printf": guard_printf,
    "test [": guard_test,
    "read": READ,
    "help": Options(flags="-dms", operands="text*"),
    "wait": guard_no_option("p", "wait -p stores into a variable"),
    "jobs": guard_no_option("x", "jobs -x runs a command"),
}
