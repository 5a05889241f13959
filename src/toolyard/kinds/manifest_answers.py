"""What a model reads of a manifest's command: JSON on one line, or an `error`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from toolyard.core.tool import Json

__all__ = ["LONGEST_ERROR", "TIMED_OUT_TEXT", "error_text", "failure_text", "success_text"]

LONGEST_ERROR = 1000
"""Characters of standard error that a model gets to read."""
NOTHING = "{}"
NO_JSON = object()
OUTSIDE_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[ \t\r\n]+|[:,]')
SPACED = {":": ": ", ",": ", "}


def success_text(stdout: str) -> str:
    """What was printed, trimmed; JSON on one line; never nothing."""
    text = stdout.strip()
    if ("\n" in text or "\r" in text) and parsed(text) is not NO_JSON:
        return on_one_line(text)
    return text or NOTHING


def failure_text(stderr: str, otherwise: str) -> str:
    """What standard error says, as an `error`; what already is one is passed on; silence is told `otherwise`."""
    said = stderr.strip()
    value = parsed(said)
    if not isinstance(value, dict) or "error" not in value:
        return error_text(said or otherwise)
    line = on_one_line(said) if "\n" in said or "\r" in said else said
    error = value["error"]
    return line if len(line) <= LONGEST_ERROR else error_text(error if isinstance(error, str) else json.dumps(error))


def error_text(message: str) -> str:
    """A message as the object that a model expects, cut to what it gets to read."""
    whole = message[:LONGEST_ERROR].encode("utf-8", "replace").decode("utf-8")  # half a UTF-16 character is no text
    return json.dumps({"error": whole}, ensure_ascii=False)


def on_one_line(text: str) -> str:
    """A JSON text without its line ends and indentation; numbers and strings stay as they were written."""
    return OUTSIDE_STRINGS.sub(lambda found: printed(found[0]), text)


def printed(token: str) -> str:
    return token if token.startswith('"') else SPACED.get(token, "")


def parsed(text: str) -> Json:
    """The value of a strict JSON text, its numbers as text, so that none is too large; NO_JSON when it is none."""
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return NO_JSON


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=refuse_constant)
TIMED_OUT_TEXT = error_text("tool timed out")
