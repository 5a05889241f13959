"""sed: a script is gone through command by command; some run programs, some write files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.options import IN_PLACE, Concern, options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place


SED = options(
    flags="""
        -nErsuz quiet silent debug posix regexp-extended separate sandbox unbuffered null-data zero-terminated help
        version follow-symlinks
    """,
    values="-el expression line-length",
    harms={"-i in-place": IN_PLACE, "-f file": "takes its script from a file"},
    complete=True,
)


def guard_sed(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Every script is read; its input files do no harm."""
    given = SED.scan(words[1:])
    yield from given.concerns
    scripts = given.values("e", "expression") or list(given.operands[:1])
    for script in scripts:
        text = script if isinstance(script, str) else script.value if script else None
        if text is None:
            yield Concern(message="the script of sed is not certain")
        elif why := sed_concern(text):
            yield Concern(message=why)


class SedScript:
    """Goes through a script of sed, command by command; anything unusual is a concern."""

    PLAIN = frozenset("=dDgGhHlnNpPxzF")
    ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)")
    LABEL = re.compile(r"\s*\w*\s*(?=[;}\n]|\Z)")
    END = re.compile(r"[ \t]*(?:[;\n]|(?=\})|(?=#)|\Z)")
    FLAGS = re.compile(r"[gpiImM0-9]*")

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
            self.take(re.compile(r"[^\n]*"))
            return None
        if char == ":":
            return (
                None
                if self.take(re.compile(r"[ \t]*\w+")) and self.take(self.END)
                else "a label of sed that is not understood"
            )
        if char == "{":
            return None
        if char in "sy":
            return self.substitution(char)
        if char in "qQlL" or char in self.PLAIN:
            self.take(re.compile(r"\s*\d*"))
            return None if char and self.take(self.END) else f"'{char}' of sed with more behind it"
        if char in "btT":
            return None if self.take(self.LABEL) else "a label of sed that is not understood"
        if char in "aic" and char:
            return (
                None if self.take(re.compile(r"(?:[^\n\\]|\\.)*(?:\n|\Z)", re.DOTALL)) else "text of sed without an end"
            )
        names = {
            "e": "runs a command",
            "w": "writes a file",
            "W": "writes a file",
            "r": "reads a file",
            "R": "reads a file",
        }
        return f"'{char}' of sed {names.get(char, 'is not understood')}"

    def addresses(self) -> bool:
        for _ in range(2):
            if not self.address():
                return False
            if not self.take(re.compile(r"\s*,")):
                break
        self.take(re.compile(r"[\s!]*"))
        return True

    def address(self) -> bool:
        self.take(re.compile(r"[ \t]*"))
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
        self.take(re.compile(r"[IM]*"))
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

    def take(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return bool(match)


def sed_concern(script: str) -> str | None:
    """Why a script of sed may do more than print."""
    return SedScript(script).run()
