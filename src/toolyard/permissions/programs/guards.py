"""The guards of all programs, and what they say of a command: what it does beyond its name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.awk_sed_jq import SCRIPT_GUARDS
from toolyard.permissions.programs.build import BUILD_GUARDS
from toolyard.permissions.programs.builtins import BUILTIN_GUARDS
from toolyard.permissions.programs.carriers import only_looks_up
from toolyard.permissions.programs.categories import (
    CHANGES_THE_SHELL,
    ONLY_LOOKS,
    SETTINGS_OF_THE_FOLDER,
    TAKES_WORDS,
    each_name,
    is_carrier,
    is_interpreter,
    name_lists,
    names,
    program_name,
)
from toolyard.permissions.programs.compilers import COMPILER_GUARDS
from toolyard.permissions.programs.files.find import FIND_GUARDS
from toolyard.permissions.programs.files.looking import LOOKING_GUARDS
from toolyard.permissions.programs.files.packing import PACKING_GUARDS
from toolyard.permissions.programs.files.searching import SEARCHING_GUARDS
from toolyard.permissions.programs.files.writing import WRITING_GUARDS
from toolyard.permissions.programs.git import git_concerns
from toolyard.permissions.programs.linters_and_tests import TESTER_GUARDS
from toolyard.permissions.programs.network import NETWORK_GUARDS
from toolyard.permissions.programs.options import Concern
from toolyard.permissions.programs.subcommands import HAS_COMMANDS, subcommand_concerns
from toolyard.permissions.programs.system import SYSTEM_GUARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts


FAMILIES = (
    *(BUILD_GUARDS, BUILTIN_GUARDS, COMPILER_GUARDS, FIND_GUARDS, LOOKING_GUARDS, NETWORK_GUARDS, PACKING_GUARDS),
    *(SCRIPT_GUARDS, SEARCHING_GUARDS, SYSTEM_GUARDS, TESTER_GUARDS, WRITING_GUARDS),
)
GUARDS = {name: guard for family in FAMILIES for name, guard in each_name(family).items()}
RUNNERS = each_name(
    {"npx bunx pnpx uvx": (), "pipx uv poetry pdm hatch pipenv rye": ("run",), "npm pnpm yarn bundle": ("exec",)}
)
"""Programs that find another one and run it, and the words before its name."""
OWN_COMMANDS = name_lists(
    {
        "dotnet": "build test restore format list pack clean",
        "deno": "test lint fmt check info doc",
        "bun": "test install",
        "swift": "build test",
        "zig": "build test fmt",
    }
)
"""Commands of interpreters that run the code of the folder, and no other."""
OTHERS = re.compile(
    r"[\w+]*://|(?:npm|jsr|data|http):|\.\./|/|-[cArsop]|--(?:config|import-map|preload|require|allow|settings|logger|collect"
    r"|test-adapter|diag|output|results|artifacts|property|source|cwd|env-file|lock|cert|unsafely)"
)
"""Words by which commands of the folder's own code take other code, settings or rights."""
RUNS_SOMETHING = re.compile(
    r"--?(?:[\w-]*-)?(?:exec|eval|shell|pager|editor|command|cmd|rsh|program|checkpoint-action|hook|plugin|wrapper|launcher"
    r"|preprocessor|script|handler|viewer|browser|renderer|shell-escape|init-file|preload|load-library)(?:=|$)"
)
WRITES_SOMETHING = re.compile(
    r"--?(?:output|out|output-file|outfile|out-file|log-file|logfile|dump-to)(?:=(?P<value>.*)|$)"
)
FORMATS = names(
    "json yaml yml text table wide csv tsv name xml html pretty short long compact brief jsonl ndjson plain"
)
DEVICE = re.compile(
    r"/dev/(?!null$|stdin$|stdout$|stderr$|fd/\d+$)|/proc/(?:\d+|self|thread-self)/(?:environ|mem|root|fd|cwd)"
)
"""Devices never end, or are the network; some files of processes hold their secrets."""
MAY_BE_DEVICE = re.compile(r"(?:^|[{,])/+(?:dev|proc)/|^\{*/[^/]*[*?\[{][^/]*/")
"""Patterns and braces that may become such a file: they name its folder, or leave the first folder open."""


