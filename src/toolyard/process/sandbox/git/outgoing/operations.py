"""What git writes down of an operation that waits: a merge, a rebase, a bisection. Git outside goes on from it.

Some of that names commands, options and other programs, so a file is taken only if it says what git itself writes
there, and never a command. A rebase is many files, which are handed over together or not at all.
"""

from __future__ import annotations

import re

from toolyard.core.regexes import late_pattern
from toolyard.process.sandbox.git.refs import COMMIT, PART

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONGEST = 1 << 20
ID = rf"{COMMIT}\n?"
BRANCH = rf"refs/heads(?:/{PART})+"
TEXT = r"[^\x00]*"
NUMBER = r"\d{1,9}\n?"
FLAG = r"(?:t|f|true|false|1|b|p|i|--(?:no-)?rerere-autoupdate|-?[a-z-]{0,30})\n?"
QUOTED = r"'(?:[^'\x00\n]|'\\['!]')*'"
AUTHOR = rf"(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)={QUOTED}\n?){{0,3}}"
STRATEGY = r"(?:ort|recursive|resolve|octopus|ours|subtree)\n?"
STRATEGY_OPTION = (
    r"'?(?:--)?(?:ours|theirs|patience|(?:no-)?renormalize|ignore-[a-z-]+|(?:no-|find-)?renames(?:=\d+%?)?"
    r"|diff-algorithm=[a-z]+)'?"
)
STRATEGY_OPTIONS = rf"[ ]?(?:{STRATEGY_OPTION}(?:[ ]{STRATEGY_OPTION})*)?\n?"
HASH = r"[0-9a-f]{4,64}"
TODO = rf"""(?x)(?:[ \t]*(?:
    (?:[#;][^\x00\n]*)? | noop | break | b
    | (?:pick|p|reword|r|edit|e|squash|s|drop|d|revert|(?:fixup|f)(?:[ ]-[cC])?)[ ]{HASH}(?:[ ][^\x00\n]*)?
    | (?:label|l|reset|t)[ ][^-\x00\n][^\x00\n]* | (?:merge|m)(?:[ ]-[cC][ ]{HASH})?[ ][^-\x00\n][^\x00\n]*
    | (?:update-ref|u)[ ]{BRANCH}
)\n)*"""
SEQUENCER_OPTIONS = (
    r"(?:\[options\]\n|\t(?:no-commit|edit|allow-empty|allow-empty-message|drop-redundant-commits|"
    r"keep-redundant-commits|signoff|record-origin|allow-ff|mainline|allow-rerere-auto) = (?:true|false|\d{1,4})\n)*"
)
BISECT_LINE = rf"(?:#[^\x00\n]*|git bisect(?: {QUOTED}| [\w./@^~-]+)*)\n"
ALONE = {
    "(?:ORIG|MERGE|CHERRY_PICK|REVERT|REBASE|BISECT)_HEAD|BISECT_EXPECTED_REV|AUTO_MERGE|MERGE_AUTOSTASH": (
        rf"(?:{COMMIT}(?:\n|\Z))*"
    ),
    "FETCH_HEAD": rf"(?:{COMMIT}\t(?:not-for-merge)?\t[^\x00-\x1f\x7f]*\n)*",
    "(?:COMMIT_EDIT|TAG_EDIT|MERGE_|SQUASH_)MSG": TEXT,
    "MERGE_MODE": r"(?:no-ff)?\n?",
    "BISECT_START": rf"(?:{COMMIT}|(?!-){PART}(?:/{PART})*)\n?",
    "BISECT_TERMS": r"[a-z][a-z-]*\n[a-z][a-z-]*\n",
    "BISECT_NAMES": rf"(?: {QUOTED})*\n?",
    "BISECT_LOG": f"(?:{BISECT_LINE})*",
    "BISECT_ANCESTORS_OK|BISECT_FIRST_PARENT": r"\n?",
}
"""What a file in the git folder that belongs to an operation may say."""
IN_A_FOLDER = {
    "rebase-merge": {
        "onto|orig-head|amend|autostash|squash-onto": ID,
        "stopped-sha": rf"{HASH}\n?",
        "head-name": rf"(?:{BRANCH}|detached HEAD)\n?",
        "git-rebase-todo|git-rebase-todo\\.backup|done": TODO,
        "msgnum|end": NUMBER,
        "message|message-fixup|message-squash|patch|current-fixups": TEXT,
        "author-script": AUTHOR,
        "rewritten-list|rewritten-pending": rf"(?:{COMMIT}(?: {COMMIT})?\n)*",
        "strategy": STRATEGY,
        "strategy_opts": STRATEGY_OPTIONS,
        "refs-to-delete": rf"(?:refs/rewritten(?:/{PART})+\n)*",
        "update-refs": rf"(?:{BRANCH}\n{COMMIT}\n{COMMIT}\n)*",
        "interactive|quiet|verbose|signoff|cdate_is_adate|ignore_date|(?:drop|keep)_redundant_commits"
        "|(?:no-)?reschedule-failed-exec|allow_rerere_autoupdate|force-rewrite": FLAG,
    },
    "rebase-apply": {
        "onto|orig-head|autostash|abort-safety|original-commit": rf"(?:{COMMIT})?\n?",
        "head-name": rf"(?:{BRANCH}|detached HEAD)\n?",
        "next|last": NUMBER,
        r"\d{4,9}|msg|msg-clean|final-commit|patch|info|rewritten": TEXT,
        "author-script": AUTHOR,
        "apply-opt": r"\n?",
        "sign|utf8|keep|messageid|scissors|quoted-cr|no_inbody_headers|quiet|verbose|threeway|applying|rebasing"
        "|dirtyindex|allow_rerere_autoupdate|ignore_date|committer_date_is_author_date": FLAG,
    },
    "sequencer": {"head|abort-safety": rf"(?:{COMMIT})?\n?", "todo": TODO, "opts": SEQUENCER_OPTIONS},
}
FOLDER = late_pattern(r"((?:worktrees/[^/]+/)?(rebase-merge|rebase-apply|sequencer))/(.+)")


