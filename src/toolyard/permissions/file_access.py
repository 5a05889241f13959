"""Where a line runs, and which files it may read and write, as far as redirections and arguments say."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from functools import cached_property
from itertools import islice
from os.path import join
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.words import literal_word
from toolyard.files.inside import is_inside
from toolyard.permissions.expansion.shell_state import FRESH, ShellFacts
from toolyard.permissions.paths import OwnFolders, entries_of, is_of_process, is_public, resolved
from toolyard.permissions.programs.categories import SPEAKS_ONLY, names
from toolyard.permissions.programs.git_options import GLOBALS
from toolyard.permissions.programs.operands import any_operands, listed_by_bash, operands_of
from toolyard.permissions.repositories.inspection import why_not_obeyed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.core.events import Decision
    from toolyard.permissions.expansion.line import ExpandedLine
    from toolyard.permissions.programs.operands import Operands
    from toolyard.permissions.programs.options import Operand
    from toolyard.permissions.rules import Access, Rule, RuleBook


AGAINST: tuple[Decision, ...] = ("deny", "ask")
ACCESSES: tuple[Access, ...] = ("read", "write")
FREE_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})
"""Names to which anything may be written."""
NETWORK_FILE = re.compile(r"/+dev/+(?:tcp|udp)/")
LATER_RUN = re.compile(
    r"(?:^|/)(?:\.git(?:/.*)?|\.gitmodules|\.gitconfig|\.config/git/.*|\.bashrc"
    r"|\.bash_profile|\.bash_login|\.bash_logout|\.bash_aliases|\.profile|\.zshrc|\.zshenv|\.zprofile|\.zlogin|\.inputrc|\.envrc"
    r"|\.ssh|\.ssh/.*|\.netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|\.vscode/.*|\.idea/.*|\.mcp\.json|toolyard\.json|\.toolyard(?:/.*)?)$"
)
"""Files by which later commands run something else, or that open other doors: no rule for a folder covers them."""
PASS_TEXT_ON = names("""
    cat head tail wc grep egrep fgrep sort uniq cut tr sed awk jq nl tac rev fold fmt paste column expand unexpand
    base64 md5sum sha1sum sha256sum echo printf true false : seq
