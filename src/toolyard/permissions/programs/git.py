"""git: which of its commands and options run programs, write files elsewhere or change what git itself does."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import name_lists, names
from toolyard.permissions.programs.options import RUNS, WRITES, Concern, Options, sent_uncertain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.file_access import WorkingFolder


QUIET_GLOBALS = names("""
    --no-pager -P --no-replace-objects --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs
    --no-optional-locks --no-lazy-fetch --no-advice
""")
WITH_VALUE = names("""
    -C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source --exec-path
""")
DIFF = {"output": WRITES, "ext-diff": RUNS, "textconv": RUNS, "filters": RUNS, "no-index contents": "reads any file"}
MERGES = "names a program to merge with"
REMOTE = {"upload-pack receive-pack exec": RUNS}
CLONE = {**REMOTE, "-uc config template": "sets what git runs", "separate-git-dir": WRITES}
HARMS: dict[str, dict[str, str]] = {
    **dict.fromkeys(
        names("""
            diff log show whatchanged diff-files diff-index diff-tree range-diff reflog stash blame annotate cat-file
        """),
        DIFF,
    ),
    "shortlog": {"output": WRITES},
    "format-patch": {**DIFF, "-o output-directory": WRITES},
    "grep": {"no-index": "reads any file", "-O open-files-in-pager": RUNS, "ext-grep": RUNS, "textconv": RUNS},
    **dict.fromkeys(names("fetch push ls-remote fetch-pack send-pack"), REMOTE),
    "pull": {**REMOTE, "-s strategy": MERGES},
    "clone": CLONE,
    "submodule": {"template": "sets what git runs"},
    "init": {"template": "sets what git runs", "separate-git-dir": WRITES},
    "archive": {"-o output": WRITES, "exec remote": RUNS},
    "rebase": {"-xi exec interactive edit-todo": RUNS, "-s strategy": MERGES},
    "merge": {"-s strategy": MERGES},
    "cherry-pick": {"strategy": MERGES},
    "revert": {"strategy": MERGES},
    "apply": {"unsafe-paths": "writes outside of the workspace", "directory": WRITES},
    "am": {"directory": WRITES, "interactive": RUNS},
    "fast-export": {"export-marks": WRITES},
    "interpret-trailers": {"in-place": WRITES},
    "replace": {"edit": RUNS},
}
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
KNOWN = SWITCHES_ARE_HARMLESS | HARMS.keys()
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
STRATEGIES = names("ort recursive resolve octopus ours subtree")
CONFIG_READS = re.compile(r"--get(?:-all|-regexp|-urlmatch|-color|-colorbool)?|--list|-l|list|get")
CONFIG_LOOKS = re.compile(
    r"--(?:show-origin|show-scope|name-only|local|global|system|worktree|null|includes|no-includes|type=\w+|bool|int|path|default=.*)|-z"
)
HELPER = re.compile(r"[A-Za-z0-9][\w+.-]*::|[\w+.-]*://-|ext:|fd:")
"""Addresses by which git starts a program of the address's choice."""


def git_subcommand(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The command without the options that stand before it; None when that is not certain."""
    at = 1
    while at < len(words):
        value = words[at].value
        if value is None:
            return None
        if not value.startswith("-"):
            return (words[0], *words[at:])
        at += 2 if value in WITH_VALUE else 1
    return None


def git_concerns(words: Sequence[Word], folder: WorkingFolder, named: int) -> Iterator[Concern]:
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


def global_concerns(words: Sequence[Word], folder: WorkingFolder) -> Iterator[Concern]:
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif word.value == "-C":
            skip = True
            target = words[at + 1].value if at + 1 < len(words) else None
            if target is None or folder.moves or not folder.contains(target):
                yield Concern(message="-C leads out of the workspace")
        elif word.value not in QUIET_GLOBALS:
            yield Concern(message=f"'{word.text}' changes what git runs or where")
            skip = word.value in WITH_VALUE


@cache
def table_of(name: str) -> Options:
    """The options of one command of git, as far as they matter."""
    return Options(
        flags="oneline stat name-only name-status cached staged patch numstat shortstat summary graph all follow quiet",
        values=VALUES.get(name, ""),
        harms=HARMS.get(name, {}),
        optional="output-indicator-new output-indicator-old output-indicator-context",
    )


def subcommand_concerns(name: str, words: Sequence[Word]) -> Iterator[Concern]:
    if (table := table_of(name)).harms:
        given = table.scan(words)
        strategies = given.values("s", "strategy")
        yield from (concern for concern in given.concerns if not is_known_strategy(concern, strategies))
    if name in NETWORK:
        yield from address_concerns(words)
    if name == "config":
        yield from config_concerns(words)
    verbs, why = VERBS.get(name, (set[str](), ""))
    first = next((word for word in words if not (word.value or "").startswith("-")), None)
    if first is not None and verbs and (first.value is None or first.value in verbs):
        yield Concern(message=f"'git {name} {first.text}' {why}")


VALUES = {
    "commit": "-mFcCt message file author date reuse-message reedit-message template cleanup fixup squash trailer",
    "log": "-nSGL max-count since until after before author committer grep format pretty date skip",
    "clone": "-boj branch origin depth reference jobs filter shallow-since shallow-exclude",
    "fetch": "-jo depth deepen shallow-since jobs refmap negotiation-tip server-option",
    "push": "-o push-option repo",
    "grep": "-eABCmf max-depth threads max-count after-context before-context context",
    "rebase": "-XCs onto strategy-option strategy",
    "merge": "-mFXs message file strategy-option strategy",
    "pull": "-jXs depth jobs strategy-option strategy",
    "cherry-pick": "-mX mainline strategy-option strategy",
    "revert": "-mX mainline strategy-option strategy",
    "stash": "-m message",
}


def is_known_strategy(concern: Concern, strategies: list[str | None]) -> bool:
    """A strategy that is git's own is no program of others."""
    return MERGES in concern.message and bool(strategies) and STRATEGIES.issuperset(strategies)


def address_concerns(words: Sequence[Word]) -> Iterator[Concern]:
    for word in words:
        if word.value is None:
            yield sent_uncertain(word)
        elif HELPER.match(word.value) or HELPER.match(word.value.partition("=")[2]):
            yield Concern(message=f"'{word.text}' may name a program to talk to")


def config_concerns(words: Sequence[Word]) -> Iterator[Concern]:
    """Only reading: what is set may be a program that git runs later."""
    values = [word.value for word in words]
    rest = [value for value in values if value is None or not CONFIG_LOOKS.fullmatch(value)]
    reads = bool(rest) and rest[0] is not None and bool(CONFIG_READS.fullmatch(rest[0]))
    if None in values or not (reads or (len(rest) == 1 and not str(rest[0]).startswith("-"))):
        yield Concern(message="git config sets what git runs later")


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
        "reflog": "expire delete",
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
