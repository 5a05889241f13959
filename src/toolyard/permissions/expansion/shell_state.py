"""What the lines that ran in a live shell left there, as far as it changes what later lines mean."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.session.handover import is_carried
from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.reading import Assignment, Loop, SimpleCommand
from toolyard.permissions.expansion.variable_names import is_harmless, is_own_variable, obeyed_by
from toolyard.permissions.programs.categories import names, program_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.bash.syntax.reading import Reading
    from toolyard.bash.syntax.words import Word


BUILTINS = names("""
    : [ break cd continue dirs echo exit false jobs kill logout popd printf pushd pwd read return shift test times true
    type ulimit umask wait
""")
"""Commands that bash does itself, so that no folder of PATH has a say."""
CHANGES_WORDS = names("IFS CDPATH GLOBIGNORE")
"""Variables that only bash itself looks at, when it expands words."""
OBEYED_BY_BASH = re.compile(r"PROMPT_COMMAND|PS4|SHELLOPTS|POSIXLY_CORRECT|BASH(?!_VERSION|PID).*|EXECIGNORE")
KEEPS_MEANINGS = names(
    "e u x v h m b C E T n errexit nounset xtrace verbose pipefail noclobber errtrace functrace monitor notify"
)
"""Options of `set` after which every command means what it did before."""
GLOB_OPTIONS = names(
    "globstar nullglob dotglob failglob nocaseglob extglob globskipdots globasciiranges nocasematch noglob f"
)
OTHER_OPTIONS = names(
    "checkwinsize cmdhist histappend lithist inherit_errexit lastpipe checkjobs huponexit expand_aliases"
)
ATTRIBUTES = re.compile(r"-[a-zA-Z]*[inlurA][a-zA-Z]*")
UNREAD = names("syntax misread unreadable too_long too_deep keyword hidden here_document no_command")
"""Doubts with which a line may do anything to its shell."""
SUBSCRIPT = re.compile(r"(\w+)\[(.*?)\]\+?=", re.DOTALL)
PLAIN = re.compile(r"['\"]?([\w.+-]+)['\"]?", re.ASCII)
UNSET = re.compile(r"\bunset\s+([^;&|\n]*)")
NAME = r"[^\s;&|<>(){}$`'\"\\=]++"
FUNCTION = re.compile(rf"(?:^|[\s;&|({{])(?:function\s++({NAME})|({NAME})\s*+\(\s*+\))")


class ShellFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the shell that a line will run in; the default is one that was just started."""

    unknown_since: str = ""
    """The line after which any word may mean anything."""
    changed: frozenset[str] = frozenset()
    """Commands with another meaning: functions, aliases, programs that bash was told to find elsewhere."""
    odd_variables: frozenset[str] = frozenset()
    """Variables with attributes, which do not hold what is assigned to them, or evaluate it."""
    variables: frozenset[str] = frozenset()
    """Variables with another value that programs obey."""
    path: tuple[str, ...] | None = ()
    """Folders that are searched for programs before the usual ones; None when they are not known."""
    globs_oddly: bool = False
    """Whether patterns match otherwise than they do at first."""

    @property
    def splits_oddly(self) -> bool:
        return "IFS" in self.variables

    @property
    def finds_folders_elsewhere(self) -> bool:
        return "CDPATH" in self.variables

    def why_changed(self, words: Sequence[Word]) -> str | None:
        """Why a command may not be what its name says."""
        name = words[0].value
        if self == FRESH or name is None:
            return None
        if self.unknown_since:
            line = shortened(self.unknown_since)
            return f"'{line}' ran in this session, and since then no word is certain until a restart"
        if name in self.changed:
            return f"an earlier command gave '{name}' another meaning in this session"
        if any(OBEYED_BY_BASH.fullmatch(variable) for variable in self.variables):
            return "an earlier command set a variable in this session that bash itself obeys"
        if name in BUILTINS:
            return None
        return self._why_other_program(name)

    def _why_other_program(self, name: str) -> str | None:
        if self.path is None:
            return "an earlier command changed in this session where programs are found"
        if any(os.path.lexists(os.path.join(folder, name)) for folder in self.path):
            return f"since an earlier command, '{name}' is found elsewhere in this session"
        for variable in sorted(self.variables - CHANGES_WORDS):
            programs = obeyed_by(variable)
            if programs is None or program_name(name) in programs:
                return f"an earlier command set {variable} in this session, which '{name}' may obey"
        return None


FRESH = ShellFacts()


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:39] + "…"


