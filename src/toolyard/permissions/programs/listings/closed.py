"""Commands that nobody vouches for, and that may look all the same where there is nothing to see but the workspace.

A closed look can change nothing, reach nobody, and sees the workspace and the programs of the system alone. So it does
not matter whether an option was read right. What is left to decide is what a line is *for*: one that plainly wants to
change, to install or to run what lies in the workspace would only fail there, and a person is asked instead.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.command_nodes import ODD_DECLARATION
from toolyard.bash.syntax.tree import EVALUATES
from toolyard.bash.syntax.word_nodes import GOES_TO_A_COMMAND, MAY_EVALUATE
from toolyard.permissions.expansion.variable_names import is_own_variable
from toolyard.permissions.file_access import FREE_TARGETS, MAY_BE_OUTSIDE, NOT_CERTAIN, NOT_READ, OUTSIDE
from toolyard.permissions.paths import is_public
from toolyard.permissions.programs.build import BUILD_GUARDS
from toolyard.permissions.programs.categories import (
    CARRIERS,
    CHANGES_THE_SHELL,
    DESTRUCTIVE,
    INTERPRETERS,
    LANGUAGES,
    PRIVILEGED,
    SETTINGS_OF_THE_FOLDER,
    each_name,
    is_interpreter,
    is_shell,
    names,
    program_name,
    unversioned,
)
from toolyard.permissions.programs.compilers import COMPILER_GUARDS, COMPILERS
from toolyard.permissions.programs.files.packing import PACKING_GUARDS
from toolyard.permissions.programs.files.writing import WRITING_GUARDS
from toolyard.permissions.programs.linters_and_tests import TESTER_GUARDS
from toolyard.permissions.programs.listings.find import listing_of
from toolyard.permissions.programs.listings.help_texts import ASKS_SHORTLY, RUNS_WORDS, asks_for_help
from toolyard.permissions.programs.listings.inline_code import CODE_OF, TAKES_INPUT, has_plain_code
from toolyard.permissions.programs.listings.temporary_files import (
    is_plainly_temporary,
    is_temporary,
    writes_temporary_files,
)
from toolyard.permissions.programs.listings.unlisted import WANTS_MORE, is_of_workspace, looking_rule
from toolyard.permissions.programs.network import NETWORK_GUARDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.reading import Doubt, SimpleCommand
    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.file_access import FileAccess, WorkingFolder
    from toolyard.permissions.verdict import Judged


SETS_A_VARIABLE = "a variable of the shell is set"
CHANGES_THE_COMMAND = "may change what the command does"
RUNS_FOR_ALL = re.compile(r"(?:BASH|DYLD_|GCONV_|GIT_|LD_).*|ENV|IFS|PATH|PROMPT_COMMAND|PS4|SHELLOPTS")
"""Variables by which whatever program runs something else: who sets them for a command is not about to look."""
EVALUATING = frozenset({EVALUATES, GOES_TO_A_COMMAND, MAY_EVALUATE, ODD_DECLARATION})
"""What is said of text that bash may take for a command once more, and of what was read only in part."""
OF_THE_LINE = names("IFS TIMEFORMAT REPLY OPTIND")
"""Variables of bash itself by which it only reads or prints otherwise."""
ODD_WORD, NOT_READABLE = "word", "syntax"
"""The codes of the doubts about a word that was not understood, and about a line that was not."""
CHECKS = {
    "make": re.compile(r"-\w*[npq]\w*|--(?:dry-run|just-print|print-data-base|question)"),
    "gmake": re.compile(r"-\w*[npq]\w*|--(?:dry-run|just-print|print-data-base|question)"),
    "ruff": re.compile(r"check|--check|--diff|rule|linter|config"),
    "black": re.compile(r"--check|--diff"),
    "isort": re.compile(r"--check(?:-only)?|-c|--diff"),
    "cargo": re.compile(r"--check"),
    "gofmt": re.compile(r"-[ld]"),
    "rustfmt": re.compile(r"--check"),
    "clang-format": re.compile(r"--dry-run|-n"),
    "terraform": re.compile(r"-check"),
    "tofu": re.compile(r"-check"),
    "shfmt": re.compile(r"-[ld]"),
    "ctags": re.compile(r"-x"),
    "tox": re.compile(r"-[al]|--listenvs(?:-all)?"),
    "nox": re.compile(r"-l|--list.*"),
    "patch": re.compile(r"--dry-run"),
}
FMT_ALONE = names("cargo terraform tofu")
"""Words by which programs that build or change files only say what they would do."""
LOOKING_OPTION = re.compile(
    r"--(?:help|usage|version|dry-run|what-if|explain|info|diff|noEmit|no-emit|show[\w-]*|print-[\w-]+|list[\w-]*|co|collect-only"
    r"|check(?:-only)?|syntax-check|syntax-only|lint|read-?only|fixtures|markers|setup-plan)(?:=.*)?"
    r"|-h|-V|-vV|-fsyntax-only|-E|-M{1,2}|-list|-readonly|-noout|-print-[\w-]+|-dumpversion|-dumpmachine"
)
"""Options by which a program that does all kinds of things says what there is, or what it would do."""
LOOKING_COMMANDS = names("""
    check deps describe diffsettings env explain graph info inspect introspect lint list ls metadata outdated query show
    showmigrations sqlmigrate status template tree validate version vet view why
