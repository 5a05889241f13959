"""What `${name…}` makes of a value: cutting, replacing, another text for none."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.bash.syntax.expansion import UNKNOWN, Value, union

if TYPE_CHECKING:
    from collections.abc import Callable


PARTS = re.compile(r"(:?[-+]|##?|%%?|//?|\^\^?|,,?|:)(.*)", re.DOTALL)
SLICE = re.compile(r" ?(-?\d+)(?::(-?\d+))?")


def changed(value: Value, change: str, known: Callable[[str], Value]) -> Value:
    """The value after a change; `known` says what there is to know of a text."""
    match = PARTS.fullmatch(change)
    if match is None:
        return value if not change else UNKNOWN
    operator, given = match.groups()
    if operator == ":-" and value.texts:
        return union([known(given), *(known(text) for text in value.texts if text)])
    if operator.endswith(("-", "+")):
        return union([known(given), value if operator.endswith("-") else known("")])
    if value.text is not None:
        text = changed_text(value.text, operator, given)
        return UNKNOWN if text is None else known(text)
    if value.texts:
        texts = [changed_text(text, operator, given) for text in value.texts]
        return UNKNOWN if None in texts else union(known(text or "") for text in texts)
    return changed_unknown(value, operator, given)


def changed_unknown(value: Value, operator: str, given: str) -> Value:
    """Of names inside the workspace, the beginning or what follows a slash is one as well."""
    names = replace(value, is_number=False, prefix="", dashes=True) if value.relative else UNKNOWN
    if operator[0] in "^,":
        return replace(value, prefix="")
    if operator[0] == "%":
        return replace(names, dashes=value.dashes)
    if operator[0] == "#" and given.endswith("/"):
        return names
    return UNKNOWN


def changed_text(text: str, operator: str, given: str) -> str | None:
    match operator[0]:
        case "#":
            return cut(text, given, from_end=False, longest=len(operator) == 2)
        case "%":
            return cut(text, given, from_end=True, longest=len(operator) == 2)
        case "^":
            return text.upper() if len(operator) == 2 else text[:1].upper() + text[1:]
        case ",":
            return text.lower() if len(operator) == 2 else text[:1].lower() + text[1:]
        case "/":
            return replaced(text, given, everywhere=len(operator) == 2)
        case _:
            return sliced(text, given)


def cut(text: str, pattern: str, *, from_end: bool, longest: bool) -> str:
    """The text without the shortest or longest piece at one end that fits a pattern."""
    fits = re.compile(translate(pattern)).match
    lengths = range(len(text), -1, -1) if longest else range(len(text) + 1)
    for length in lengths:
        piece = text[len(text) - length :] if from_end else text[:length]
        if fits(piece):
            return text[: len(text) - length] if from_end else text[length:]
    return text


def replaced(text: str, given: str, *, everywhere: bool) -> str | None:
    old, _, new = given.partition("/")
    if not old or old[0] in "#%" or re.search(r"[*?\[]", old):
        return None
    return text.replace(old, new) if everywhere else text.replace(old, new, 1)


def sliced(text: str, given: str) -> str | None:
    match = SLICE.fullmatch(given)
    if match is None:
        return None
    first, length = int(match[1]), int(match[2]) if match[2] else None
    if first < 0 or (length is not None and length < 0):
        return None
    return text[first:] if length is None else text[first : first + length]
