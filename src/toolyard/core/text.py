"""Values and limits in the words of results and previews, the same for every kind of tool."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from toolyard.core.json_values import cut

if TYPE_CHECKING:
    from toolyard.core.tool import Json, JsonObject

PREVIEW_LENGTH = 200
TIMED_OUT = 124
"""The exit code of a command that ran out of time, as coreutils' timeout has it."""
LONGEST_TIMEOUT = 10**9
"""Thirty years; JSON has numbers that no clock can count to."""
LONGEST_WORD = 131_071
"""The kernel's limit on one argument of a command line, less its final NUL."""
PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
ESCAPED = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


def one_line(text: str) -> str:
    """The first line, short enough for a list."""
    return cut(text.strip("\n").split("\n", 1)[0].rstrip(), PREVIEW_LENGTH)


def first_line(command: str) -> str:
    """A command's first line, with a sign when it has more."""
    command = command.strip()
    return one_line(command) + (" …" if "\n" in command else "")


def call_line(name: str, arguments: JsonObject) -> str:
    """A call in one line, for tools that have no preview of their own."""
    return one_line(" ".join([name, *(f"{key}={shlex.quote(as_word(value))}" for key, value in arguments.items())]))


def as_word(value: Json) -> str:
    """A string as it is, anything else as JSON prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return encode_json(value)


def encode_json(value: Json) -> str:
    """Compact JSON; characters stay as they are, but for lone surrogates, which no UTF-8 text can hold."""
    text = PLAIN.encode(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return ESCAPED.encode(value)
    return text


def whole_characters(text: str) -> str:
    """Text that UTF-8 can hold: halves of a character that belong together are joined, others become U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def seconds(number: float) -> str:
    return "1 second" if number == 1 else f"{number:g} seconds"


def limit_hit(signal: int) -> str:
    return {24: ", its processor time was used up", 25: ", a file grew beyond its limit"}.get(signal, "")


def joined(*parts: str | None) -> str:
    """Parts below each other, each beginning its own line."""
    text = ""
    for part in filter(None, parts):
        text += part if not text or text.endswith("\n") else "\n" + part
    return text
