"""awk, sed, jq and yq: the script that they are given is read, for some of its words run commands or write files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from toolyard.permissions.programs.options import IN_PLACE, WRITES, Concern, Options, uncertain_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.file_access import WorkingFolder
    from toolyard.permissions.programs.options import Guard


AWK = Options(
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


def guard_awk(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
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
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
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


SED = Options(
    flags="""
        -nErsuz quiet silent debug posix regexp-extended separate sandbox unbuffered null-data zero-terminated help
        version follow-symlinks
    """,
    values="-el expression line-length",
    harms={"-i in-place": IN_PLACE, "-f file": "takes its script from a file"},
    complete=True,
)


def guard_sed(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """Every script is read; its input files do no harm."""
    given = SED.scan(words[1:])
    yield from given.concerns
    scripts = given.values("e", "expression") or [word.value for word in given.operands[:1]]
    for script in scripts:
        if script is None:
            yield Concern(message="the script of sed is not certain")
        elif why := sed_concern(script):
            yield Concern(message=why)


class SedScript:
    """Goes through a script of sed, command by command; anything unusual is a concern."""

    PLAIN = frozenset("=dDgGhHlnNpPxzF")
    ADDRESS = r"\s*(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)"
    LABEL = r"\s*\w*\s*(?=[;}\n]|\Z)"
    END = r"[ \t]*(?:[;\n]|(?=\})|(?=#)|\Z)"
    FLAGS = r"[gpiImM0-9]*"
    FORBIDDEN: ClassVar = {"e": "runs a command", **dict.fromkeys("wW", WRITES), **dict.fromkeys("rR", "reads a file")}

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def run(self) -> str | None:
        """Why the script may do more than print; None when it does not."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\n;{}":
                self.at += 1
            if self.at >= len(self.text):
                return None
            if why := self.command():
                return why

    def command(self) -> str | None:
        if not self.addresses():
            return "an address of sed that is not understood"
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char == "#":
            self.take(r"[^\n]*")
            return None
        if char == ":":
            is_label = self.take(r"[ \t]*\w+") and self.take(self.END)
            return None if is_label else "a label of sed that is not understood"
        if char == "{":
            return None
        if char in "sy":
            return self.substitution(char)
        if char in "qQlL" or char in self.PLAIN:
            self.take(r"\s*\d*")
            return None if char and self.take(self.END) else f"'{char}' of sed with more behind it"
        if char in "btT":
            return None if self.take(self.LABEL) else "a label of sed that is not understood"
        if char in "aic" and char:
            return None if self.take(r"(?s)(?:[^\n\\]|\\.)*(?:\n|\Z)") else "text of sed without an end"
        return f"'{char}' of sed {self.FORBIDDEN.get(char, 'is not understood')}"

    def addresses(self) -> bool:
        for _ in range(2):
            if not self.address():
                return False
            if not self.take(r"\s*,"):
                break
        self.take(r"[\s!]*")
        return True

    def address(self) -> bool:
        self.take(r"[ \t]*")
        if self.take(self.ADDRESS):
            return True
        delimiter = "/" if self.text[self.at : self.at + 1] == "/" else ""
        if self.text[self.at : self.at + 1] == "\\":
            self.at += 1
            delimiter = self.text[self.at : self.at + 1]
        if not delimiter:
            return True
        self.at += 1
        found = self.until(delimiter)
        self.take(r"[IM]*")
        return found

    def substitution(self, char: str) -> str | None:
        delimiter = self.text[self.at : self.at + 1]
        self.at += 1
        if delimiter in ("", "\\", "\n") or not self.until(delimiter) or not self.until(delimiter):
            return f"'{char}' of sed without an end"
        if char == "s":
            self.take(self.FLAGS)
        if self.take(self.END):
            return None
        return "a flag of sed that runs a command or writes a file"

    def until(self, delimiter: str) -> bool:
        """Go behind the next delimiter that is not escaped."""
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 2 if char == "\\" else 1
            if char == delimiter:
                return True
        return False

    def take(self, pattern: str) -> bool:
        """Go behind what fits a pattern; whether there was any."""
        match = re.compile(pattern).match(self.text, self.at)
        if match:
            self.at = match.end()
        return bool(match)


def sed_concern(script: str) -> str | None:
    return SedScript(script).run()


JQ = Options(
    flags="""
        -nrjaceMCSsRhV null-input raw-output raw-output0 join-output ascii-output compact-output exit-status
        monochrome-output color-output sort-keys slurp raw-input tab unbuffered stream stream-errors seq help version
        args jsonargs
    """,
    values="indent",
    harms={"-f from-file": "takes its program from a file", "-L library-path": "loads other code"},
)
JQ_WORDS = re.compile(r"\b(?:env|import|include)\b|\$ENV|\$__loc__")
JQ_PAIRS = frozenset({"--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile"})


def guard_jq(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """The program is looked over; the pairs of names and values are taken out first."""
    rest: list[Word] = []
    at = 1
    while at < len(words):
        if words[at].value in JQ_PAIRS:
            at += 3
        else:
            rest.append(words[at])
            at += 1
    given = JQ.scan(rest)
    yield from given.concerns
    for operand in given.operands[:1]:
        if operand.value is None:
            yield Concern(message="the program of jq is not certain")
        elif JQ_WORDS.search(operand.value):
            yield Concern(message="jq reads the environment or other code")


def guard_yq(words: Sequence[Word], _folder: WorkingFolder) -> Iterator[Concern]:
    """The same for YAML, in either of the programs of that name."""
    for word in words[1:]:
        if word.value is None and word.may_be_option:
            yield uncertain_option(word)
        elif re.match(r"-[a-zA-Z]*i|--in|--from|-f|-L|--split|-s", word.value or ""):
            yield Concern(message=f"'{word.text}' changes a file, or takes the program from one")
        elif re.search(r"\b(?:env|strenv|envsubst|load\w*|system|import|include)\b|\$ENV", word.value or ""):
            yield Concern(message="yq reads the environment or other files")


SCRIPT_GUARDS: dict[str, Guard] = {
    "sed gsed": guard_sed,
    "awk gawk mawk nawk original-awk bwk goawk": guard_awk,
    "jq gojq jaq": guard_jq,
    "yq": guard_yq,
}
