"""What a command runs on behalf of its arguments: the commands inside `xargs`, `env`, `find -exec`, `sh -c`, `eval`."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.words import Word, literal_word
from toolyard.permissions.expansion.variable_names import is_harmless_assignment
from toolyard.permissions.programs.categories import is_carrier, is_shell, names, program_name
from toolyard.permissions.programs.files.find import find_commands
from toolyard.permissions.programs.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence


XARGS = Options(
    flags="-0rtx null no-run-if-empty show-limits verbose exit help version",
    values="-dEILnPs delimiter max-args max-procs max-chars",
    optional="-eil eof replace max-lines",
    reads="-a arg-file",
    operands="text*",
    abbreviates=False,
    stops=True,
)
"""Without abbreviations: one could take the name of the command for its value."""
ENV = Options(
    flags="-i0v ignore-environment null list-signal-handling debug help version",
    values="-uaS unset argv0 split-string",
    optional="block-signal default-signal ignore-signal",
    reads="-C chdir",
    operands="text*",
    stops=True,
)
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
    if not (is_carrier(name) or is_shell(name) or name in ("find", "gfind", "fd", "fdfind")):
        return None
    if name in ("fd", "fdfind"):
        return carried_by_fd(words)
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
    given = XARGS.scan(words[1:])
    command = tuple(given.operands)
    if not command or given.unknown or given.concerns:
        return Carried(suspects=suspects_in(words))
    for marker in given.values("I", "i", "replace"):
        command = tuple(blurred(word, marker or "{}") for word in command)
    # What is read from a file is not to be seen, and the command may print it.
    is_all = not given.has("a", "arg-file")
    return Carried(commands=[(*command, ANYTHING)], suspects=[] if is_all else suspects_in(words), is_all=is_all)


def blurred(word: Word, marker: str) -> Word:
    """A word with xargs's input in the place of the marker: not certain behind where that stands."""
    if word.value is None or marker not in word.value:
        return word
    prefix = word.value.partition(marker)[0]
    return Word(text=word.text, start=word.start, end=word.end, kind="dynamic", prefix=prefix)


def carried_by_fd(words: Sequence[Word]) -> Carried | None:
    """The command behind `-x`, for each file that it finds where it runs or below what it is told."""
    at = next((at for at, word in enumerate(words) if word.value in FD_RUNS), None)
    if at is None:
        return None
    command = tuple(words[at + 1 :])
    is_plain = (
        bool(command)
        and all(word.value is not None for word in words)
        and not any(word.value == ";" for word in command)
    )
    is_plain = is_plain and not any(
        re.match(r"-\w*[LXx]|--(?:follow|search-path|base-directory|exec)", word.prefix) for word in words[1:at]
    )
    starts = [word.value or "" for word in words[1:at] if not word.prefix.startswith("-")][1:]
    is_plain = is_plain and not any(start.startswith(("/", "~")) or ".." in start for start in starts)
    if not is_plain or any("{" in (word.value or "") and word.value != "{}" for word in command):
        return Carried(commands=[command] if command else [], suspects=suspects_in(words))
    found = replace(literal_word("{}"), value=None, kind="glob", prefix="./", text="./**")
    filled = tuple(found if word.value == "{}" else word for word in command)
    return Carried(commands=[filled if found in filled else (*filled, found)], is_all=True)


FD_RUNS = ("-x", "--exec", "-X", "--exec-batch")


def carried_by_env(words: Sequence[Word]) -> Carried | None:
    """Only assignments of harmless variables may stand before the command; bare `env` prints."""
    if len(words) == 1:
        return None
    given = ENV.scan(words[1:])
    if lines := [text or "" for text in given.values("S", "split-string")]:
        return Carried(lines=lines, suspects=suspects_in(words))
    operands = [word for word in given.operands if word.value != "-"]
    assigned = list(takewhile(bool, (ASSIGNMENT.fullmatch(word.value or "") for word in operands)))
    command = tuple(operands[len(assigned) :])
    is_plain = not given.options and not given.unknown and len(operands) == len(given.operands) and bool(command)
    is_all = is_plain and all(match and is_harmless_assignment(match[1], match[2]) for match in assigned)
    return Carried(commands=[command] if command else [], suspects=[] if is_all else suspects_in(words), is_all=is_all)


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


CARRIER_TABLES = {"xargs gxargs": XARGS, "env genv": ENV}
