"""What a command's text alone tells of it: whether bash can be given it, and what it may do to the shell."""

from __future__ import annotations

import re

from toolyard.core.regexes import late_pattern

MOST_PLAIN = 1000
MOST_INLINE = 200
"""Bytes of a text that are sent with the command: bash reads those one by one, and a file is cheaper for more."""
FIRST_KEPT = 10
"""bash keeps descriptors for later from here on."""
MOST_GROUPED = 16000
"""The same for a text that can be sent in no other way; far less than a pipe holds."""
PLAIN = late_pattern(r"[\w./+:@,-][\w./%+:@,-]*(?: +[\w./%+:@,=^-]+)*", re.ASCII)
"""One simple command of plain words, in which nothing is expanded, so that nothing can go wrong before it runs."""
NOT_PLAIN = frozenset({
    ".", "alias", "bg", "builtin", "case", "command", "coproc", "declare", "disown", "do", "done", "elif", "else",
    "enable", "esac", "eval", "exec", "exit", "fg", "fi", "for", "function", "if", "in", "jobs", "logout", "return",
    "select", "set", "shopt", "source", "suspend", "then", "time", "times", "trap", "typeset", "unalias", "until",
    "wait", "while",
})  # fmt: skip
"""First words that make a line something else, or that may end the shell or change what we have installed in it."""
QUIET_BUILTINS = frozenset({
    ":", "cd", "echo", "false", "pwd", "shift", "test", "true", "umask", "unset",
})  # fmt: skip
"""Builtins that start nothing, read nothing, and print less than a pipe holds."""
DEFINES = late_pattern(
    r"\(\s*\)|\b(?:function|source|eval|alias|declare|typeset|readonly|enable|trap|PROMPT_COMMAND)\b|(?:^|[\s;&|({])\.\s"
)
LISTS_TRAPS = late_pattern(r"\btrap\s*(?:$|[;&|)>\n]|-p)")
SETS_EXIT_TRAP = late_pattern(r"\btrap\b.*\b(?:EXIT|0)\s*(?:$|[;&|)\n])", re.IGNORECASE | re.DOTALL)
EXITS = late_pattern(r"\bexit\b(?!\s+(?!1\b)\d+\b)|\b(?:eval|source)\b|(?:^|[\s;&|({])\.\s")
FATAL_MESSAGE = late_pattern(r"^\S.*\bline (\d+): ([^\s:]+): ([^\n]*)\n?\Z", re.MULTILINE)
REPLACES_SHELL = late_pattern(r"\bexec\s+(?!\d*[<>&]|\{\w+\}[<>])\S")
STOPS_RUNNING = late_pattern(r"\bset(?:\s+-[a-zA-Z]+)*\s+-(?:[a-mp-zA-Z]*n[a-zA-Z]*\b|o\s+noexec\b)")
BREAKS_COUNTING = late_pattern(
    r"\bposix\b|POSIXLY_CORRECT|\bLINENO\s*\+?=|\b(?:unset|readonly|declare|typeset|local|export|read|for|printf)\b[^\n;&|]*\bLINENO\b"
)
BRACKETS = late_pattern(r"\\.|'[^']*'|(?<![^\s;])#[^\n]*|[$<>]\(|[()]", re.DOTALL)
"""What opens and closes, and what stands for nothing else; substitutions are also made between double quotes."""
NAMES_HIGH = late_pattern(r"(?<![\w.$/-])[1-9]\d(?=[<>])|(?<=[<>]&)[1-9]\d(?!\d)")
"""A descriptor of two digits that is opened or used: from 10 on bash keeps its own while it runs a text."""
TRACES = late_pattern(r"\bxtrace\b|\bset\b[^\n;&|]*\s-\w*x")
BREAKS_INTEGRATION = late_pattern(
    r"\b(?:trap|source|eval|enable|declare|typeset|function|builtin|command)\b|(?:^|[\s;&|({])\.\s|\.\s*\("
)


