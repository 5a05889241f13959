"""The rules of a manifest's names and paths, as plain functions over text."""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PREFIX", "WrongPath", "located_program", "passed_name", "quoted", "without_repeats"]

PREFIX = "./tools/bin/"
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ESCAPED = dict(zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True))
"""What stands after a backslash for characters that have a sign of their own."""


class WrongPath(msgspec.Struct, frozen=True, kw_only=True):
    """Which rule a program's path breaks."""

    reason: str


def located_program(written: str) -> str | WrongPath:
    """An absolute path as it is, a relative one in its shortest form; it must not leave `tools/bin`."""
    if os.path.isabs(written):
        return written
    path = written.replace("\\", "/")
    if not path.startswith(PREFIX):
        return WrongPath(reason=f"relative command[0] must start with {PREFIX}")
    short = shortest(path)
    if not short.startswith(PREFIX):
        got = f"(got {quoted(written)} -> {quoted(short)})"
        return WrongPath(reason=f"command[0] escapes {PREFIX.rstrip('/')} after normalization {got}")
    return short


def shortest(path: str) -> str:
    """A relative path without detours, beginning with `./` unless it leaves the folder altogether."""
    normal = posixpath.normpath(path)
    return normal if normal.split("/")[0] == ".." else f"./{normal}"


def passed_name(written: str) -> str | None:
    """A variable's name in the form in which it is looked up; None when it is none."""
    name = written.strip()
    return name.upper() if ENV_NAME.fullmatch(name) else None


def without_repeats(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, where it came first."""
    return tuple(dict.fromkeys(names))


def quoted(text: str) -> str:
    """A text in double quotes, with everything that cannot be seen as it would be written in a program."""
    return f'"{"".join(map(visible, text))}"'


def visible(char: str) -> str:
    if char in ESCAPED:
        return f"\\{ESCAPED[char]}"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
