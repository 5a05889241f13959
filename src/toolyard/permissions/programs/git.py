"""git: which of its commands and options run programs, write files elsewhere or change what git itself does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.categories import name_lists, names
from toolyard.permissions.programs.git_options import GLOBALS, HARMS, MERGES, TABLES, table_of
from toolyard.permissions.programs.options import RUNS, WRITES, Concern, Options, sent_uncertain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Given


QUIET_GLOBALS = names("""
    no-pager P no-replace-objects literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs no-optional-locks
    no-lazy-fetch no-advice
""")
SWITCHES_ARE_HARMLESS = names("""
    add bisect branch bundle check-attr check-ignore check-mailmap check-ref-format checkout cherry clean column
    commit commit-graph commit-tree config count-objects describe fmt-merge-msg for-each-ref fsck gc
    get-tar-commit-id hash-object ls-files ls-tree merge-base merge-file merge-tree mktag mktree multi-pack-index mv
    name-rev notes pack-refs patch-id prune prune-packed read-tree remote repack rerere reset restore rev-list
    rev-parse rm show-branch show-index show-ref sparse-checkout status stripspace switch symbolic-ref tag
    unpack-file update-index update-ref update-server-info var verify-commit verify-pack verify-tag version worktree
    write-tree
""")
"""Commands none of whose options matters here; what they themselves do is for the rule to allow."""
KNOWN = SWITCHES_ARE_HARMLESS | HARMS.keys() | TABLES.keys()
NEVER = names("""
    archimport bugreport citool credential credential-cache credential-store cvsexportcommit cvsimport cvsserver
    daemon diagnose difftool fast-import filter-branch for-each-repo gitk gui help hook http-backend imap-send
    instaweb maintenance merge-index merge-one-file mergetool p4 quiltimport receive-pack remote-ext remote-fd
    request-pull scalar send-email sh-setup shell submodule--helper svn upload-archive upload-pack web--browse
""")
"""Commands that run other programs as a matter of course."""
NETWORK = names("fetch pull push ls-remote clone submodule remote fetch-pack send-pack archive")
VERBS = {
    "submodule": ({"foreach"}, "runs a command in every submodule"),
    "bisect": ({"run", "visualize", "view"}, RUNS),
    "worktree": ({"add", "move", "remove", "repair"}, "makes or removes folders"),
    "bundle": ({"create", "unbundle"}, WRITES),
    "remote": ({"update"}, "goes to other machines"),
    "notes": ({"edit"}, RUNS),
}
FORMATTED = names("""
    log show whatchanged rev-list reflog shortlog stash diff-tree range-diff cherry format-patch for-each-ref branch tag
""")
"""Commands that print by a format of the caller's."""
SIGNATURE = re.compile(r"%[-+ ]?G|%\(\*?signature|^(?:--?s\w*=)?-?\*?signature(?::|$)")
FORMAT_OPTION = re.compile(r"--(?:f(?:o|$)|p(?:r|$))")
STRATEGIES = names("ort recursive resolve octopus ours subtree")
CONFIG_READS = names("get get-all get-regexp get-urlmatch get-color get-colorbool list l")
HELPER = re.compile(r"[A-Za-z0-9][\w+.-]*::|[\w+.-]*://-|ext:|fd:")
"""Addresses by which git starts a program of the address's choice."""