def why_not_runnable(command: str) -> str | None:
    """Why bash cannot be given a command at all."""
    if "\x00" in command:
        return "a command cannot have a NUL character in it"
    if not command.isascii():
        try:
            command.encode("utf-8")
        except UnicodeEncodeError as error:
            return f"the command is not text: {error.reason} at {error.start}"
    return None


def plain_word(text: str) -> str | None:
    """The first word of one simple command that means the same typed as in a script; None for any other text."""
    if len(text) > MOST_PLAIN or PLAIN.fullmatch(text) is None:
        return None
    word = text.partition(" ")[0]
    return None if word in NOT_PLAIN else word


def may_define(text: str) -> bool:
    """Whether a text may give a plain word another meaning, by a function or an alias, or make bash print more."""
    return DEFINES.search(text) is not None


def sets_exit_trap(text: str) -> bool:
    return "trap" in text and SETS_EXIT_TRAP.search(text) is not None


def lists_traps(text: str) -> bool:
    """Whether a text lists traps, and must not find ours among them."""
    return "trap" in text and LISTS_TRAPS.search(text) is not None


def may_lose_state(text: str) -> bool:
    """Whether a text may end its shell without the trap that saves its state: with another, or with none."""
    if "trap" in text and (SETS_EXIT_TRAP.search(text) or LISTS_TRAPS.search(text)):
        return True
    return "exec" in text and REPLACES_SHELL.search(text) is not None


def has_open_substitution(text: str) -> bool:
    """Whether `$(` or `<(` has no end. After such a text bash would go on with its own memory broken."""
    if text.count("(") == text.count(")"):
        return False
    opened: list[str] = []
    for found in BRACKETS.finditer(text):
        if (bracket := found[0]) == ")":
            opened = opened[:-1]
        elif bracket.endswith("("):
            opened.append(bracket)
    return any(len(bracket) == 2 for bracket in opened)


def may_stop_running(text: str) -> bool:
    """Whether a text may make bash read commands without running them."""
    return "set" in text and STOPS_RUNNING.search(text) is not None


def may_exit(text: str) -> bool:
    """Whether a text may end its shell on purpose, with status 1."""
    return EXITS.search(text) is not None


def ends_in_what_is_fatal(output: str, text: str) -> bool:
    """Whether the last thing that was printed is bash's complaint of what stops a script, and no `exit` is in its line.

    A child may have complained so, and the shell then have left; most often that is one line.
    """
    found = FATAL_MESSAGE.search(output)
    if found is None:
        return False
    line, name, message = found.groups()
    lines = text.splitlines()
    there = lines[int(line) - 1] if 0 < int(line) <= len(lines) else ""
    is_meant = message == "unbound variable" or re.search(r"\$\{" + re.escape(name) + r":?\?", text) is not None
    return is_meant and re.search(r"\bexit\b", there) is None


def may_break_counting(text: str) -> bool:
    """Whether a text may turn POSIX mode on, or make LINENO something else."""
    return BREAKS_COUNTING.search(text) is not None


def high_descriptors(text: str) -> range:
    """Those that a text may want for itself, up to the highest that it names."""
    return range(FIRST_KEPT, max(map(int, NAMES_HIGH.findall(text)), default=0) + 1)


def may_trace(text: str) -> bool:
    """Whether a text may make bash print what it runs."""
    return TRACES.search(text) is not None


def may_break_integration(text: str) -> bool:
    """Whether a text may replace one of our traps, or redefine the word by which we source files."""
    return BREAKS_INTEGRATION.search(text) is not None


def quoted_in_a_line(text: bytes) -> bytes:
    """A word that bash takes for exactly this text, and that has no newline in it."""
    if b"\n" not in text:
        return quoted(text)
    return b"$'" + text.replace(b"\\", b"\\\\").replace(b"'", b"\\'").replace(b"\n", b"\\n") + b"'"


def quoted(text: str | bytes) -> bytes:
    """A word that bash takes for exactly this text."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return b"'" + data.replace(b"'", b"'\\''") + b"'"