""")
"""The first words of such programs for the same."""
BUILDERS = names("""
    ant bazel cargo gmake go gradle gradlew gulp grunt invoke just lerna make mvn mvnw ninja nx rake task turbo
""")
"""Programs whose first word names something to be made, or that keep what they make in a home."""
CARGO_LOOKS = names("locate-project metadata pkgid tree")
RUNS_SCRIPTS = names("bun npm pnpm yarn")
"""Programs that hand the options behind the name of a script on to it."""
IN_PLACE = re.compile(r"-[lnpaw0-7s]*i[\w.~]*")
"""What makes Perl and Ruby change the files that they read."""
SYNTAX_CHECKS = {
    **dict.fromkeys(("ruby", "perl"), "c"),
    **dict.fromkeys(("lua", "luajit"), "v"),
    "luac": "p",
    "php": "l",
}
"""The letters by which languages only read a program, and say whether they can; of a clump of options the last."""
LINTERS = names("""
    actionlint ansible-lint bandit clang-tidy codespell cppcheck eslint flake8 golangci-lint hadolint markdownlint mypy
    pycodestyle pydocstyle pyflakes pylint pyright rubocop shellcheck staticcheck stylelint tflint vulture yamllint
""")
"""Programs that read others' files and say what is wrong with them."""
FIXES = re.compile(r"--(?:auto-?correct|auto-?fix|fix)[\w=-]*|--(?:install-types|write-changes|write|in-place)|-[aAiw]")
"""What makes them change those."""
CHANGES_A_DATABASE = re.compile(
    r"(?:^|;)\s*(?:alter|attach|begin|create|delete|drop|insert|reindex|replace|update|vacuum)\b"
    r"|^\s*\.(?:archive|backup|clone|import|load|once|open|output|restore|save|shell|system)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Statements of SQL, and words of the shell for it, that do more than to ask."""
OF_SQLITE_ITSELF = re.compile(
    r"(?:^|;)\s*attach\b|^\s*\.(?:archive|backup|clone|load|once|open|output|restore|save|shell|system)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""The same of a database in memory, which may be filled."""
GIVES_OUTPUT = re.compile(r"-o.*|-out|--out(?:put)?(?:[-=].*)?|-w")
PRINTS = names("openssl pandoc xmlstarlet xmllint")
"""Programs that print where no option names a file to be written."""
SHELLS = names("ash bash dash ksh sh zsh")
LINE_FOLLOWS = names("-c -lc -ec -euc -cl -xc -uc")
"""Options of a shell behind which its line stands."""
QUOTED = re.compile(r"'([^']*)'")
ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?=\[|\+?=)")
CLOSED = looking_rule("a closed look", "closed look", reach="closed")
SETTLED = names("no_rule option carrier outside input dynamic_name")
"""Codes of doubts about a command that do not matter where there is nothing to change and nothing of others to see."""
LOOKS_AT_STATE = names("compgen declare hash let local mapfile readarray shopt typeset")
"""Builtins that change no more than variables and options, which a session hears of."""
OPTIONS_OF_STATE = {
    **dict.fromkeys(("declare", "local", "typeset"), re.compile(r"-[aAilurp]+")),
    **dict.fromkeys(("mapfile", "readarray"), re.compile(r"-t|-[dnsOu].*|\d+|")),
    "let": re.compile(r"(?!)"),
}
"""What is given to them besides variables."""
PATTERN_OPTIONS = names("dotglob extglob failglob globstar lastpipe nocaseglob nocasematch nullglob")
CODE_OF_COMPGEN = names("-C -F -W")
ASSIGNED_NAME = re.compile(r"\[|\W?\W?=")
RELEASES = ("/etc/os-release", "/usr/lib/os-release", "/etc/lsb-release")
"""Files of plain assignments, which are read to know the system by its name."""
ACTS = re.compile(r"\b(?:runs?|writes?|deletes?|changes|loads|sends)\b")
"""What is said of a command that plainly does more than to look."""
OF_FAMILIES = frozenset(
    name
    for family in (BUILD_GUARDS, COMPILER_GUARDS, NETWORK_GUARDS, PACKING_GUARDS, TESTER_GUARDS, WRITING_GUARDS)
    for name in each_name(dict(family))
)
LOOKS_NEVERTHELESS = names("""
    getent zipinfo zcat zgrep zless bzcat xzcat zstdcat uniq sort xxd shfmt man less more info
""")
"""Of the families above and of interpreters: what mostly looks, or passes its input on."""
WANTS = (
    OF_FAMILIES | DESTRUCTIVE | PRIVILEGED | SETTINGS_OF_THE_FOLDER | CARRIERS | INTERPRETERS | WANTS_MORE
    | (CHANGES_THE_SHELL - LOOKS_AT_STATE)
) - LOOKS_NEVERTHELESS  # fmt: skip
"""Programs that are hardly called to look."""
NAME = re.compile(r"[\w./+-]+")
ACTORS = (
    OF_FAMILIES | DESTRUCTIVE | PRIVILEGED | WANTS_MORE | BUILDERS | RUNS_SCRIPTS
    | names("cp mkdir touch source . exec")
) - (LOOKS_NEVERTHELESS | names("sed awk gawk find xargs"))  # fmt: skip
"""Programs that plainly act wherever their names stand."""
CARRY_ANYTHING = names("env xargs time timeout nice stdbuf ionice")
"""Carriers of which it does not matter what they run, as long as it is not plainly something that acts."""
RUN_BY_AN_OPTION = names("fd fdfind man")
"""Programs that hand what they find to another that an option names."""
GIT_LOOKS = names("""
    annotate blame cat-file check-attr check-ignore check-mailmap cherry count-objects describe diff diff-files
    diff-index diff-tree for-each-ref grep help log ls-files ls-remote ls-tree merge-base name-rev patch-id range-diff
    rev-list rev-parse shortlog show show-branch show-index show-ref status var verify-commit verify-pack verify-tag
    version whatchanged
""")
GIT_DRY_RUNS = names("add apply clean commit mv rm")
DRY_RUN = re.compile(r"-[dfqrxX]*n[dfqrxX]*|--dry-run|--check|--stat|--numstat|--summary")
"""What makes these say what they would do; of a clump of options one that has the letter."""
CHANGES_FILES = re.compile(
    r"\+.*!.*|-P|--pager.*|-delete|-f?(?:print|ls)0?f?|-fprint.*|-ok(?:dir)?|-i.*|--in-place.*|inplace|--fix.*|--write"
)
"""Options by which what otherwise looks changes files."""
SIGNAL = re.compile(r"[A-Z]+\d*|\d+")
PACKS_OR_WRITES = frozenset(name for family in (PACKING_GUARDS, WRITING_GUARDS) for name in each_name(dict(family)))
UNCERTAIN = re.compile(r"\bbecomes may be (?:an option|outside)")
DEVICES = FREE_TARGETS | names("/dev/zero /dev/urandom /dev/random")
SPELLED_OUT = re.compile(r"(?:~|/|\.\.(?=/|$))[\w./+~@-]*", re.ASCII)


def may_look_closed(
    words: Sequence[Word], judged: Judged, folder: WorkingFolder, files: FileAccess, fed_by: SimpleCommand | None
) -> bool:
    """Whether a command is one that looks, as far as its words say what it is for."""
    name = program_name(words[0].value)
    if judged.doubt == "write" and not folder.leaves:
        return writes_temporary_files(name, words[1:])
    if judged.doubt not in SETTLED or judged.reason.endswith(OUTSIDE) or folder.leaves or files.why_of_process(words):
        return False
    rest = [word.value for word in words[1:]]
    if not name:  # whatever it becomes, it is none of the workspace's programs that runs
        return not any(names_elsewhere(value, folder) for value in rest)
    if not is_of_system(words[0].value or "", folder):
        return False
    if (
        judged.doubt != "input"
        and name not in {"ldd"} | CARRY_ANYTHING | RUN_BY_AN_OPTION
        and ACTS.search(judged.reason)
    ):
        return name in PACKS_OR_WRITES | {"sed"} and writes_temporary_files(name, words[1:])
    if name in (".", "source"):
        return len(rest) == 1 and rest[0] in RELEASES
    if any(names_elsewhere(value, folder) for value in rest):
        return False
    return is_for_looking(name, words, judged, folder, files, fed_by)


def is_for_looking(
    name: str,
    words: Sequence[Word],
    judged: Judged,
    folder: WorkingFolder,
    files: FileAccess,
    fed_by: SimpleCommand | None,
) -> bool:
    """Whether a program of the system is mostly called to look, with such words."""
    rest, language = [word.value for word in words[1:]], unversioned(name)
    if asks_for_help([name, *rest]) or (len(rest) == 1 and rest[0] in ASKS_SHORTLY):
        return name not in PRIVILEGED
    if checks_syntax(language, words[1:]):
        return True
    if language in CODE_OF or (language in TAKES_INPUT and judged.doubt == "input"):
        if language in ("perl", "ruby") and any(IN_PLACE.fullmatch(value or "") for value in rest):
            return False
        return has_plain_code(language, rest, fed_by) or (language in CODE_OF and says_what_is(name, rest))
    if judged.doubt == "input":
        return False
    if name == "git":
        is_look = is_git_look(rest) or writes_temporary_files(name, words[1:])
        return is_look and files.why_repository(words) is None
    if name in LOOKS_AT_STATE:
        return concerns_own_state(name, rest)
    if name == "trap":  # what it runs then, it runs there
        return len(rest) > 1 and rest[0] is not None and all(SIGNAL.fullmatch(value or "") for value in rest[1:])
    if is_listing(words) and UNCERTAIN.search(judged.reason):
        return True
    if name in CHECKS and any(CHECKS[name].fullmatch(value or "") for value in rest):
        changes = any(CHANGES_FILES.fullmatch(value or "") for value in rest)
        return not changes and (name not in FMT_ALONE or rest[:1] == ["fmt"])
    if name in PACKS_OR_WRITES and any(map(is_plainly_temporary, words[1:])):
        return True
    if writes_temporary_files(name, words[1:]):
        return True
    if says_what_is(name, rest):
        return True
    if name in CARRY_ANYTHING | RUN_BY_AN_OPTION:
        return not any(is_plain_act(value or "", folder) for value in rest)
    if name in WANTS or language in INTERPRETERS - LOOKS_NEVERTHELESS or is_shell(name):
        return name in ("exec", "set") and not rest
    return not any(value is not None and CHANGES_FILES.fullmatch(value) for value in rest)


def is_plain_act(value: str, folder: WorkingFolder) -> bool:
    """Whether a word that a carrier may run, or a line in it, names a program that acts, or one of the workspace."""
    named = NAME.findall(value)
    runs_own = any(is_of_workspace(name, folder) or is_own_program(name, folder) for name in named)
    programs = [program_name(name) for name in named]
    return runs_own or not ACTORS.isdisjoint(programs) or any(map(is_interpreter, programs))


def is_own_program(name: str, folder: WorkingFolder) -> bool:
    """Whether a path looks as if something of the workspace is called by it."""
    path = os.path.join(folder.cwd, name)
    is_called = name.startswith("./") or (os.access(path, os.X_OK) and os.path.isfile(path))
    return "/" in name and is_called and not is_of_system(name, folder)


def checks_syntax(language: str, words: Sequence[Word]) -> bool:
    """Whether a language only reads a program, as far as its options say."""
    if is_shell(language):  # which takes it back for `+n`, wherever that stands before the name
        named = [word for word in words if word.value != "-n"]
        return len(named) == 1 < len(words) and not may_be_switch(named[0])
    letter = SYNTAX_CHECKS.get(language)
    options = [word.value for word in words if word.value and word.value.startswith("-")]
    return letter is not None and any(re.fullmatch(rf"-w?{letter}", value) for value in options)


def may_be_switch(word: Word) -> bool:
    return not word.inside if word.value is None else word.value.startswith(("-", "+"))


def is_git_look(rest: Sequence[str | None]) -> bool:
    command = rest[1:2] if rest[:1] == ["--no-pager"] else rest[:1]
    if command == ["hash-object"]:
        return not any((value or "-w").startswith("-w") for value in rest)
    if command and command[0] in GIT_DRY_RUNS:
        return any(DRY_RUN.fullmatch(value or "") for value in rest)
    return (bool(command) and command[0] in GIT_LOOKS) or rest[:1] == ["--version"] or list(rest) == ["--exec-path"]


def says_what_is(name: str, rest: Sequence[str | None]) -> bool:
    """Whether a program that also changes, builds or runs things is told only to say what is there, or is wrong."""
    if name in DESTRUCTIVE | PRIVILEGED | CARRIERS or is_shell(name):
        return False
    if name in PRINTS:
        return bool(rest) and not any(GIVES_OUTPUT.fullmatch(value or "-o") for value in rest)
    if name == "sqlite3":
        changes = OF_SQLITE_ITSELF if ":memory:" in rest else CHANGES_A_DATABASE
        return len(rest) > 1 and not any(value is None or changes.search(value) for value in rest)
    if name == "cargo" and not CARGO_LOOKS.isdisjoint(rest[:1]):
        return True
    if name in COMPILERS:
        return any(LOOKING_OPTION.fullmatch(value or "") for value in rest)
    if any(FIXES.fullmatch(value or "") or CHANGES_FILES.fullmatch(value or "") for value in rest):
        return False
    if (rest[1] if rest[:1] == ["-m"] and len(rest) > 1 else name) in LINTERS:
        return True
    said = [value for value in rest if value and not value.startswith(("-", "+"))]
    if name in RUNS_SCRIPTS and not RUNS_WORDS.isdisjoint(said[:1]):
        return False
    if any(LOOKING_OPTION.fullmatch(value or "") for value in rest):
        return True
    commands = said[:2] if unversioned(name) in CODE_OF else said[:1]  # behind the file that a language runs
    return name not in BUILDERS and not LOOKING_COMMANDS.isdisjoint(commands)


def is_listing(words: Sequence[Word]) -> bool:
    """Whether a call is in the tables of those that list, whatever the words become that are not certain."""
    return words[0].value != "git" and words[0].value not in LANGUAGES and listing_of(words) is not None


def line_in_shell(words: Sequence[Word], judged: Judged) -> str | None:
    """The line that a shell is given, also one into which xargs puts names; None for any other command."""
    if judged.doubt not in SETTLED or judged.reason.endswith(OUTSIDE) or len(words) < 3:
        return None
    shell, option, line = words[:3]
    if shell.value not in SHELLS or option.value not in LINE_FOLLOWS:
        return None
    quoted = QUOTED.fullmatch(line.text)
    return line.value if line.value is not None else quoted[1] if quoted else None


def settles(why: str, text: str, kind: str, line: str) -> bool:
    """Whether a doubt about a part of a line that is no command does not matter in a closed look."""
    match kind:
        case "redirection":
            is_read = text.lstrip("0123456789").startswith("<") and why in (NOT_CERTAIN, NOT_READ)
            return is_read or (".." not in text and is_temporary(text, line))
        case "assignment":
            name = ASSIGNED.match(text)
            if why.endswith(CHANGES_THE_COMMAND):  # which looks no further for that
                return name is not None and not RUNS_FOR_ALL.fullmatch(name[1])
            is_own = name is not None and (is_own_variable(name[1]) or name[1] in OF_THE_LINE)
            return is_own and (why == SETS_A_VARIABLE or why.endswith(MAY_BE_OUTSIDE))
        case "loop":
            return why.endswith(MAY_BE_OUTSIDE)
    return kind in ("arithmetic", "condition")


def settles_doubt(doubt: Doubt) -> bool:
    """Whether a doubt about the line as a whole does not matter there."""
    return doubt.code in (ODD_WORD, NOT_READABLE) or doubt.message in EVALUATING


def is_of_system(name: str, folder: WorkingFolder) -> bool:
    """Whether a program is one of the system or of its user, and none that lies in the workspace."""
    if "/" in name:
        return name.startswith(("/usr/", "/bin/", "/sbin/")) and not folder.contains(name)
    return not is_of_workspace(name, folder)


def concerns_own_state(name: str, rest: Sequence[str | None]) -> bool:
    """Whether a builtin only concerns variables that nobody obeys, or how patterns are matched."""
    if name == "hash":
        return list(rest) == ["-r"]
    if name == "compgen":
        return not CODE_OF_COMPGEN.intersection(filter(None, rest))
    if name == "shopt":
        return all(value in ("-s", "-u", "-q", *PATTERN_OPTIONS) for value in rest)
    plain = OPTIONS_OF_STATE[name]
    return all(
        value is not None and (plain.fullmatch(value) or is_own_variable(ASSIGNED_NAME.split(value, maxsplit=1)[0]))
        for value in rest
    )


def names_elsewhere(value: str | None, folder: WorkingFolder) -> bool:
    """Whether a word spells out a file that is not there in a closed look: who wants it has to be allowed to see it."""
    if value is None or value in DEVICES or value.startswith("//") or SPELLED_OUT.fullmatch(value) is None:
        return False  # two slashes begin an expression about XML, and a file that is not there for whoever means one
    return not folder.contains(value) and not is_public(value)