def refused_files(contents: Mapping[str, bytes]) -> set[str]:
    """The files of operations that git outside must not go on from, with all that belong to the same."""
    refused = {name for name in contents if is_of_operation(name) and not is_plain(name, contents[name])}
    folders = {found[1] for name in refused if (found := FOLDER.fullmatch(name))}
    return refused | {name for name in contents if (found := FOLDER.fullmatch(name)) and found[1] in folders}


def is_of_operation(name: str) -> bool:
    return bool(FOLDER.fullmatch(name)) or bool(re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+", own_name(name)))


def is_plain(name: str, data: bytes) -> bool:
    """Whether a file says what git writes there, and no command."""
    text = data.decode("utf-8", "surrogateescape")
    found = FOLDER.fullmatch(name)
    rules, last = (IN_A_FOLDER[found[2]], found[3]) if found else (ALONE, own_name(name))
    rule = next((rule for names, rule in rules.items() if re.fullmatch(names, last)), None)
    return rule is not None and (rule == TEXT or len(text) <= LONGEST) and re.fullmatch(rule, text) is not None


def commits_of(name: str, data: bytes) -> Iterable[str]:
    """The commits that have to be there where git is to go on from a file."""
    last = (found[3] if (found := FOLDER.fullmatch(name)) else own_name(name)).lower()
    is_needed = last.endswith(("_head", "rev", "onto", "orig-head", "autostash", "amend")) or last == "head"
    return re.findall(rf"(?m)^{COMMIT}\b", data.decode("utf-8", "replace")) if is_needed else ()


def own_name(name: str) -> str:
    return re.sub(r"\Aworktrees/[^/]+/", "", name)
