"""The patterns of JSON Schemas: read as JavaScript reads them, and matched in a number of steps that has a bound.

Python's own `re` tries every way to match, of which `^(a+)+$` has more for thirty letters than a day has time for, and
nothing can interrupt it. The engine behind this takes time in proportion to the text. Only what looks around or refers
back must be tried out, and of that the number of tries is bounded.
"""

from __future__ import annotations

import json
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.arguments.steps import TooManySteps
from toolyard.core.json_values import brief
from toolyard.core.regexes import late_pattern

# The engine takes a fiftieth of a second to import, and most schemas have no pattern.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema_rs import Draft202012Validator


MOST_TRIES = 1_000_000
"""Of a pattern that has to be tried out; they take some fifty milliseconds."""
MOST_STEPS = 20_000_000
"""The length of a text times the states of a pattern: `(a{1,99}){1,99}` has ten thousand of them."""
LONGEST_LOOKED_AROUND = 8_192
"""Of a text in which a pattern looks around at every place, since each look may read all of it."""
MOST_PATTERNS = 1_000


class BadPattern(ValueError):
    """It is no pattern, or one that the engine does not take."""


class Pattern:
    """A pattern that can be looked for in texts."""

    def __init__(self, text: str) -> None:
        """Compile it; raises BadPattern."""
        from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError

        self._text = text
        self._shape = shape = read_shape(text)
        options = FancyRegexOptions(backtrack_limit=MOST_TRIES)
        try:
            self._engine: Draft202012Validator = Draft202012Validator(
                {"pattern": shape.translated}, pattern_options=options, validate_formats=False
            )
        except (ValidationError, ValueError):
            raise BadPattern(f"{brief(text)} is not a regular expression{why_not(text)}") from None

    def found_in(self, text: str) -> bool:
        """Whether it matches somewhere; raises TooManySteps when that cannot be found out in time."""
        shape = self._shape
        if len(text) * shape.states > MOST_STEPS or (shape.roams and len(text) > LONGEST_LOOKED_AROUND):
            raise TooManySteps(f"{len(text)} characters are too many for the pattern {brief(self._text)}")
        if self._engine.is_valid(text):
            return True
        if shape.looks_around:
            self._check_tries(text)
        return False

    def _check_tries(self, text: str) -> None:
        """Tell a text that does not match from one that was given up."""
        from jsonschema_rs import ValidationErrorKind

        kinds = (error.kind for error in self._engine.iter_errors(text))
        if any(isinstance(kind, ValidationErrorKind.BacktrackLimitExceeded) for kind in kinds):
            raise TooManySteps(f"{brief(text)} takes too many steps to match against the pattern {brief(self._text)}")


@lru_cache(MOST_PATTERNS)
def pattern(text: str) -> Pattern:
    """The pattern of a text, compiled once; raises BadPattern."""
    return Pattern(text)


