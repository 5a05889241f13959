"""awk, sed, jq and yq: the script that they are given is read, for some of its words run commands or write files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Literal

from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.options import IN_PLACE, WRITES, Concern, Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.permissions.programs.options import FolderFacts, Given, Guard


def awk_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """The program is read; variables and files behind it do no harm."""
    if not given.operands:
        yield Concern(message="awk without a program")
    elif given.operands[0].value is None:
        yield Concern(message="the program of awk is not certain")
    elif why := awk_concern(given.operands[0].value):
        yield Concern(message=why)


PASSED_ON = re.compile(
    r'\s*"(?:sort|uniq|head|tail|wc|cat|column|tac|nl)(?: -[a-np-zA-NP-Z0-9][a-np-zA-NP-Z0-9.,:]*| \d+)*"'
    r"(?=\s*[;}\n]|\s*$)",
    re.ASCII,
)
"""Commands that what awk prints may pass through: without the name of a file, and the letter before one to write."""
PASSES_ON = "awk passes what it prints on to a command"
AWK = Options(
    flags="-bcCghnOrsStV posix traditional sandbox re-interval characters-as-bytes optimize version help",
    values="-Fv field-separator assign",
    harms={
        "-f= file= exec= -E=": "takes its program from a file",
        "-i= -l= -L? include= load= lint?": "loads other code",
        "-W=": "is an option that depends on the awk",
        "-o? -p? -d? -D? pretty-print? profile? dump-variables? debug?": "writes a file",
        "-e= source=": "is a further program",
    },
    operands="text read*",
    when={"-fEe file exec source": "read*"},
    more=awk_concerns,
    complete=True,
    stops=True,
)
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
    "SYMTAB": "SYMTAB names any variable",
}


def awk_concern(program: str) -> str | None:
    at, depth, printing, passes_on = 0, 0, False, False
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
        if text == "|" and (passed := PASSED_ON.match(program, at)):
            at, passes_on = passed.end(), True
        elif text == "|" or (printing and depth <= 0 and text in (">", ">>")):
            return "awk writes a file or runs a command"
        if kind == "operator" and text in ";}{":  # a newline ends no statement behind a comma
            printing, depth = False, 0
        elif kind == "word" and text in ("print", "printf"):
            printing, depth = True, 0
        before = "" if kind == "slash" else "an operand" if kind in ("string", "number") else text
    return PASSES_ON if passes_on else None


def sed_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """All scripts are one to sed, each behind the other; its input files do no harm."""
    scripts = given.values("e", "expression") or [word.value for word in given.operands[:1]]
    certain = [script for script in scripts if script is not None]
    if len(certain) < len(scripts):
        yield Concern(message="the script of sed is not certain")
    elif why := sed_concern("\n".join(certain)):
        yield Concern(message=why)


SED = Options(
    flags="""
        -nErsuz quiet silent debug posix regexp-extended separate sandbox unbuffered null-data zero-terminated help
        version follow-symlinks binary -b
    """,
    values="-el expression line-length",
    harms={"-i? in-place?": IN_PLACE, "-f= file=": "takes its script from a file"},
    operands="text read*",
    when={"-ef expression file": "read*"},
    more=sed_concerns,
    complete=True,
)


Brackets = Literal["ignored", "literal", "escaped"]
"""Whether brackets hide a delimiter, and what a backslash in them is."""
BRACKETS = {
    "literal": re.compile(r"\[\^?\]?(?:\[([:.=])[^\]\n]*?\1\]|[^\]\n])*\]"),
    "escaped": re.compile(r"\[\^?\]?(?:\[([:.=])[^\]\n]*?\1\]|\\[^\n]|[^\]\n\\])*\]"),
}


class SedScript:
    """Goes through a script of sed, command by command; anything unusual is a concern."""

    PLAIN = frozenset("=dDgGhHlnNpPxzF")
    ADDRESS = r"[ \t]*(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)"
    LABEL = r"[ \t]*\w*[ \t]*(?=[;}\n]|\Z)"
    END = r"[ \t]*(?:[;\n]|(?=\})|(?=#)|\Z)"
    FLAGS = r"[gpiImM0-9]*"
    HARMFUL_FLAG = r"[gpiImM0-9]*[ew]"
    FORBIDDEN: ClassVar = {"e": "runs a command", **dict.fromkeys("wW", WRITES), **dict.fromkeys("rR", "reads a file")}

    def __init__(self, text: str, brackets: Brackets = "ignored") -> None:
        self.text = text
        self.at = 0
        self.brackets = brackets
        self.stopped = False
        """Whether sed ends here with an error, and so does nothing."""

    def run(self) -> str | None:
        """Why the script may do more than print; None when it does not."""
        while not self.stopped:
            while self.at < len(self.text) and self.text[self.at] in " \t\n;{}":
                self.at += 1
            if self.at >= len(self.text):
                return None
            if why := self.command():
                return why
        return None

    def command(self) -> str | None:
        if not self.addresses():
            return "an address of sed that is not understood"
        if self.stopped:
            return None
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
            self.take(r"[ \t]*\d*" if char in "qQlL" else "")
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
            if not self.take(r"[ \t]*,"):
                break
        self.take(r"[ \t!]*")
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
        found = self.until(delimiter, is_regex=True)
        self.take(r"[IM]*")
        return found or self.stopped

    def substitution(self, char: str) -> str | None:
        delimiter = self.text[self.at : self.at + 1]
        self.at += 1
        if delimiter in ("", "\\", "\n") or not self.until(delimiter, is_regex=char == "s"):
            return f"'{char}' of sed without an end"
        if not self.until(delimiter):
            return f"'{char}' of sed without an end"
        if char == "s":
            self.take(self.FLAGS)
        if self.take(self.END):
            return None
        if self.stopped and not self.take(self.HARMFUL_FLAG):
            return None
        return "a flag of sed that runs a command or writes a file"

    def until(self, delimiter: str, *, is_regex: bool = False) -> bool:
        """Go behind the next delimiter that is not escaped, nor in brackets where those count."""
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] != "\n":
            char = self.text[self.at]
            if is_regex and char == "[" and delimiter != "[" and self.brackets != "ignored":
                self.pass_bracket()
                continue
            self.at += 2 if char == "\\" else 1
            if char == delimiter:
                # Where brackets do not count, one may be left open: sed then ends before it has done anything.
                self.stopped = self.stopped or (is_regex and has_open_bracket(self.text[begin : self.at - 1]))
                return True
        return False

    def pass_bracket(self) -> None:
        """Go behind `[…]`; a bracket without an end is an ordinary character here."""
        match = BRACKETS[self.brackets].match(self.text, self.at)
        self.at = match.end() if match else self.at + 1

    def take(self, pattern: str) -> bool:
        """Go behind what fits a pattern; whether there was any."""
        match = re.compile(pattern).match(self.text, self.at)
        if match:
            self.at = match.end()
        return bool(match)


def has_open_bracket(regex: str) -> bool:
    """Whether a bracket has no end, whatever a backslash in it means: no sed takes such a regular expression."""
    return all(is_left_open(regex, bracket) for bracket in BRACKETS.values())


def is_left_open(regex: str, bracket: re.Pattern[str]) -> bool:
    at = 0
    while at < len(regex):
        match = bracket.match(regex, at) if regex[at] == "[" else None
        if regex[at] == "[" and match is None:
            return True
        at = match.end() if match else at + (2 if regex[at] == "\\" else 1)
    return False


def sed_concern(script: str) -> str | None:
    """What any sed may make of a script: they differ in whether a delimiter inside of brackets counts."""
    readings: tuple[Brackets, ...] = ("ignored", "literal", "escaped") if "[" in script else ("ignored",)
    return next((why for brackets in readings if (why := SedScript(script, brackets).run())), None)


JQ_TOKEN = re.compile(
    r"""(?P<skipped>\s+|\#[^\n]*)
      | (?P<string>")
      | (?P<field>\.[A-Za-z_]\w*)
      | (?P<variable>\$\s*(?:\#[^\n]*\n\s*)*[A-Za-z_][\w:]*)
      | (?P<name>[A-Za-z_@][\w:]*)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<operator>\?//=?|//=?|\.\.|[-+*/%|=<>!]=?|[.\[\](){}:,;?$])""",
    re.VERBOSE,
)
JQ_FORBIDDEN = names("env import include modulemeta get_search_list")
JQ_VARIABLES = names("ENV __prog_args __prog_args_named")
OPENING, CLOSING = frozenset("([{"), frozenset(")]}")
JQ_KEY = re.compile(r"\s*(?:[:,}])")
UNDERSTOOD_NOT = "the program of jq is not understood"


def jq_concern(program: str) -> str | None:
    """Why a program of jq may tell more than what is in its input; fields and keys may have any name."""
    waiting = [(program, 0)]
    while waiting:
        text, at = waiting.pop()
        opened: list[str] = []
        before = ""
        while at < len(text):
            match = JQ_TOKEN.match(text, at)
            if match is None:
                return UNDERSTOOD_NOT
            kind, token, at = match.lastgroup, match[0], match.end()
            if kind == "string":
                end = jq_string_end(text, at)
                if end is None:
                    return UNDERSTOOD_NOT
                waiting += [(inner, 0) for inner in end[1]]
                at = end[0]
            elif kind == "variable" and re.sub(r"[$\s]|#[^\n]*\n", "", token) in JQ_VARIABLES:
                return "jq reads the environment"
            elif kind == "name" and token in JQ_FORBIDDEN and not is_key(text, at, before, opened):
                return "jq reads the environment or other code"
            elif kind == "operator" and token in OPENING:
                opened.append(token)
            elif kind == "operator" and token in CLOSING and opened:
                opened.pop()
            before = before if kind == "skipped" else token
    return None


def is_key(text: str, at: int, before: str, opened: Sequence[str]) -> bool:
    """Whether a name is the key of an object that is made, as in `{env: 1}`; `{env}` stands for `{env: .env}`."""
    return bool(opened) and opened[-1] == "{" and before in ("{", ",") and bool(JQ_KEY.match(text, at))


def jq_string_end(text: str, at: int) -> tuple[int, list[str]] | None:
    """Where a string ends whose quote stands before `at`, and the programs inside of it, as in `"\\(.x)"`."""
    inner: list[str] = []
    while at < len(text):
        if text[at] == '"':
            return at + 1, inner
        if text.startswith("\\(", at):
            end = jq_parenthesis_end(text, at + 2)
            if end is None:
                return None
            inner.append(text[at + 2 : end - 1])
            at = end
        else:
            at += 2 if text[at] == "\\" else 1
    return None


def jq_parenthesis_end(text: str, at: int) -> int | None:
    """Where what a parenthesis before `at` opened is closed."""
    depth = 1
    while at < len(text):
        if text[at] == '"':
            end = jq_string_end(text, at + 1)
            if end is None:
                return None
            at = end[0]
            continue
        depth += (text[at] == "(") - (text[at] == ")")
        at += 1
        if not depth:
            return at
    return None


def jq_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """The program is read; the files behind it do no harm."""
    for operand in given.operands[:1]:
        if operand.value is None:
            yield Concern(message="the program of jq is not certain")
        elif why := jq_concern(operand.value):
            yield Concern(message=why)


JQ = Options(
    flags="""
        -nrjaceMCSsRhVb null-input raw-output raw-output0 join-output ascii-output compact-output exit-status
        monochrome-output color-output sort-keys slurp raw-input tab unbuffered stream stream-errors seq help version
        args jsonargs binary build-configuration
    """,
    values="indent",
    pairs={"arg argjson": "text text", "slurpfile rawfile argfile": "text read"},
    harms={"-f from-file": "takes its program from a file", "-L= library-path=": "loads other code"},
    operands="text read*",
    more=jq_concerns,
    abbreviates=False,
)
YQ_READS = re.compile(r"\b(?:env|strenv|envsubst|load\w*|system|import|include)\b|\$\s*ENV")


def yq_concerns(given: Given, _folder: FolderFacts) -> Iterator[Concern]:
    """Any operand may be the program, in either of the programs of that name."""
    for operand in given.operands:
        if YQ_READS.search(operand.value or ""):
            yield Concern(message="yq reads the environment or other files")


YQ = Options(
    flags="""
        -rnjPCMNevVhySR0 raw-output unwrapScalar null-input tojson prettyPrint colors no-colors no-doc exit-status
        verbose version help yaml-output slurp sort-keys nul-output compact-output -c
    """,
    values="-opI output-format input-format indent arg xml-attribute-prefix xml-content-name",
    harms={
        "-i? inplace in-place": IN_PLACE,
        "-f= from-file= -L= front-matter=": "takes its program or its files from elsewhere",
        "-s= split-exp= split-exp-file=": "writes files",
    },
    operands="text read*",
    more=yq_concerns,
    abbreviates=False,
    complete=True,
)
SCRIPT_GUARDS: dict[str, Guard] = {
    "sed gsed": SED,
    "awk gawk mawk nawk original-awk bwk goawk": AWK,
    "jq gojq jaq": JQ,
    "yq": YQ,
}