def git_subcommand(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The command without the options that stand before it; None when that is not certain."""
    given = GLOBALS.scan(words[1:])
    is_certain = given.unknown is None or given.unknown.value is not None
    if not given.operands or given.operands[0].value is None or not is_certain:
        return None
    return (words[0], *given.operands)


class GitTable:
    """Reads the words of git by the table of its command."""

    def scan(self, words: Sequence[Word]) -> Given:
        given = GLOBALS.scan(words)
        if not given.operands or given.operands[0].value is None:
            given.unknown = given.unknown or next(iter(given.operands), None)
            return given
        found = table_of(given.operands[0].value).scan(given.operands[1:])
        found.paths = [*given.paths, *found.paths]
        found.unknown = given.unknown or found.unknown
        found.add_path(literal_word("."), ".", "read")
        return found


GIT = GitTable()


def git_concerns(words: Sequence[Word], folder: FolderFacts, named: int) -> Iterator[Concern]:
    """All concerns about a call of git; `named` says how many of its words the rule spells out."""
    inner = git_subcommand(words)
    if inner is None:
        if [word.value for word in words[1:]] not in (["--version"], ["-v"], []):
            yield Concern(message="git without a command that is certain")
        return
    yield from global_concerns(words[1 : len(words) - len(inner) + 1], folder)
    name = inner[1].value or ""
    if name in NEVER:
        yield Concern(message=f"'git {name}' {RUNS}")
    if name not in KNOWN and named < 2:
        yield Concern(message=f"'git {name}' may be anything: an alias, or a program of that name")
        return
    yield from subcommand_concerns(name, inner[2:])
    yield from git_losses(inner, named)


QUIET_SETTINGS = re.compile(
    r"(?i)(?:color\.[\w.]+|column\.\w+|core\.(?:quotepath|abbrev|autocrlf|eol|filemode|ignorecase|precomposeunicode)"
    r"|diff\.(?:renames|renamelimit|algorithm|context|mnemonicprefix|noprefix|colormoved|submodule|statgraphwidth)"
    r"|log\.(?:date|decorate|abbrevcommit|follow|mailmap)|status\.(?:short|branch|showuntrackedfiles|relativepaths)"
    r"|advice\.\w+|grep\.(?:linenumber|column|patterntype|extendedregexp|fullname)|blame\.(?:date|showemail|coloring)"
    r"|tag\.sort|branch\.sort|versionsort\.suffix|safe\.directory|i18n\.logoutputencoding)=[\w.,:/* -]*"
    r"|(?:core\.pager|pager\.\w+)=(?:cat|false|)"
)
"""Settings by which git only prints otherwise."""


def global_concerns(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    given = GLOBALS.scan(words)
    for name, value in given.options:
        if name == "c" and value is not None and QUIET_SETTINGS.fullmatch(value):
            continue
        if name == "C":
            if value is None or folder.moves or not folder.contains(value):
                yield Concern(message="-C leads out of the workspace")
        elif name not in QUIET_GLOBALS:
            yield Concern(message=f"'{name}' changes what git runs or where")
    if given.unknown is not None:
        yield Concern(message=f"'{given.unknown.text}' changes what git runs or where")


def subcommand_concerns(name: str, words: Sequence[Word]) -> Iterator[Concern]:
    given = table_of(name).scan(words)
    strategies = given.values("s", "strategy")
    yield from (concern for concern in given.concerns if not is_known_strategy(concern, strategies))
    if name in NETWORK:
        yield from address_concerns(words)
    if name == "config":
        yield from config_concerns(words, given)
    if name in FORMATTED:
        yield from format_concerns(words)
    verbs, why = VERBS.get(name, (set[str](), ""))
    first = next((word for word in words if not (word.value or "").startswith("-")), None)
    if first is not None and verbs and (first.value is None or first.value in verbs):
        yield Concern(message=f"'git {name} {first.text}' {why}")


def is_known_strategy(concern: Concern, strategies: list[str | None]) -> bool:
    """A strategy that is git's own is no program of others."""
    return MERGES in concern.message and bool(strategies) and STRATEGIES.issuperset(strategies)


def address_concerns(words: Sequence[Word]) -> Iterator[Concern]:
    for word in words:
        if word.value is None:
            yield sent_uncertain(word)
        elif HELPER.match(word.value) or HELPER.match(word.value.partition("=")[2]):
            yield Concern(message=f"'{word.text}' may name a program to talk to")


def config_concerns(words: Sequence[Word], given: Given) -> Iterator[Concern]:
    """Only reading: what is set may be a program that git runs later."""
    verb = given.operands[0].value if given.operands else None
    reads = given.has(*CONFIG_READS) or verb in ("list", "get")
    reads = reads or (len(given.operands) == 1 and "." in (verb or ""))  # a key; without a dot it is a command
    if any(word.value is None for word in words) or given.unknown or not reads:
        yield Concern(message="git config sets what git runs later")
    if given.has("includes") and given.has("f", "file", "blob"):
        yield Concern(message="'--includes' reads whatever other files a file names")


def format_concerns(words: Sequence[Word]) -> Iterator[Concern]:
    """Of a command that prints by a format: one that asks for a signature has gpg, or what is configured, check it."""
    for word in words:
        if word.value is None and FORMAT_OPTION.match(word.prefix):
            yield Concern(message=f"'{word.text}' may ask for a signature, and to check that {RUNS}")
        elif SIGNATURE.search(word.value or ""):
            yield Concern(message=f"'{word.text}' asks for a signature, and to check that {RUNS}")


LOSES = "throws away what cannot be had back"
LOSES_WORK = {
    "push": Options(
        values="-o push-option repo receive-pack exec",
        flags="-nuqv tags all set-upstream follow-tags dry-run porcelain force-if-includes",
        harms={"-fd force force-with-lease delete mirror prune": LOSES},
    ),
    "reset": Options(flags="-qNp soft mixed keep merge patch quiet", harms={"hard": LOSES}),
    "checkout": Options(values="-bB", flags="-tlqmp track detach quiet merge patch", harms={"-f force": LOSES}),
    "switch": Options(values="-cC", flags="-tdqm track detach quiet", harms={"-f force discard-changes": LOSES}),
    "branch": Options(
        values="-u set-upstream-to contains no-contains points-at format sort",
        flags="-arvlqt all remotes verbose list merged no-merged show-current column color abbrev ignore-case",
        harms={"-dDmMcCf delete move copy force edit-description unset-upstream": LOSES},
    ),
    "tag": Options(
        values="-mFu message file local-user contains no-contains points-at sort format cleanup",
        optional="-n",
        flags="-alsv list annotate sign column merged no-merged ignore-case",
        harms={"-df delete force": LOSES},
    ),
    "gc": Options(flags="-q aggressive auto quiet keep-largest-pack", harms={"prune": LOSES}),
    "update-ref": Options(flags="create-reflog no-deref", values="-m", harms={"-d stdin": LOSES}),
    "rm": Options(flags="-nrq cached dry-run ignore-unmatch quiet sparse", harms={"-f force": LOSES}),
}
"""Options by which a command loses work, although it is given for something else most of the time."""
LOSING_VERBS = name_lists(
    {
        "stash": "drop clear",
        "reflog": "expire delete drop write",
        "remote": "remove rm rename set-url prune",
        "notes": "remove prune",
    }
)
LOSING_WORDS = names("clean prune checkout restore push") | LOSING_VERBS.keys()


def git_losses(words: Sequence[Word], named: int) -> Iterator[Concern]:
    """What a command of git loses that its rule does not spell out; `words` begin with git and the command."""
    name = words[1].value or ""
    if name in LOSES_WORK:
        yield from LOSES_WORK[name].scan(words[max(named, 2) :]).concerns
    if name in LOSING_WORDS:
        yield from losing_words(name, words[2:], named)


def losing_words(name: str, words: Sequence[Word], named: int) -> Iterator[Concern]:
    """What throws work away without an option for it; a rule that spells it out means it."""
    values = [word.value for word in words]
    if name in ("clean", "prune") and named < 2 and not {"-n", "--dry-run"} & set(values):
        yield Concern(message=f"'git {name}' {LOSES}", runs=False)
    if name == "checkout" and named < 3 and (values[-1:] == ["."] or "--" in values[:-1]):
        yield Concern(message=f"'git checkout' of files {LOSES}", runs=False)
    if name == "restore" and named < 3 and "." in values and not {"-S", "--staged"} & set(values):
        yield Concern(message=f"'git restore' of everything {LOSES}", runs=False)
    if name == "push" and any((value or "").startswith(("+", ":")) for value in values[max(named, 2) - 2 :]):
        yield Concern(message=f"pushing with '+' or ':' {LOSES}", runs=False)
    verb = next((value for value in values if value is None or not value.startswith("-")), "")
    if named < 3 and verb in LOSING_VERBS.get(name, ()):
        yield Concern(message=f"'git {name} {verb}' {LOSES}", runs=False)
