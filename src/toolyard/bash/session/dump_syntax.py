"""Reads what `declare -p` prints, strictly and as data: nothing of it is ever run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.bash.session.command_text import quoted
from toolyard.core.regexes import late_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


HEAD = late_pattern(rb"declare -([-A-Za-z]+) ([A-Za-z_][A-Za-z0-9_]*)(=|\n|\Z)")
DOUBLE = late_pattern(rb'"((?:[^"\\$`]++|\\["\\$`])*+)"')
ANSI = late_pattern(rb"\$'((?:[^'\\]++|\\[abeEfnrtv\\'\"?]|\\[0-7]{1,3}|\\x[0-9A-Fa-f]{1,2})*+)'")
KEY = late_pattern(rb"[^\s\]\[\"'$`\\]+")
ODD = late_pattern(rb"^declare -(?!- )[-A-Za-z]+ ([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)
NUMBER = late_pattern(rb"\d{1,9}")
ESCAPE = late_pattern(rb"\\([abeEfnrtv\\'\"?]|[0-7]{1,3}|x[0-9A-Fa-f]{1,2})")
NAMED = ((b"a", b"\a"), (b"b", b"\b"), (b"e", b"\x1b"), (b"E", b"\x1b"), (b"f", b"\f"), (b"n", b"\n"), (b"r", b"\r"))
CONTROLS = dict((*NAMED, (b"t", b"\t"), (b"v", b"\v")))


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable of a shell, with its value as bytes."""

    kind: Literal["text", "list", "map"]
    exported: bool
    readonly: bool
    value: bytes = b""
    items: tuple[tuple[bytes, bytes], ...] = ()
    """Of a list and a map: the elements by their numbers or keys."""
    has_value: bool = True

    def lines(self, name: bytes) -> Iterator[bytes]:
        """What makes another shell have it. An integer becomes text: bash would evaluate what it is assigned."""
        options = {"text": b"", "list": b" -a", "map": b" -A"}[self.kind] + (b" -x" if self.exported else b"")
        if options or not self.has_value:
            yield b"\\builtin declare%b %b" % (options, name)
        if self.has_value:
            yield name + b"=" + self._assigned()
        if self.readonly:
            yield b"\\builtin readonly " + name

    def is_in(self, env: Mapping[bytes, bytes], name: bytes) -> bool:
        """Whether a shell with that environment has it anyway."""
        return self.kind == "text" and self.exported and env.get(name) == self.value

    def _assigned(self) -> bytes:
        if self.kind == "text":
            return quoted(self.value)
        quote = bytes if self.kind == "list" else quoted
        return b"(" + b" ".join(b"[%b]=%b" % (quote(key), quoted(item)) for key, item in self.items) + b")"

    def text(self) -> bytes:
        """All that it holds."""
        return self.value if self.kind == "text" else b"\n".join(part for item in self.items for part in item)

    def shown(self) -> str:
        """Its value as a person may see it."""
        if self.kind == "text":
            return legible(self.value)
        return "(" + " ".join(f"[{legible(key)}]={legible(item)}" for key, item in self.items) + ")"


def read_declarations(dump: bytes) -> tuple[dict[bytes, Variable], bytes]:
    """The variables, and what comes after the last of them; reading ends at whatever bash itself would not print."""
    found: dict[bytes, Variable] = {}
    at = 0
    while head := HEAD.match(dump, at):
        attributes, name, end = head[1].decode(), head[2], head[3]
        if "f" in attributes:  # the functions come after the variables
            break
        at = head.end()
        if end == b"=":
            read = read_value(dump, at, attributes)
            if read is None or dump[read[1] : read[1] + 1] not in (b"\n", b""):
                return found, b""
            variable, at = read[0], read[1] + 1
        else:
            variable = variable_of(attributes, has_value=False)
        if "n" not in attributes:  # not a reference to another one by its name
            found[name] = variable
    return found, dump[at:]


def odd_names(dump: bytes) -> frozenset[bytes]:
    """Variables with any attribute. A line of a value may look like one, which makes one more of them odd."""
    return frozenset(ODD.findall(dump))


def read_value(dump: bytes, at: int, attributes: str) -> tuple[Variable, int] | None:
    kind = kind_of(attributes)
    if kind == "text":
        text = read_quoted(dump, at)
        return text and (variable_of(attributes, value=text[0]), text[1])
    if dump[at : at + 1] != b"(":
        return None
    at += 1
    items: list[tuple[bytes, bytes]] = []
    while dump[at : at + 1] == b"[":
        element = read_element(dump, at + 1, numbered=kind == "list")
        if element is None:
            return None
        items.append(element[0])
        at = element[1] + (dump[element[1] : element[1] + 1] == b" ")
    if dump[at : at + 1] != b")":
        return None
    return variable_of(attributes, items=tuple(items)), at + 1


def read_element(dump: bytes, at: int, *, numbered: bool) -> tuple[tuple[bytes, bytes], int] | None:
    """`key]=value`."""
    key: bytes
    if numbered:
        number = NUMBER.match(dump, at)
        if number is None:
            return None
        key, at = number[0], number.end()
    elif (text := read_quoted(dump, at)) is not None:
        key, at = text
    elif (word := KEY.match(dump, at)) is not None:
        key, at = word[0], word.end()
    else:
        return None
    if dump[at : at + 2] != b"]=":
        return None
    value = read_quoted(dump, at + 2)
    return value and ((key, value[0]), value[1])


def read_quoted(dump: bytes, at: int) -> tuple[bytes, int] | None:
    """A text in double quotes or in bash's own, and where it ends."""
    if double := DOUBLE.match(dump, at):
        return re.sub(rb'\\(["\\$`])', rb"\1", double[1]), double.end()
    if ansi := ANSI.match(dump, at):
        return ESCAPE.sub(lambda found: unescaped(found[1]), ansi[1]), ansi.end()
    return None


def legible(value: bytes) -> str:
    return repr(value.decode("utf-8", "backslashreplace"))


def unescaped(what: bytes) -> bytes:
    if what[:1] == b"x":
        return bytes([int(what[1:], 16)])
    if what.isdigit():
        return bytes([int(what, 8) & 0xFF])
    return CONTROLS.get(what, what)


def kind_of(attributes: str) -> Literal["text", "list", "map"]:
    return "map" if "A" in attributes else "list" if "a" in attributes else "text"


def variable_of(attributes: str, **what: Any) -> Variable:
    return Variable(kind=kind_of(attributes), exported="x" in attributes, readonly="r" in attributes, **what)
