"""How a call is put in words for a person, whatever kind of tool it is for."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from toolyard.kinds.bash_arguments import as_word

if TYPE_CHECKING:
    from toolyard.core.tool import JsonObject

__all__ = ["one_line", "seconds", "shown"]

PREVIEW_LENGTH = 200


def one_line(text: str) -> str:
    """The first line, short enough for a list."""
    first = text.strip("\n").split("\n", 1)[0].rstrip()
    return first if len(first) <= PREVIEW_LENGTH else first[: PREVIEW_LENGTH - 1] + "…"


def shown(name: str, arguments: JsonObject) -> str:
    """A call as one would type it: the preview of a tool that has none of its own."""
    words = (f"{key}={shlex.quote(as_word(value))}" for key, value in arguments.items())
    return one_line(" ".join((name, *words)))


def seconds(number: float) -> str:
    """A time limit in words."""
    return "1 second" if number == 1 else f"{number:g} seconds"
