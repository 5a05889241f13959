"""Which files a line may read and write, as far as redirections and arguments say."""

from __future__ import annotations

import glob
import os
import re
from typing import TYPE_CHECKING

from toolyard.permissions.paths import is_inside, resolved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.core.events import Decision
    from toolyard.permissions.places import Place
    from toolyard.permissions.rule_index import Access, RuleBook
    from toolyard.permissions.rules import Rule


AGAINST: tuple[Decision, ...] = ("deny", "ask")
ACCESSES: tuple[Access, ...] = ("read", "write")
FREE_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})
"""Names to which anything may be written."""
NETWORK_FILE = re.compile(r"/+dev/+(?:tcp|udp)/")
LOOP_VARIABLE = re.compile(r"\"?\$(?:(\w+)|\{(\w+)\})\"?")
LATER_RUN = re.compile(
    r"(?:^|/)(?:\.git|\.git/(?:hooks|config|info/attributes|modules)(?:/.*)?|\.gitmodules|\.gitconfig|\.config/git/.*|\.bashrc"
    r"|\.bash_profile|\.bash_login|\.bash_logout|\.bash_aliases|\.profile|\.zshrc|\.zshenv|\.zprofile|\.zlogin|\.inputrc|\.envrc"
    r"|\.ssh|\.ssh/.*|\.netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|\.vscode/.*|\.idea/.*|\.mcp\.json|toolyard\.json|\.toolyard(?:/.*)?)$"
)
"""Files by which later commands run something else, or that open other doors: no rule for a folder covers them."""
EXPANDS_OTHERWISE = re.compile(r"[{\\'\"]|\*\*|\[[!^:]")
"""What in a pattern is more than `*`, `?` and letters to choose from."""
MOST_MATCHES = 1000
SPEAKS_ONLY = frozenset({"echo", "printf", "true", "false", ":", "test", "[", "expr", "seq", "sleep", "date"})
"""Programs to which an argument is no path to look at."""


class FileAccess:
    """Answers for one line."""

    def __init__(self, book: RuleBook, tool: str, place: Place) -> None:
        self._book, self._tool, self._place = book, tool, place

    def rule_against(self, path: str) -> Rule | None:
        """A rule that denies a file, or wants to be asked about it, by either of its names."""
        if not self._book.refuses_files:
            return None
        for decision in AGAINST:
            for candidate in resolved(path, self._place.cwd):
                for access in ACCESSES:
                    if rule := self._rule(decision, access, candidate):
                        return rule
        return None

    def may_be_refused(self, words: Sequence[Word]) -> str | None:
        """Why a command may touch a file that a rule is against, although no argument names it."""
        if not self._book.refuses_files or (words[0].value or "") in SPEAKS_ONLY:
            return None
        for word in words[1:]:
            if word.value is None and (word.kind == "dynamic" or self._may_match_refused(word)):
                return f"what '{word.text}' becomes may be a file that a rule is against"
            if self._place.moves and words[0].value != "cd" and paths_in(word.value or word.prefix):
                return f"where '{word.text}' is, is not certain, and a rule is against some files"
        return None

    def _may_match_refused(self, word: Word) -> bool:
        """Whether one of the files that a pattern matches now is one that a rule is against."""
        if EXPANDS_OTHERWISE.search(word.text):
            return True
        found = glob.iglob(os.path.join(glob.escape(self._place.cwd), word.text), include_hidden=True)
        return any(at >= MOST_MATCHES or self.rule_against(path) for at, path in enumerate(found))

    def why_not_read(self, target: Word) -> str | None:
        """Why a file may not be read; None when it may."""
        path = target.value
        if path is None:
            return "which file is read is not certain"
        if not self._place.moves and self._place.contains(path):
            return None
        if all(self._rule("allow", "read", candidate) for candidate in resolved(path, self._place.cwd)):
            return None
        return f"no rule allows reading '{path}', which may be outside of the workspace"

    def why_not_write(self, target: Word) -> str | None:
        """Why a file may not be written; None when it may."""
        path = target.value
        if path in FREE_TARGETS:
            return None
        if path is None or (self._place.moves and not path.startswith("/")):
            return "which file is written is not certain"
        for candidate in resolved(path, self._place.cwd):
            rule = self._rule("allow", "write", candidate)
            if rule is None:
                return f"no rule allows writing '{path}'"
            if self.holds_rules(candidate):
                return f"'{path}' holds the rules themselves"
            if candidate.startswith("/dev/"):
                return f"'{path}' is a device"
            if LATER_RUN.search(candidate) and any("*" in segment for segment in rule.write or ()):
                return f"'{path}' changes what later commands do"
        return None

    def write_rule(self, path: str) -> Rule | None:
        """The rule by which a file may be written."""
        return self._rule("allow", "write", resolved(path, self._place.cwd)[0])

    def holds_rules(self, path: str) -> bool:
        """Whether a path is, by either of its names, among the files that hold the rules themselves."""
        names = resolved(path, self._place.cwd)
        return any(is_inside(name, own) for name in names for own in self._place.protected)

    def why_outside(self, words: Sequence[Word]) -> str | None:
        """Why a command may look outside of the workspace; None when it cannot."""
        if (words[0].value or "") in SPEAKS_ONLY:
            return None
        if self._place.leaves:
            return "it may run outside of the workspace"
        for word in words[1:]:
            if self._stays_inside(word):
                continue
            if word.value is None and word.kind == "dynamic":
                return f"what '{word.text}' becomes may be outside of the workspace"
            if word.prefix.startswith("--files"):
                return f"'{word.text}' names files that are not to be seen here"
            for path in paths_in(word.value if word.value is not None else word.text):
                if (self._place.moves and ".." in path) or not self._place.contains(path):
                    return f"'{word.text}' is outside of the workspace"
        return None

    def _stays_inside(self, word: Word) -> bool:
        """The output of a command in the place of a file, or a loop's variable for files of the workspace."""
        if word.kind != "dynamic" or word.value is not None:
            return False
        if word.text.startswith("<(") and word.text.endswith(")"):
            return True
        variable = LOOP_VARIABLE.fullmatch(word.text)
        return variable is not None and (variable[1] or variable[2]) in self._place.loop_names

    def why_changes_later(self, words: Sequence[Word]) -> str | None:
        """Why a command that writes may change what later ones do."""
        for word in words[1:]:
            for candidate in (*resolved(word.value or word.prefix, self._place.cwd), word.text):
                if LATER_RUN.search(candidate) or any(is_inside(candidate, own) for own in self._place.protected):
                    return f"'{word.text}' changes what later commands do"
        return None

    def _rule(self, decision: Decision, access: Access, path: str) -> Rule | None:
        return self._book.file(decision, access, path, self._place.workspace, self._tool)


def paths_in(text: str) -> list[str]:
    """What in an argument may be a path: all of it, or the value of an option."""
    if not text.startswith("-"):
        return [text]
    glued = text.partition("=")[2] if text.startswith("--") else text[2:]
    return [glued] if glued else []