def why_never_covered(words: Sequence[Word], named: int) -> str | None:
    """Why no rule with `**` covers a command: what it does depends on what it is given."""
    name = words[0].value or ""
    if "/" in name and named < 1:
        return f"'{name}' is a file, and a rule for any command does not know which"
    name = program_name(name)
    if (inner := spelled_out(words, named)) is not None:
        return why_never_covered(inner, named - len(words) + len(inner))
    if is_carrier(name) and not only_looks_up(words):
        return f"'{name}' runs what it is given"
    if name in CHANGES_THE_SHELL:
        return f"'{name}' changes the shell itself"
    if is_interpreter(name) and not names_the_code(words, named):
        return f"'{name}' runs code that it is given"
    return None


def spelled_out(words: Sequence[Word], named: int) -> Sequence[Word] | None:
    """What a runner of programs runs, when the rule spells that out and leaves open only its arguments."""
    start = RUNNERS.get(words[0].value or "")
    if start is None:
        return None
    at = 1 + len(start)
    is_meant = tuple(word.value for word in words[1:at]) == start and named > at and not words[at].may_be_option
    return words[at:] if is_meant else None


def names_the_code(words: Sequence[Word], named: int) -> bool:
    """Whether a rule spells out which file or module an interpreter runs, so that only its arguments are left open."""
    if named >= 3 and words[1].value == "-m":
        return True
    value = words[1].value if named >= 2 and len(words) > 1 else None
    if value in OWN_COMMANDS.get(words[0].value or "", ()):
        return True
    return value is not None and not value.startswith("-") and ("." in value or "/" in value)


def concerns_about(words: Sequence[Word], folder: FolderFacts, named: int) -> Iterator[Concern]:
    """Everything about a command that its rule may not have meant; `named` says how many words the rule spells out."""
    name = words[0].value or ""
    if name == "git":
        yield from git_concerns(words, folder, named)
    elif guard := GUARDS.get(name):
        yield from guard(words, folder)
    if name in HAS_COMMANDS:
        yield from subcommand_concerns(words, named)
    if is_interpreter(name) and named >= 3 and words[2].value in GUARDS:
        yield from GUARDS[words[2].value or ""](words[2:], folder)
    if name in OWN_COMMANDS:
        yield from code_of_others(words[2:])
    if (inner := spelled_out(words, named)) is not None:
        yield from concerns_about(inner, folder, named - len(words) + len(inner))
    if name not in GUARDS and name != "git":
        yield from suspicious_options(words)
    for word in words[1:]:
        is_pattern = word.kind == "glob" and MAY_BE_DEVICE.search(re.sub(r"[\\'\"]", "", word.text))
        if is_pattern or DEVICE.match(word.prefix):
            yield Concern(message=f"'{word.text}' is a device, or holds the secrets of a process")


def code_of_others(words: Sequence[Word]) -> Iterator[Concern]:
    for word in words:
        if word.value is None or OTHERS.match(word.value):
            yield Concern(message=f"'{word.text}' may take code or settings from elsewhere")


def suspicious_options(words: Sequence[Word]) -> Iterator[Concern]:
    """Of a program that is not known here, options whose names say that they run or write something."""
    if words[0].value in ONLY_LOOKS:
        return
    for at, word in enumerate(words[1:], 1):
        if RUNS_SOMETHING.match(word.prefix):
            yield Concern(message=f"'{word.text}' looks like it runs another program")
        elif writes := WRITES_SOMETHING.match(word.prefix):
            targets = [literal_word(writes["value"])] if writes["value"] else words[at + 1 : at + 2]
            for target in targets:
                if target.value not in FORMATS:
                    yield Concern(message=f"'{word.text}' looks like it writes a file", writes=target)


@lru_cache(maxsize=4096)
def is_known(name: str) -> bool:
    """Whether it is known of a program what its arguments are; those of any other may be a command.

    Carriers and interpreters are known, too: what they carry is looked for elsewhere.
    """
    name = program_name(name)
    tables = (GUARDS, ONLY_LOOKS, HAS_COMMANDS, TAKES_WORDS, ("git",))
    return any(name in table for table in tables) or is_carrier(name) or is_interpreter(name)


def why_not_here(words: Sequence[Word], folder: FolderFacts) -> str | None:
    """Why a program may not be started where it would: it follows the settings of its folder, which are others'."""
    name = program_name(words[0].value)
    if name in SETTINGS_OF_THE_FOLDER and folder.leaves:
        return f"'{name}' does what the settings of its folder say, and that may be outside of the workspace"
    return None
