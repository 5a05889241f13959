"""What is said to bash on its private control channel, and how its answers on the status channel are read.

Nothing said here needs a command that a user could have replaced by a function, but for `.` itself: the status record
is a redirection that cannot succeed, from a name that holds what we want to know, and bash's own words for that are the
record. It costs one write, leaves `$?` and the options as they are and cannot be shadowed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_INLINE = 1000
LONGEST = 16384
"""More than any record: the longest path is 4096 bytes."""
LEAST_NOISE = 20
SPARE = 250
"""A descriptor that hardly anybody uses."""
PLAIN = re.compile(r"[\w./+:@,-][\w./%+:@,-]*(?: +[\w./%+:@,=^-]+)*", re.ASCII)
"""One simple command of plain words, in which nothing is expanded, so that nothing can go wrong before it runs."""
NOT_PLAIN = frozenset({
    ".", "alias", "bg", "builtin", "case", "command", "coproc", "declare", "disown", "do", "done", "elif", "else",
    "enable", "esac", "eval", "exec", "exit", "fg", "fi", "for", "function", "if", "in", "jobs", "logout", "return",
    "select", "set", "shopt", "source", "suspend", "then", "time", "times", "trap", "typeset", "unalias", "until",
    "wait", "while",
})  # fmt: skip
"""Words with which a line is something else, or does something else typed at an interactive shell than in a script."""
BUILTIN = frozenset({
    ":", "cd", "echo", "false", "pwd", "shift", "test", "true", "umask", "unset",
})  # fmt: skip
"""What bash does by itself, starting nothing, reading nothing, and printing less than a pipe holds."""
HAS_NO_ERRORS = frozenset({":", "false", "true"})
"""Commands that have nothing to say, so that nobody has to say where."""
DEFINES = re.compile(
    r"\(\s*\)|\b(?:function|source|eval|alias|declare|typeset|readonly|enable|trap|PROMPT_COMMAND)\b|(?:^|[\s;&|({])\.\s"
)
"""What can define a function or an alias, by which a plain word comes to mean anything, or make bash print more."""
LISTS_TRAPS = re.compile(r"\btrap\s*(?:$|[;&|)>\n]|-p)")
SETS_EXIT_TRAP = re.compile(r"\btrap\b.*\b(?:EXIT|0)\s*(?:$|[;&|)\n])", re.IGNORECASE | re.DOTALL)
HIDES_MUCH = re.compile(
    r"\b(?:trap|source|eval|enable|declare|typeset|function|builtin|command)\b|(?:^|[\s;&|({])\.\s|\.\s*\("
)
SOURCING = (
    *(b"\\.", b"\\source", b"\\builtin .", b"\\command ."),
    *(b"\\builtin source", b"\\command source"),
)
"""The ways to say the one word that we need."""


class Record(NamedTuple):
    """What bash tells of the end of a command."""

    number: int
    status: int
    flags: str
    """The options that have a letter, as in `$-`."""
    cwd: str
    trouble: str | None = None
    """Why the command could not even be begun: bash could not open one of our channels."""


class Records:
    """Finds records in whatever else an interactive bash writes to its own standard error: prompts, notices, traces."""

    __slots__ = ("_end", "_folder", "_rest", "_start")

    def __init__(self, nonce: str, folder: str) -> None:
        self._rest = b""
        self._folder = folder.encode()
        self._start = f"/-/{nonce} ".encode()
        self._end = f"={nonce}:".encode()

    def feed(self, data: bytes) -> list[Record]:
        """The records that are complete by now; what else came before them is forgotten."""
        if self._rest:
            data = self._rest + data
        found = []
        at = 0
        while (end := data.find(self._end, at)) >= 0:
            start = data.rfind(self._start, at, end)
            if start >= 0 and (record := read_record(data[start + len(self._start) : end])):
                if start - at > LEAST_NOISE and (trouble := self._trouble(data[at:start])):
                    record = record._replace(trouble=trouble)
                found.append(record)
            at = end + len(self._end)
        if data.find(b"/", at) < 0:  # most often bash's words for what the record cannot be read from
            self._rest = b""
        else:
            self._rest = data[max(at, len(data) - LONGEST) :]
        return found

    def _trouble(self, noise: bytes) -> str | None:
        """What bash says of a file of ours that it cannot open."""
        if self._folder not in noise:
            return None
        found = re.search(re.escape(self._folder) + rb"/\w+: ([^\n]+)", noise)
        return found and found[1].decode(errors="replace")


def read_record(data: bytes) -> Record | None:
    """A record as it stands between its two ends; None for something else that happens to look like one."""
    words = data.split(b" ", 3)
    try:
        return Record(int(words[0]), int(words[1]), words[2].decode(), words[3].decode("utf-8", "surrogateescape"))
    except (ValueError, IndexError):
        return None


def why_not(command: str) -> str | None:
    """Why bash could not even be given a command."""
    if "\x00" in command:
        return "a command cannot have a NUL character in it"
    if not command.isascii():
        try:
            command.encode("utf-8")
        except UnicodeEncodeError as error:
            return f"the command is not text: {error.reason} at {error.start}"
    return None


def quoted(text: str | bytes) -> bytes:
    """A word that bash takes for exactly this text."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return b"'" + data.replace(b"'", b"'\\''") + b"'"


def plain_word(text: str) -> str | None:
    """The first word of one simple command that means the same typed as in a script, as long as its words do."""
    if len(text) > MOST_INLINE or PLAIN.fullmatch(text) is None:
        return None
    word = text.partition(" ")[0]
    return None if word in NOT_PLAIN else word


def is_builtin(text: str) -> bool:
    """Whether a text is one command that bash runs by itself, starting nothing and reading nothing."""
    return plain_word(text) in BUILTIN


def may_define(text: str) -> bool:
    """Whether a text may change what words mean to the shell."""
    return DEFINES.search(text) is not None


def sets_exit_trap(text: str) -> bool:
    """Whether a text may set a trap that runs when the shell ends."""
    return "trap" in text and SETS_EXIT_TRAP.search(text) is not None


def lists_traps(text: str) -> bool:
    """Whether a text lists traps, and must not find ours among them."""
    return "trap" in text and LISTS_TRAPS.search(text) is not None


def hides_much(text: str) -> bool:
    """Whether a text may have done more than it says: set a trap in the place of ours, taken a word from us."""
    return HIDES_MUCH.search(text) is not None


def run_line(source: bytes, *, stdin: bytes, output: bytes) -> bytes:
    """Run something with the streams of a command."""
    return b"%b <%b &>%b\n" % (source, stdin, output)


def run_lines_to_the_end(source: bytes, *, stdin: bytes, output: bytes, ask: bytes) -> bytes:
    """The same for a shell that may end with a trap of the user's, which prints where the shell itself does by then.

    An interrupt takes the rest of the line away; what follows does it then, and else fails for want of the descriptor.
    """
    ask = ask.strip().replace(b"((1))<", b"((1)) 2>&%d <" % SPARE, 1)
    back = b"exec 2>&%d %d>&- >/dev/null||((1))" % (SPARE, SPARE)
    return b"exec %d>&2 &>%b; %b <%b; %b; %b\n%b\n%b\n" % (SPARE, output, source, stdin, ask, back, ask, back)


def record_line(nonce: bytes, number: int, what: bytes) -> bytes:
    """Ask for a record of something, without a word; `set -e` and the ERR trap let what is left of `||` pass."""
    return b'((1))<"/-/%b %d %b $- ${PWD-}=%b:"||((1))\n' % (nonce, number, what, nonce)