class ShellStates:
    """The facts about every live shell."""

    def __init__(self) -> None:
        self._shells: dict[str, ShellFacts] = {}

    def of(self, shell: str) -> ShellFacts:
        return self._shells.get(shell, FRESH)

    def learn(self, shell: str, text: str, *, elsewhere: bool = False, less: bool = False) -> None:
        """Note what a line leaves behind that is about to run, here or in a second shell that goes on with the state.

        Of what runs there only the folder, options and variables come back that no program obeys; where it may do less
        than here, nothing that counts.
        """
        if less:
            return
        before = self.of(shell)
        after = facts_after(before, read_line(text))
        if elsewhere:
            after = replace(
                before,
                variables=before.variables | {name for name in after.variables if is_carried(name.encode())},
                odd_variables=before.odd_variables | after.odd_variables,
                globs_oddly=before.globs_oddly or after.globs_oddly or bool(after.unknown_since),
            )
        if after is not before:
            self._shells[shell] = after

    def forget(self, shell: str) -> None:
        """The shell was started anew."""
        self._shells.pop(shell, None)

    def forget_all_of(self, beginning: str) -> None:
        """The shells whose names begin so are gone."""
        self._shells = {shell: facts for shell, facts in self._shells.items() if not shell.startswith(beginning)}


def facts_after(before: ShellFacts, reading: Reading) -> ShellFacts:
    """What is known of a shell after a line; when the line cannot be followed, nothing any more."""
    if before.unknown_since:
        return before
    learning = Learning(before)
    try:
        learning.line(reading)
    except Unfollowed:
        return ShellFacts(unknown_since=reading.text)
    return learning.facts()


class Unfollowed(Exception):
    """What a line does to its shell cannot be known."""


