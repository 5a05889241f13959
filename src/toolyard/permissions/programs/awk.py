"""awk: a program is gone through token by token; some run programs, some write files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.options import Concern, options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place


AWK = options(
    flags="-bcCghnOrsStV posix traditional sandbox re-interval characters-as-bytes optimize version help",
    values="-Fv field-separator assign",
    harms={
        "-f file exec -E": "takes its program from a file",
        "-ilL include load lint": "loads other code",
        "-W": "is an option that depends on the awk",
        "-oOpdD pretty-print profile dump-variables debug": "writes a file",
        "-e source": "is a further program",
    },
    complete=True,
    stops=True,
)


def guard_awk(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """The program is read; variables and files behind it do no harm."""
    given = AWK.scan(words[1:])
    yield from given.concerns
    if not given.operands:
        yield Concern(message="awk without a program")
    elif given.operands[0].value is None:
        yield Concern(message="the program of awk is not certain")
    elif why := awk_concern(given.operands[0].value):
        yield Concern(message=why)


AWK_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\\\n)
      | (?P<comment>\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<operator>\|\||&&|>=|<=|==|!=|\+\+|--|\*\*=?|[-+*%^]=|>>|[-+*%^!<>|~?:,;(){}\[\]$=&\n])
      | (?P<slash>/)""",
    re.VERBOSE,
)
AWK_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\[^\n]|\[\^?\]?[^\]/\n\\]*\])*/")
EXPECTS_OPERAND = frozenset("(,~!{};\n?:=<>+-*%^$[&|") | {
    *("&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "%=", "^=", "**", "**=", ">>", ""),
    *("return", "print", "printf", "in", "case", "exit", "else", "do", "delete"),
}  # fmt: skip
"""Tokens after which a slash begins a regular expression; after an operand it divides."""
UNCLEAR = frozenset({")", "++", "--", "length"})
"""Tokens after which awks differ."""
AWK_FORBIDDEN = {
    "system": "system runs a command",
    "getline": "getline may run a command",
    "popen": "popen runs a command",
    "include": "@include loads code",
    "load": "@load loads code",
    "extension": "extension loads code",
    "ARGV": "ARGV names other files",
    "ENVIRON": "ENVIRON holds the environment",
}


def awk_concern(program: str) -> str | None:
    """Why a program of awk may do more than print."""
    at, depth, printing = 0, 0, False
    before = ""
    while at < len(program):
        match = AWK_TOKEN.match(program, at)
        if match is None:
            return f"'{program[at]}' of awk is not understood"
        kind, text = match.lastgroup, match[0]
        if kind == "slash" and before in UNCLEAR and "/" in program[at + 1 :]:
            return "a slash of awk that may divide or begin a regular expression"
        if kind == "slash" and before in EXPECTS_OPERAND:
            regex = AWK_REGEX.match(program, at)
            if regex is None:
                return "a regular expression of awk that is not understood"
            at, before = regex.end(), "an operand"
            continue
        at = match.end()
        if kind in ("blank", "comment"):
            continue
        if kind == "word" and text in AWK_FORBIDDEN:
            return AWK_FORBIDDEN[text]
        depth += (text == "(") - (text == ")") if kind == "operator" else 0
        if text == "|" or (printing and depth <= 0 and text in (">", ">>")):
            return "awk writes a file or runs a command"
        if kind == "operator" and text in ";}{":  # a newline ends no statement behind a comma
            printing, depth = False, 0
        elif kind == "word" and text in ("print", "printf"):
            printing, depth = True, 0
        before = "" if kind == "slash" else "an operand" if kind in ("string", "number") else text
    return None