""")
"""Programs that, given no file, do the same wherever they run."""
MAY_DESCEND = re.compile(r"-\w*[rRd]|--[rd]")
"""Options by which a program that reads its input by default looks for files instead."""
ENVIRONMENT = re.compile(r"(?i)env")
EXPANDS_OTHERWISE = re.compile(r"[{\\'\"]|\*\*|\[[!^:]")
"""What in a pattern is more than `*`, `?` and letters to choose from."""
MOST_MATCHES = 1000
PLAIN_OPTION = re.compile(r"-[^-]?|--[^=]*=?")
"""An option with no value in the same word."""
COPIES = names("cp gcp")
MOVES_LINKS = COPIES | names("mv gmv")
MOST_FOLLOWED = 10_000
"""How many files are looked at to see whether a link among them leads out of the workspace."""


class CallSite(msgspec.Struct, frozen=True, kw_only=True):
    """The tool that is called, and where its call would run."""

    tool: str
    cwd: str
    workspace: str
    protected: tuple[str, ...] = ()
    """Files that hold the rules themselves."""
    own: OwnFolders = OwnFolders()
    """Its own temporary files."""
    shell: ShellFacts = FRESH
    """What earlier lines left in the shell that the line would run in."""

    def noting_own(self) -> CallSite:
        """The same, to find out whether a line names temporary files of its own."""
        return replace(self, own=replace(self.own, held=[])) if self.own.folders else self

    def heeding_links(self) -> CallSite:
        """The same where a link among temporary files is none of them."""
        return replace(self, own=replace(self.own, held=[], heeds_links=True))

    def without_own(self) -> CallSite:
        """The same where temporary files are those of everybody."""
        return replace(self, own=OwnFolders())


OUTSIDE, MAY_BE_OUTSIDE = "is outside of the workspace", "may be outside of the workspace"
"""How it is told of a file that is spelled out, and of one that is not."""
NOT_READ, NOT_CERTAIN = "which file is read is not certain", "which file is meant is not certain"


class WorkingFolder:
    """The folder that a command of a line runs in, as far as that is certain."""

    def __init__(self, line: ExpandedLine, site: CallSite, start: int = 0) -> None:
        self.line = line
        self.workspace = os.path.normpath(site.workspace)
        self.protected = site.protected
        self._site = site
        self._where = line.where(start)
        self.folders = self._where.folders
        """The folders that it may be."""
        self.cwd = self.folders[0]

    def at(self, start: int) -> WorkingFolder:
        """The folder at another place of the line."""
        return self if self.line.where(start) is self._where else WorkingFolder(self.line, self._site, start)

    def site_here(self) -> CallSite:
        """The call, as if it began in this folder."""
        return replace(self._site, cwd=self.cwd)

    @property
    def moves(self) -> bool:
        """Whether it may be more than one folder."""
        return not self._where.certain or len(self._where.folders) > 1

    @cached_property
    def leaves(self) -> bool:
        """Whether the command may run outside of the workspace; whatever is not certain counts as leaving."""
        if self._where.folders == (self.workspace,):
            return not self._where.certain
        return not self._where.certain or not self.contains(".") or self.is_own(".")

    def is_own(self, path: str) -> bool:
        """Whether a path is one for temporary files of its own."""
        own = self.line.own
        return bool(own.folders) and self._where.certain and all(own.hold(join(each, path)) for each in self.folders)

    def contains(self, path: str) -> bool:
        """Whether a path, as it is written and where it leads, is inside the workspace, or a temporary file."""
        return all(self.line.contains(path, folder) for folder in self._where.folders)


class FileAccess:
    """What the rules say of the files that one line names."""

    def __init__(self, book: RuleBook, tool: str, folder: WorkingFolder) -> None:
        self._book, self._tool, self._folder = book, tool, folder
        self._known: tuple[Sequence[Word], Operands | None] | None = None

    def rule_against(self, path: str) -> Rule | None:
        """A rule that denies a file, or wants to be asked about it, by either of its names."""
        if not self._book.refuses_files:
            return None
        for decision in AGAINST:
            for candidate in resolved(path, self._folder.cwd):
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
            if self._folder.moves and words[0].value != "cd" and not PLAIN_OPTION.fullmatch(word.prefix):
                return f"where '{word.text}' is, is not certain, and a rule is against some files"
        return None

    def _may_match_refused(self, word: Word) -> bool:
        """Whether one of the files that a pattern matches now is one that a rule is against."""
        if EXPANDS_OTHERWISE.search(word.text):
            return True
        found = glob.iglob(os.path.join(glob.escape(self._folder.cwd), word.text), include_hidden=True)
        return any(at >= MOST_MATCHES or self.rule_against(path) for at, path in enumerate(found))

    def why_not_read(self, target: Word) -> str | None:
        path = target.value
        if path is None:
            return NOT_READ
        if not self._folder.moves and self._folder.contains(path):
            return None
        if self._book.is_kept and is_public(path):
            return None
        if all(self._rule("allow", "read", candidate) for candidate in resolved(path, self._folder.cwd)):
            return None
        shown = target.text if target.expanded else path  # whose name is not told
        return f"no rule allows reading '{shown}', which may be outside of the workspace"

    def why_not_write(self, target: Word) -> str | None:
        path, shown = target.value, target.text if target.expanded else target.value
        if path in FREE_TARGETS:
            return None
        if path is not None and self._book.confines and self._folder.is_own(path):
            return None
        if path is None or (self._folder.moves and not path.startswith("/")):
            return "which file is written is not certain"
        for candidate in resolved(path, self._folder.cwd):
            rule = self._rule("allow", "write", candidate)
            if rule is None:
                return f"no rule allows writing '{shown}'"
            if self.holds_rules(candidate):
                return f"'{shown}' holds the rules themselves"
            if candidate.startswith("/dev/"):
                return f"'{shown}' is a device"
            if LATER_RUN.search(candidate) and any("*" in segment for segment in rule.write or ()):
                return f"'{shown}' changes what later commands do"
        return None

    def why_not_changed(self, words: Sequence[Word]) -> str | None:
        """Why a command may not change all files that it is given, in their place."""
        given = self._operands(words)
        if given is None or given.follows:
            return "which files are changed is not certain"
        named = (path.word for path in given.paths if path.word in words)
        changed = [each for word in named for each in (map(literal_word, word.texts) if word.texts else (word,))]
        return next((why for word in changed if (why := self.why_not_write(word))), None)

    def why_of_process(self, words: Sequence[Word]) -> str | None:
        """Why a command may look into a process, by the folder of one: its variables, or the files that it has open."""
        for word in words[1:]:
            text = word.value if word.value is not None else word.prefix
            if "proc" not in text and not self._folder.cwd.startswith("/proc"):
                continue
            joined = os.path.normpath(os.path.join(self._folder.cwd, text.partition("=")[2] or text))
            is_open = word.value is None and (joined == "/proc" or joined.startswith("/proc/"))
            if is_open or is_of_process(joined):
                return f"'{word.text}' may hold the secrets of a process, or lead around other paths"
        return None

    def write_rule(self, path: str) -> Rule | None:
        return self._rule("allow", "write", resolved(path, self._folder.cwd)[0])

    def holds_rules(self, path: str) -> bool:
        """Whether a path is, by either of its names, among the files that hold the rules themselves."""
        names = resolved(path, self._folder.cwd)
        return any(is_inside(name, own) for name in names for own in self._folder.protected)

    def why_outside(self, words: Sequence[Word], known: Operands | None = None) -> str | None:
        """Why a command may look outside of the workspace; None when it cannot. What is known of it may be given."""
        given = known or self._operands(words) or any_operands(words)
        if given.unknown is not None:
            return f"'{given.unknown.text}' is not known, and so neither which files are meant"
        if given.paths and self._folder.leaves and not self._folder.is_own("."):
            return "it may run outside of the workspace"
        for path in given.paths:
            if why := self._why_path_outside(path) or why_uncertain(path):
                return why
            folder, stars, names = path.text.partition("**")
            is_pattern = path.word.kind == "glob" and bool(stars) and names != "/*"  # which are no links
            if self._folder.is_own(path.text):
                continue
            if (given.follows or is_pattern) and self._leads_out(folder, names.lstrip("/") or "*"):
                return f"a link in '{path.shown}' may lead out of the workspace"
        return None

    def why_listed_outside(self, words: Sequence[Word]) -> str | None:
        """Why patterns among words may tell the names of files outside of the workspace."""
        return next((why for path in listed_by_bash(words) if (why := self._why_path_outside(path))), None)

    def _operands(self, words: Sequence[Word]) -> Operands | None:
        """What is known of a command's files; several ask for it one after the other."""
        if self._known is None or self._known[0] is not words:
            self._known = words, operands_of(words)
        return self._known[1]

    def _why_path_outside(self, path: Operand) -> str | None:
        word = path.word
        is_whole = path.text == word.text
        if word.value is not None and path.text == word.value and self._may_be_read(path):
            return None
        if path.text in FREE_TARGETS or (is_whole and self._stays_inside(word)):
            return None
        if word.texts and path.text.startswith(word.text):
            texts = [text + path.text.removeprefix(word.text) for text in word.texts]
            return None if all(map(self._folder.contains, texts)) else f"'{word.text}' {MAY_BE_OUTSIDE}"
        # Where a pattern spans folders, these are looked through for links.
        is_deep = "**" in word.text or self._folder.is_own(path.text)
        is_pattern = is_whole and glob.has_magic(word.text) and not is_deep
        if word.value is None and (word.kind == "dynamic" or is_pattern):
            return f"what '{word.text}' becomes {MAY_BE_OUTSIDE}"
        # A tilde that bash leaves alone may still be a home folder to the program.
        is_astray = path.text.startswith("~") or (self._folder.moves and ".." in path.text)
        if is_astray or not (self._folder.contains(path.text) or self._may_be_read(path)):
            return f"'{path.shown}' {OUTSIDE}"
        return None

    def _may_be_read(self, path: Operand) -> bool:
        """Whether it is a file of the system that is much the same everywhere; where a sandbox hides what is not."""
        return self._book.is_kept and path.role == "read" and is_public(path.text)

    def why_obeyed(self, names: Sequence[str]) -> str | None:
        """Why a program may do something else here than it is known for: a file of the folder or above it says so."""
        for folder in self._folder.folders:
            place = folder
            while is_inside(place, self._folder.workspace):
                if found := next((name for name in names if says_something(os.path.join(place, name))), None):
                    return f"'{found}' may say what it runs or where it looks"
                place = os.path.dirname(place)
        return None

    def _leads_out(self, path: str, names: str) -> bool:
        """Whether a folder has a link of such a name to somewhere outside, or too many files to see that."""
        for at, entry in enumerate(entries_below(join(self._folder.cwd, path))):
            is_link = entry.is_symlink() and fnmatch.fnmatchcase(entry.name, names)
            if at >= MOST_FOLLOWED or (is_link and not self._folder.contains(entry.path)):
                return True
        return False

    def _stays_inside(self, word: Word) -> bool:
        """The output of a command in the place of a file, or what only becomes names of files of the workspace."""
        if word.value is not None:
            return False
        return word.inside or (word.text.startswith("<(") and word.text.endswith(")"))

    def passes_text_on(self, words: Sequence[Word]) -> bool:
        """Whether a command that is allowed only reads and writes its streams, or changes the folder it runs in."""
        name = words[0].value or ""
        if name not in PASS_TEXT_ON or ENVIRONMENT.search(" ".join(word.text for word in words)):
            return name == "cd"
        given = self._operands(words)
        if given is None or given.unknown is not None:
            return False
        looks_for_files = any(MAY_DESCEND.match(word.prefix) for word in words)
        return not any(path.word in words or looks_for_files for path in given.paths)

    def why_written(self, words: Sequence[Word]) -> str | None:
        """Why a command changes more than temporary files of its own."""
        given = self._operands(words)
        written = [path for path in given.paths if path.role == "write"] if given else []
        changed = next(
            (path for path in written if path.text not in FREE_TARGETS and not self._folder.is_own(path.text)), None
        )
        return f"'{changed.shown}' is no temporary file" if changed else None

    def why_repository(self, words: Sequence[Word]) -> str | None:
        """Why git should not be let into the repository that it would use: what that says may be somebody else's."""
        to = os.path.join(".", *(folder or "" for folder in GLOBALS.scan(words[1:]).values("C")))
        for folder in self._folder.folders:
            if self._folder.line.own.hold(os.path.join(folder, to)):
                return "which repository git would find there is not to be seen"
            if why := why_not_obeyed(os.path.normpath(os.path.join(folder, to)), self._folder.workspace):
                return why
        return None

    def why_changes_later(self, words: Sequence[Word]) -> str | None:
        """Why a command that writes may change what later ones do."""
        given = self._operands(words) or any_operands(words)
        if words[0].value in COPIES and given.follows and (why := self._why_copies(given.paths)):
            return why
        if words[0].value in MOVES_LINKS and (why := self._why_moves(sources_of(words, given.paths))):
            return why
        for path in given.paths:
            if path.role != "write" or self._folder.is_own(path.text):
                continue
            texts = [text + path.text.removeprefix(path.word.text) for text in path.word.texts] or [path.text]
            for candidate in (name for text in texts for name in (*resolved(text, self._folder.cwd), text)):
                if LATER_RUN.search(candidate) or any(is_inside(candidate, own) for own in self._folder.protected):
                    return f"'{path.shown}' changes what later commands do"
        return None

    def _why_copies(self, paths: Sequence[Operand]) -> str | None:
        """Why a copy of folders holds what later commands obey, under names that nobody wrote."""
        for path in paths:
            found = entries_below(join(self._folder.cwd, path.text)) if path.role == "read" else iter(())
            if obeyed := next((each for each in islice(found, MOST_FOLLOWED) if LATER_RUN.search(each.name)), None):
                return f"'{obeyed.name}' in '{path.shown}' changes what later commands do"
        return None

    def _why_moves(self, sources: Sequence[Operand]) -> str | None:
        """Why a link that is moved or copied may lead elsewhere from its new place.

        What else is in the line is judged by the files as they lie there before, and there is nothing at that place.
        """
        for path in sources:
            if any(self._changes_by_moving(top) for top in self._now_at(path)):
                return f"a link in '{path.shown}' may lead out of the workspace from another place"
        return None

    def _changes_by_moving(self, top: str) -> bool:
        """Whether something is or holds a link that leads elsewhere then, or too many files to see that."""
        entries = list(islice(entries_below(top), MOST_FOLLOWED))
        links = [entry.path for entry in entries if entry.is_symlink()]
        is_alike = all(self._leads_same(link, top) for link in links)
        return os.path.islink(top) or len(entries) == MOST_FOLLOWED or not is_alike

    def _now_at(self, path: Operand) -> Iterator[str]:
        """What is there now of the files that an operand may mean."""
        texts = [text + path.text.removeprefix(path.word.text) for text in path.word.texts] or [path.text]
        for folder in self._folder.folders:
            for text in texts:
                is_glob = path.word.value is None and glob.has_magic(text)
                pattern = join(glob.escape(folder), text)
                yield from islice(glob.iglob(pattern), MOST_MATCHES) if is_glob else (join(folder, text),)

    def _leads_same(self, link: str, top: str) -> bool:
        """Whether a link leads into the workspace, wherever that is moved which it is a part of."""
        try:
            target = os.readlink(link)
        except OSError:
            return False
        if os.path.isabs(target):
            return self._folder.contains(target)
        led = os.path.normpath(join(os.path.dirname(link), target))
        return is_inside(led, os.path.normpath(top)) and self._folder.contains(link)

    def _rule(self, decision: Decision, access: Access, path: str) -> Rule | None:
        return self._book.file(decision, access, path, self._folder.workspace, self._tool)


