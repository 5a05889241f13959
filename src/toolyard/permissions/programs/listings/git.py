"""Commands of git that both list and change: which of their calls only list or print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import each_name, names
from toolyard.permissions.programs.git_options import (
    DIFF_FLAGS,
    DIFF_OPTIONAL,
    DIFF_VALUES,
    LOG_FLAGS,
    LOG_OPTIONAL,
    LOG_VALUES,
)
from toolyard.permissions.programs.listings.listing import Listing, lists_with

if TYPE_CHECKING:
    from toolyard.permissions.programs.options import Given


REFS_CHOSEN = names("l list contains no-contains merged no-merged points-at a r all remotes n")
"""Options with which an operand chooses among branches or tags, and is no new one."""
PRINTS = "values of a format"
COMMITS = lists_with(
    flags=DIFF_FLAGS + LOG_FLAGS,
    values=DIFF_VALUES + LOG_VALUES,
    optional=DIFF_OPTIONAL + LOG_OPTIONAL,
    operands="read*",
)


def only_lists_refs(given: Given) -> bool:
    """Whether branches or tags are listed: with an operand and nothing that chooses, one would be made."""
    return not given.operands or given.has(*REFS_CHOSEN)


def first_is(*allowed: str) -> Listing:
    """A command whose own first word says what it does."""
    return lists_with(
        flags="-vqzn verbose quiet porcelain recursive cached summary heads tags all",
        lists=lambda given: bool(given.operands) and given.operands[0].value in allowed,
    )


GIT: dict[str, Listing] = each_name(
    {
        "branch": lists_with(
            flags="-arvli all remotes verbose list show-current no-color no-column ignore-case no-abbrev",
            values="contains no-contains points-at format sort",
            optional="column color abbrev merged no-merged",
            lists=only_lists_refs,
        ),
        "tag": lists_with(
            flags="-li list no-column ignore-case",
            values="contains no-contains points-at format sort",
            optional="-n column color merged no-merged",
            lists=only_lists_refs,
        ),
        "remote": lists_with(
            flags="-vn verbose all push",
            lists=lambda given: (
                not given.operands
                or given.operands[0].value == "get-url"
                or (given.operands[0].value == "show" and (given.has("n") or len(given.operands) == 1))
            ),
        ),
        "symbolic-ref": lists_with(flags="-q short quiet recurse no-recurse", most=1),
        "notes": lists_with(
            values="ref", lists=lambda given: not given.operands or given.operands[0].value in ("list", "show")
        ),
        "stash": lists_with(
            flags=DIFF_FLAGS + LOG_FLAGS + "include-untracked only-untracked",
            values=DIFF_VALUES + LOG_VALUES,
            optional=DIFF_OPTIONAL + LOG_OPTIONAL,
            lists=lambda given: bool(given.operands) and given.operands[0].value in ("list", "show"),
        ),
        "reflog": lists_with(
            flags=DIFF_FLAGS + LOG_FLAGS,
            values=DIFF_VALUES + LOG_VALUES,
            optional=DIFF_OPTIONAL + LOG_OPTIONAL,
            lists=lambda given: (
                not given.operands or given.operands[0].value not in ("expire", "delete", "drop", "write", None)
            ),
        ),
        "show-branch": lists_with(
            flags="""
                -ar all remotes current topo-order date-order sparse independent merge-base no-name sha1-name topics
                no-color list
            """,
            optional="more color reflog -g",
        ),
        "worktree": first_is("list"),
        "submodule": lists_with(
            flags="-q quiet cached recursive",
            lists=lambda given: not given.operands or given.operands[0].value in ("status", "summary"),
        ),
        "bisect": first_is("log", "terms"),
        "sparse-checkout": first_is("list"),
        "rerere": first_is("status", "diff", "remaining"),
        "bundle": lists_with(
            flags="-q quiet",
            operands="text read",
            lists=lambda given: bool(given.operands) and given.operands[0].value in ("verify", "list-heads"),
        ),
        "lfs": lists_with(
            flags="-las long all size",
            lists=lambda given: bool(given.operands) and given.operands[0].value in ("ls-files", "version"),
        ),
        "cherry range-diff diff-index diff-files": COMMITS,
        "format-patch": lists_with(
            flags=DIFF_FLAGS
            + "-k stdout keep-subject numbered no-numbered cover-letter thread no-thread root signoff no-signature",
            values=DIFF_VALUES
            + "subject-prefix start-number signature base range-diff from to cc-list reroll-count -v",
            optional=DIFF_OPTIONAL,
            operands="read*",
            needs="stdout",
        ),
        "archive": lists_with(
            flags="-lv0123456789 list verbose worktree-attributes",
            values="format prefix mtime",
            operands="text read*",
            lists=lambda given: set(given.values("format")) <= {"tar", "zip"},
        ),
        "interpret-trailers": lists_with(
            flags="parse only-trailers only-input unfold no-divider trim-empty",
            operands="read*",
            needs="parse only-input",
        ),
        "apply": lists_with(
            flags="-Rz stat numstat summary check reverse index cached recount unidiff-zero allow-empty verbose -v",
            values="-pC exclude include whitespace",
            operands="read*",
            needs="stat numstat summary check",
        ),
        "patch-id": lists_with(flags="stable unstable verbatim", most=0),
        "column": lists_with(
            flags="",
            values="mode width indent padding nl command",
            optional="raw-mode",
            most=0,
            lists=lambda given: not given.has("command"),
        ),
        "hash-object": lists_with(
            flags="stdin no-filters literally",
            values="-t path",
            operands="read*",
            lists=lambda given: given.has("no-filters", "stdin") and not given.has("path"),
        ),
        "check-ref-format": lists_with(flags="branch normalize allow-onelevel refspec-pattern"),
        "check-mailmap": lists_with(flags="stdin"),
        "fsck": lists_with(
            flags="""
                unreachable dangling no-dangling root tags cache no-reflogs full no-full strict verbose
                connectivity-only progress no-progress name-objects references
            """
        ),
        "verify-pack show-index get-tar-commit-id": lists_with(flags="-vs verbose stat-only", operands="read*"),
        "stripspace": lists_with(flags="-sc strip-comments comment-lines", most=0),
        "fmt-merge-msg": lists_with(flags="log no-log", values="-m", reads="-F", most=0),
        "merge-tree": lists_with(most=3, lists=lambda given: len(given.operands) == 3),
        "help": lists_with(
            flags="-agc all guides config no-verbose no-aliases no-external-commands",
            most=0,
            needs="a g c all guides config",
        ),
        "ls-remote": lists_with(flags="get-url", needs="get-url", most=1),
    }
)
HELP = frozenset({"-h", "--help"})