@lru_cache(MOST_PATTERNS)
def readable_pattern(text: str) -> Pattern | None:
    """The same; None for one that cannot be read, which asks nothing of anybody."""
    try:
        return pattern(text)
    except BadPattern:
        return None


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a pattern is made of, as far as it decides how long matching takes."""

    translated: str
    """The pattern in the words that the engine knows."""
    states: int
    """How many places in it a text can be at: `a{3}` counts three times."""
    looks_around: bool
    """Whether it looks ahead or behind, or refers back to a group, and so has to be tried out."""
    roams: bool
    """Whether it does so elsewhere than once, at the beginning of the text."""


PARTS = late_pattern(
    r"""(?P<comment>\(\?\#[^)]*\))
      | \\k<(?P<name>\w+)> | \(\?P=(?P<python_name>\w+)\)
      | (?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})
      | (?P<escape>\\(?:u\{[0-9a-fA-F]+\} | [pP]\{[^{}]*\} | c[A-Za-z] | x[0-9a-fA-F]{2} | u[0-9a-fA-F]{4}
          | [1-9]\d* | .))
      | (?P<klass>\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\] | \[\^?\])
      | (?P<look>\(\?<?[=!])
      | \((?:\?P?<(?P<group>\w+)>|(?P<capture>(?!\?)))
      | (?P<open>\((?:\?[a-zA-Z-]*[:>])?)
      | (?P<close>\))
      | (?P<or>\|)
      | (?P<times>[*+?] | \{\d+(?:,\d*)?\} | \{,\d+\})
      | (?P<brace>\{)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
CLASS_PARTS = late_pattern(
    r"(\\[wdsWDS]|\\[pP]\{[^{}]*\})-(?!\])|\\(.)|(?P<named>\[:\^?[a-z]+:\])|(?P<operator>[\[&~])|[^\\]", re.DOTALL
)
CONTROLS = {"0": r"\x00", "a": r"\x07", "Z": r"\z"}
"""Escapes that JavaScript or Python knows and the engine does not, or by another name."""


class ShapeReader:
    """Reads a pattern part by part."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._names: list[str] = []
        self._levels: list[list[int]] = [[0, 0]]
        """For each open group the states in it so far, and those of its last part."""
        self._looks = self._roams = False
        self._at_start = False
        """Whether only `^` and looks ahead came so far."""
        self._within_look = 0

    def read(self) -> Shape:
        translated = "".join(self._parts())
        states = max(1, sum(total for total, _ in self._levels))
        return Shape(translated=translated, states=states, looks_around=self._looks, roams=self._roams)

    def _parts(self) -> Iterator[str]:
        for number, found in enumerate(PARTS.finditer(self._text)):
            kind, part = str(found.lastgroup), found[0]
            if number == 0 and part == "^":
                self._at_start = True
                yield part
            elif kind == "look":
                self._look(part)
                yield part
            elif kind in ("name", "python_name"):
                yield self._reference(found[kind])
            else:
                yield self._plain(kind, part, found)

    def _plain(self, kind: str, part: str, found: re.Match[str]) -> str:
        match kind:
            case "comment":
                return ""
            case "group" | "capture":
                self._names.append(found["group"] or "")
                self._open()
            case "open":
                self._open()
            case "close":
                self._close()
            case "times":
                return self._repeat(part)
            case "or":
                self._at_start &= bool(self._within_look)
                self._roams |= self._looks and len(self._levels) == 1
            case _:
                self._add(1)
                return self._spelled(kind, part)
        return part

    def _look(self, part: str) -> None:
        """One ahead at the very beginning is looked at once; any other perhaps at every place of the text."""
        self._roams |= not self._at_start or "<" in part or len(self._levels) > 1
        self._looks = True
        self._levels.append([0, 0])
        self._within_look = self._within_look or len(self._levels)

    def _open(self) -> None:
        self._at_start &= bool(self._within_look)
        self._levels.append([0, 0])

    def _close(self) -> None:
        if len(self._levels) > 1:
            if len(self._levels) == self._within_look:
                self._within_look = 0
            states, _ = self._levels.pop()
            self._add(states, closes=True)

    def _add(self, states: int, *, closes: bool = False) -> None:
        self._at_start &= bool(self._within_look) or closes
        level = self._levels[-1]
        level[0] += states
        level[1] = states

    def _repeat(self, part: str) -> str:
        part = part.replace("{,", "{0,")  # as Python means it; in JavaScript it would be a text that nobody means
        numbers = [int(number) for number in re.findall(r"\d+", part)]
        level = self._levels[-1]
        more = level[1] * (max(1, *numbers) - 1) if numbers else 0
        level[0] += more
        level[1] += more
        return part

    def _reference(self, name: str) -> str:
        self._looks = self._roams = True
        self._add(1)
        return f"\\{self._names.index(name) + 1}" if name in self._names else f"\\k<{name}>"

    def _spelled(self, kind: str, part: str) -> str:
        if kind == "klass":
            return spelled_class(part)
        if kind == "brace":
            return r"\{"
        if kind == "pair":
            return "\\u{" + format(ord(json.loads(f'"{part}"')), "x") + "}"
        if kind == "escape":
            if part[1] in "123456789":
                self._looks = self._roams = True
            return CONTROLS.get(part[1:], part if part[1].isascii() else part[1:])
        return part


def read_shape(text: str) -> Shape:
    return ShapeReader(text).read()


def spelled_class(part: str) -> str:
    """A class of characters in the words of the engine."""
    if part in ("[]", "[^]"):
        return r"[^\s\S]" if part == "[]" else r"[\s\S]"

    def spelled(one: re.Match[str]) -> str:
        if one[1]:
            return one[1] + r"\-"  # not a range, since what is before it is no single character
        if one[2]:
            return {"b": r"\x08", **CONTROLS}.get(one[2], one[0] if one[2].isascii() else one[2])
        if one["operator"]:
            return "\\" + one[0]  # the engine knows sets in sets, and what they have in common
        return one[0]

    start = 2 if part.startswith("[^") else 1
    return part[:start] + CLASS_PARTS.sub(spelled, part[start:-1]) + "]"


def why_not(text: str) -> str:
    """What Python says to a pattern that it does not take either; it names the place."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what will mean something else one day
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f": {error}"
    return " that can be checked in bounded time"