def sources_of(words: Sequence[Word], paths: Sequence[Operand]) -> Sequence[Operand]:
    """What is copied or moved, of all that such a command names."""
    if any(path.role == "read" for path in paths):
        return [path for path in paths if path.role == "read"]
    has_target = any((word.value or word.prefix).startswith(("-t", "--t")) for word in words)
    return paths[1:] if has_target else paths[:-1]


def says_something(path: str) -> bool:
    """Whether there are settings at a path; a sandbox puts empty files where none may be made."""
    if os.path.isdir(path) and not os.path.islink(path):
        return bool(entries_of(path))
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_size > 0


def why_uncertain(path: Operand) -> str | None:
    """Why a file that is written may be one that later commands obey, although nothing names it."""
    word, name = path.word, os.path.basename(path.text)
    if path.role != "write" or word.value is not None or word.texts or word.sample is not None:
        return None
    is_pattern = word.kind == "glob" and glob.has_magic(name) and not name.startswith(".")
    if is_pattern and not fnmatch.fnmatch("toolyard.json", name):
        return None  # no pattern matches a name with a dot in front unless it spells that out
    return f"which file '{path.shown}' is, is not certain"


def entries_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """All that is below a folder, with no link followed."""
    waiting = [folder]
    while waiting:
        for entry in entries_of(waiting.pop()):
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