class Learning:
    """Collects what one line changes."""

    def __init__(self, before: ShellFacts) -> None:
        self._before = before
        self._changed, self._odd = set(before.changed), set(before.odd_variables)
        self._variables, self._path = set(before.variables), before.path
        self._globs_oddly = before.globs_oddly

    def facts(self) -> ShellFacts:
        after = ShellFacts(
            changed=frozenset(self._changed),
            odd_variables=frozenset(self._odd),
            variables=frozenset(self._variables),
            path=self._path,
            globs_oddly=self._globs_oddly,
        )
        return self._before if after == self._before else after

    def line(self, reading: Reading) -> None:
        if any(doubt.code in UNREAD for doubt in reading.doubts):
            raise Unfollowed
        if reading.doubts:
            self._unset(reading.text)
            self._changed.update(found[1] or found[2] for found in FUNCTION.finditer(reading.text))
        self._changed.update(reading.defines)
        for part in reading.parts:
            match part:
                case SimpleCommand() if not part.forked:
                    self._command(part)
                case Assignment() if part.alone:
                    self._assignment(part)
                case Loop() if part.name is not None:
                    self._assigned(part.name, None)

    def _command(self, part: SimpleCommand) -> None:
        words = part.words
        if not words or part.name is None:
            raise Unfollowed
        learn = LEARNERS.get(program_name(part.name) if part.name != "." else ".")
        if learn is not None:
            learn(self, words)

    def _assignment(self, part: Assignment) -> None:
        if part.name is not None:
            self._assigned(part.name, part.value if part.elements is None else None, is_array=part.elements is not None)
            return
        found = SUBSCRIPT.match(part.text)
        if found is None:
            raise Unfollowed
        if found[1] in ("BASH_ALIASES", "BASH_CMDS"):
            self._changed.add(plain(found[2]))
        elif not is_own_variable(found[1]):
            raise Unfollowed

    def _assigned(self, name: str, value: Word | None, *, exported: bool = False, is_array: bool = False) -> None:
        if name == "PATH":
            self._path = self._path_after(value)
        elif name == "IFS" and value is not None and value.value in (" \t\n", "\n\t "):
            self._variables.discard("IFS")
        elif not is_own_variable(name, exported=exported) and (is_array or not is_harmless(name, certain_text(value))):
            self._variables.add(name)

    def _path_after(self, value: Word | None) -> tuple[str, ...] | None:
        """The folders before `$PATH`, when that is all that was changed."""
        if value is None or self._path is None:
            return None
        text = re.sub(r"\$PATH\b|\$\{PATH\}", "\0", value.text.strip("\"'"))
        folders = [folder for folder in text.split(":") if folder != "\0"]
        is_plain = text.count("\0") == 1 and not re.search(r"[$`~*?\[\\{'\"]", text)
        if not is_plain or not all(os.path.isabs(folder) for folder in folders):
            return None
        return (*self._path, *folders)

    def _unset(self, text: str) -> None:
        """`unset NAME`: what is not there any more may be as bad as what is there instead."""
        for found in UNSET.finditer(text):
            given = found[1].split()
            for name in given:
                if "-f" in given:
                    self._changed.discard(name)
                elif re.fullmatch(r"[A-Za-z_]\w*", name):
                    self._unset_variable(name)
                elif not name.startswith("-"):
                    raise Unfollowed

    def _unset_variable(self, name: str) -> None:
        if name == "IFS":
            self._variables.discard(name)
        elif name == "PATH":
            self._path = None
        elif not is_own_variable(name):
            self._variables.add(name)

    def anything(self, _words: Sequence[Word]) -> None:
        raise Unfollowed

    def trap(self, words: Sequence[Word]) -> None:
        if len(words) > 1 and words[1].value not in ("-", "-l", "-p", "--help"):
            raise Unfollowed

    def alias(self, words: Sequence[Word]) -> None:
        for word in words[1:]:
            if not word.value and "=" not in word.prefix:
                raise Unfollowed
            name, _, _ = (word.value or word.prefix).partition("=")
            self._changed.add(name)

    def unalias(self, words: Sequence[Word]) -> None:
        self._changed.difference_update(word.value for word in words[1:] if word.value)

    def enable(self, words: Sequence[Word]) -> None:
        values = certain_values(words)
        if any(value.startswith("-") and value not in ("-n", "-a", "-p", "-s") for value in values):
            raise Unfollowed
        operands = [value for value in values if not value.startswith("-")]
        self._changed.update(operands) if "-n" in values else self._changed.difference_update(operands)

    def hash(self, words: Sequence[Word]) -> None:
        values = certain_values(words)
        if any(value.startswith("-") and "p" in value for value in values):
            self._changed.update(value for value in values if not value.startswith("-"))

    def shopt(self, words: Sequence[Word]) -> None:
        for value in certain_values(words):
            if value.startswith("-") and set(value[1:]) <= set("suqpo"):
                continue
            if value in GLOB_OPTIONS:
                self._globs_oddly = True
            elif value not in OTHER_OPTIONS and value not in KEEPS_MEANINGS:
                raise Unfollowed

    def set(self, words: Sequence[Word]) -> None:
        values = certain_values(words)
        while values and values[0] not in ("-", "--") and values[0].startswith(("-", "+")):
            for letter in values.pop(0)[1:]:
                option = (values.pop(0) if values else "pipefail") if letter == "o" else letter
                if option in GLOB_OPTIONS:
                    self._globs_oddly = True
                elif option not in KEEPS_MEANINGS:
                    raise Unfollowed

    def declare(self, words: Sequence[Word]) -> None:
        is_odd = words[0].value == "readonly" or any(ATTRIBUTES.fullmatch(word.value or "") for word in words[1:])
        for word in words[1:]:
            name, equals, text = (word.value or word.prefix).partition("=")
            if name.startswith(("-", "+")):
                continue
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise Unfollowed
            if is_odd:
                self._odd.add(name)
            if equals or word.value is None:
                value = replace(word, value=text if word.value is not None else None, text=word.text.partition("=")[2])
                self._assigned(name, value, exported=True)
            elif not is_own_variable(name, exported=True):
                self._variables.add(name)

    def reads(self, words: Sequence[Word]) -> None:
        """`read NAME`, `mapfile NAME`, `printf -v NAME`, `getopts … NAME`."""
        if words[0].value == "printf" and not (len(words) > 1 and words[1].may_be_option):
            return
        for word in words[1:]:
            if word.value is None:
                raise Unfollowed
            if re.fullmatch(r"[A-Za-z_]\w*", word.value):
                self._assigned(word.value, None) if word.value != "PATH" else self.anything(words)


def certain_values(words: Sequence[Word]) -> list[str]:
    if any(word.value is None for word in words[1:]):
        raise Unfollowed
    return [word.value or "" for word in words[1:]]


def certain_text(value: Word | None) -> str | None:
    return "" if value is None else value.value


def plain(subscript: str) -> str:
    """A subscript that is a plain name."""
    match = PLAIN.fullmatch(subscript)
    if match is None:
        raise Unfollowed
    return match[1]


LEARNERS: dict[str, Callable[[Learning, Sequence[Word]], None]] = {
    **dict.fromkeys(("source", ".", "eval", "fc", "bind", "coproc"), Learning.anything),
    **dict.fromkeys(("declare", "typeset", "local", "readonly", "export"), Learning.declare),
    **dict.fromkeys(("read", "mapfile", "readarray", "printf", "getopts", "wait"), Learning.reads),
    "trap": Learning.trap,
    "alias": Learning.alias,
    "unalias": Learning.unalias,
    "enable": Learning.enable,
    "hash": Learning.hash,
    "shopt": Learning.shopt,
    "set": Learning.set,
}
